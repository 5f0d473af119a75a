//! The callers: an open loop that asks at its own rate, whatever comes back, and what it saw.
//!
//! Requests are due at fixed moments and latency counts from then, so that a service which stops
//! to read is seen. A caller waits [`PATIENCE`]; an answer after that is as good as none.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread;

use tollgate::load::Tier;
use tollgate::time::{Clock, Duration, Timestamp};

use crate::service::wait;

/// How long a caller waits for its answer.
pub(crate) const PATIENCE: Duration = Duration::from_millis(100);

/// Of a hundred requests, how many are of each tier.
const MIX: [u64; Tier::ALL.len()] = [5, 10, 15, 20, 20, 30];

const CONNECTIONS: u64 = 4;

/// How often a caller sends what is due.
const PACE: Duration = Duration::from_millis(1);

/// After the last request, how long answers are waited for.
const DRAIN: Duration = Duration::from_millis(500);

/// What became of the requests of one tier.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    pub(crate) offered: u64,
    /// Done in time.
    pub(crate) served: u64,
    /// Refused: it was told so.
    pub(crate) refused: u64,
    /// Latencies of the requests that were done, in time or not, in microseconds.
    latencies_us: Vec<u64>,
}

impl Seen {
    pub(crate) fn served_share(&self) -> f64 {
        self.served as f64 / self.offered.max(1) as f64
    }

    /// A percentile of the latency of what was done; none of nothing.
    pub(crate) fn latency(&mut self, share: f64) -> Option<Duration> {
        self.latencies_us.sort_unstable();
        let place = (self.latencies_us.len() as f64 * share).ceil() as usize;
        let micros = self.latencies_us.get(place.max(1) - 1)?;
        Some(Duration::from_micros(*micros))
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        self.offered += other.offered;
        self.served += other.served;
        self.refused += other.refused;
        self.latencies_us.extend(&other.latencies_us);
    }
}

/// By tier.
pub(crate) type AllSeen = [Seen; Tier::ALL.len()];

/// Requests of one connection: number `n` of it is due at `start + n * gap`.
#[derive(Clone, Copy, Debug)]
struct Schedule {
    start: Timestamp,
    gap_us: f64,
    count: u64,
}

impl Schedule {
    fn due(self, number: u64) -> Timestamp {
        self.start + Duration::from_micros((number as f64 * self.gap_us) as u64)
    }
}

/// Asks `per_second` times a second, for `length`; tells what became of it.
pub(crate) fn offer(
    address: SocketAddr,
    per_second: f64,
    length: Duration,
) -> std::io::Result<AllSeen> {
    let clock = Clock::system();
    let per_connection = per_second / CONNECTIONS as f64;
    let count = (per_connection * length.as_micros() as f64 / 1e6) as u64;
    let start = clock.now();
    let schedule = Schedule { start, gap_us: 1e6 / per_connection, count };
    let mut threads = Vec::new();
    for _ in 0..CONNECTIONS {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        let clock = clock.clone();
        threads.push(thread::spawn(move || ask(stream, &clock, schedule)));
    }
    let mut all = AllSeen::default();
    for thread in threads {
        let seen = thread.join().expect("no caller panics")?;
        for (sum, seen) in all.iter_mut().zip(&seen) {
            sum.merge(seen);
        }
    }
    Ok(all)
}

/// The tier of a request by its number: the mix, in an order that repeats every hundred.
fn tier(number: u64) -> Tier {
    let mut rest = number * 37 % 100;
    for (tier, share) in Tier::ALL.into_iter().zip(MIX) {
        if rest < share {
            return tier;
        }
        rest -= share;
    }
    Tier::T5
}

fn ask(mut stream: TcpStream, clock: &Clock, schedule: Schedule) -> std::io::Result<AllSeen> {
    let reading = stream.try_clone()?;
    let receiver = {
        let clock = clock.clone();
        thread::spawn(move || listen(reading, &clock, schedule))
    };
    let mut lines = String::new();
    let mut number = 0;
    while number < schedule.count {
        let now = clock.now();
        while number < schedule.count && schedule.due(number) <= now {
            let user = number.wrapping_mul(0x9e37_79b9) % 10_000;
            let tier = tier(number).name();
            writeln!(lines, "{number} {tier} {user}").expect("a string takes what it is given");
            number += 1;
        }
        stream.write_all(lines.as_bytes())?;
        lines.clear();
        wait(clock, PACE);
    }
    wait(clock, DRAIN);
    stream.shutdown(std::net::Shutdown::Both)?;
    Ok(receiver.join().expect("no caller panics"))
}

fn listen(stream: TcpStream, clock: &Clock, schedule: Schedule) -> AllSeen {
    let mut all = AllSeen::default();
    for number in 0..schedule.count {
        all[usize::from(tier(number).number())].offered += 1;
    }
    for line in BufReader::new(stream).lines() {
        let Ok(line) = line else { break };
        let mut words = line.split(' ');
        let Some(number) = words.next().and_then(|word| word.parse().ok()) else { break };
        let latency = clock.now().since(schedule.due(number));
        let seen = &mut all[usize::from(tier(number).number())];
        if words.next() == Some("ok") {
            seen.latencies_us.push(latency.as_micros());
            seen.served += u64::from(latency <= PATIENCE);
        } else {
            seen.refused += 1;
        }
    }
    all
}
