//! The client library against a real server, and against servers that do not behave.
//!
//! A test's server and client share one clock, which the test moves. What only time can bring,
//! a deadline, is waited for as a caller would wait.

mod denials;
mod outages;
mod scripted;
mod settling;

use tollgate::client::{Client, Limit, Options};
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
