//! The client library against a real server, and against servers that do not behave.
//!
//! A test's server and client share one clock, which the test moves. What only time can bring,
//! a deadline, is waited for as a caller would wait.

mod checked;
mod denials;
mod outages;
mod scripted;
mod settling;

use tollgate::client::{Answer, Client, Left, Limit, MemoryOptions, Options};
use tollgate::limit::{Algorithm, Quota};
use tollgate::time::Duration;

use crate::server::Tollgate;

/// Longer than anything takes that works.
const PATIENCE: Duration = Duration::from_secs(20);

fn block_on<T>(test: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(test)
}

/// With time enough for a machine that does much else.
fn options(port: u16) -> Options {
    Options {
        deadline: PATIENCE,
        silence_max: PATIENCE,
        ..Options::at(format!("127.0.0.1:{port}"))
    }
}

/// A client under the server's clock.
fn client(tollgate: &Tollgate) -> Client {
    client_with(tollgate, options(tollgate.port()))
}

fn client_with(tollgate: &Tollgate, options: Options) -> Client {
    Client::start_with_clock(options, tollgate.clock()).expect("there is a runtime")
}

fn quota(algorithm: Algorithm, limit: u64, window: &str) -> Quota {
    Quota::new(algorithm, limit, window.parse().expect("a span")).expect("a valid quota")
}

/// One a minute.
fn one_a_minute(key: &str) -> Limit<'_> {
    Limit::new(key, quota(Algorithm::SlidingLog, 1, "1m"))
}

/// How many requests of a command the server has counted.
fn calls(tollgate: &Tollgate, command: &str) -> u64 {
    let stats = tollgate.connect().ask(&[b"INFO", b"commandstats"]).concat();
    stats.split_once(&format!("cmdstat_{command}:calls=")).map_or(0, |(_, rest)| {
        let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
        digits.parse().expect("a count")
    })
}

/// Believes what the server says for as long as it says.
fn patient(port: u16) -> Options {
    let memory = MemoryOptions {
        refresh_after: Duration::from_secs(3_600),
        believed_max: Duration::from_secs(3_600),
        ..MemoryOptions::default()
    };
    Options { memory: Some(memory), ..options(port) }
}

/// A sequence that looks random, the same each time.
struct Dice(u64);

impl Dice {
    fn below(&mut self, sides: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

/// The five integers that the client's answer would be on the wire.
fn wire(answer: &Answer) -> String {
    let Left { limit, remaining } = answer.quota.expect("there is a quota");
    let retry_ms = answer.retry_after().map_or(-1, |retry| retry.as_millis_ceil() as i64);
    let limited = i32::from(!answer.is_allowed());
    let reset_ms = answer.reset_after.as_millis_ceil();
    format!("*5 :{limited} :{limit} :{remaining} :{retry_ms} :{reset_ms}")
}
