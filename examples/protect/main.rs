//! A toy service protected by `tollgate::load`, and what it does at ten times its load.
//!
//! ```sh
//! cargo run --release --no-default-features --example protect
//! cargo run --release --no-default-features --example protect -- --compare overload.md
//! ```
//!
//! Two workers take 2 ms for each request, so a thousand a second can be done; callers ask for
//! ten thousand, in six tiers. It prints what became of each tier and why requests were refused.
//! With `--compare` the same is offered twice, with the load manager and without, and the
//! difference is written to a file. `service.rs` is the part to read.

#![expect(clippy::print_stdout, reason = "it shows what happened")]

mod offer;
mod service;

use std::error::Error;
use std::fmt::Write;
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use offer::{AllSeen, PATIENCE, Seen, offer};
use service::{Protection, Service, WORK, WORKERS, wait};
use tollgate::load::{Reason, Stats, Tier};
use tollgate::time::{Clock, Duration};

/// What is offered, in capacities.
const OVERLOAD: f64 = 10.0;

const LENGTH: Duration = Duration::from_secs(10);

/// What one run showed.
struct Run {
    seen: AllSeen,
    stats: Stats,
    /// By how many bytes the process grew, at most.
    grown_bytes: u64,
}

fn capacity_per_s() -> f64 {
    f64::from(WORKERS) * 1e6 / WORK.as_micros() as f64
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    match arguments.next().as_deref() {
        None => {
            let mut on = run(Protection::On)?;
            println!("{}", table(&mut on));
        }
        Some("--compare") => {
            // The careful one first: memory that the other one takes does not come back.
            let mut on = run(Protection::On)?;
            let mut off = run(Protection::Off)?;
            let text = comparison(&mut on, &mut off);
            println!("{text}");
            if let Some(path) = arguments.next() {
                fs::write(path, text)?;
            }
        }
        Some(other) => return Err(format!("`{other}`: expected --compare [FILE]").into()),
    }
    Ok(())
}

fn run(protection: Protection) -> Result<Run, Box<dyn Error>> {
    let before = resident_bytes();
    let most = Arc::new(AtomicU64::new(before));
    let is_over = Arc::new(AtomicBool::new(false));
    let watch = {
        let (most, is_over) = (Arc::clone(&most), Arc::clone(&is_over));
        thread::spawn(move || {
            let clock = Clock::system();
            while !is_over.load(Ordering::Relaxed) {
                most.fetch_max(resident_bytes(), Ordering::Relaxed);
                wait(&clock, Duration::from_millis(20));
            }
        })
    };
    let service = Service::start(protection)?;
    let seen = offer(service.address, OVERLOAD * capacity_per_s(), LENGTH)?;
    let stats = service.stop();
    is_over.store(true, Ordering::Relaxed);
    watch.join().expect("reading a file does not panic");
    Ok(Run { seen, stats, grown_bytes: most.load(Ordering::Relaxed).saturating_sub(before) })
}

/// Bytes of this process in memory; 0 where the system does not tell.
fn resident_bytes() -> u64 {
    let text = fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = text.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok());
    pages.unwrap_or(0) * 4_096
}

fn table(run: &mut Run) -> String {
    let mut text = format!(
        "{:<5}{:>9}{:>9}{:>9}{:>10}{:>10}\n",
        "tier", "offered", "in time", "refused", "p50", "p99"
    );
    for (tier, seen) in Tier::ALL.into_iter().zip(&mut run.seen) {
        let latencies = [0.5, 0.99].map(|share| shown(seen.latency(share)));
        let row = format!(
            "{:<5}{:>9}{:>8.1}%{:>9}{:>10}{:>10}",
            tier.name(),
            seen.offered,
            seen.served_share() * 100.0,
            seen.refused,
            latencies[0],
            latencies[1]
        );
        writeln!(text, "{row}").expect("a string takes what it is given");
    }
    let reasons = Reason::ALL.into_iter().map(|reason| (reason, run.stats.refused_for(reason)));
    let refused: Vec<String> = reasons
        .filter(|(_, times)| *times > 0)
        .map(|(reason, times)| format!("{} {times}", reason.name()))
        .collect();
    let level = run.stats.level.name();
    text + &format!("refused for: {}; level at the end: {level}\n", refused.join(", "))
}

fn shown(latency: Option<Duration>) -> String {
    latency
        .map_or_else(|| "-".to_owned(), |span| format!("{:.1} ms", span.as_micros() as f64 / 1e3))
}

fn comparison(on: &mut Run, off: &mut Run) -> String {
    let mut text = format!(
        "# A service at {OVERLOAD} times its load, without and with the load manager\n\n\
         Made by `cargo run --release --no-default-features --example protect -- --compare FILE`.\n\
         Two workers, {} ms of work a request ({} a second); {} offered a second over {} s,\n\
         in six tiers. In time is an answer within {} ms of the moment it was due; latency is\n\
         of all that was done. Memory is by how much the process grew. Off is a queue of 20,000,\n\
         oldest first, as a service has that bounds nothing; a short queue alone would keep the\n\
         goodput, and serve t0 no better than t5.\n\n\
         | tier | offered | in time, off | in time, on | p50 off | p50 on | p99 off | p99 on |\n\
         |---|---|---|---|---|---|---|---|\n",
        WORK.as_millis(),
        capacity_per_s(),
        OVERLOAD * capacity_per_s(),
        LENGTH.as_millis() / 1_000,
        PATIENCE.as_millis(),
    );
    let tiers = Tier::ALL.into_iter().map(Tier::name);
    let (mut all_on, mut all_off) = (Seen::default(), Seen::default());
    let mut rows = Vec::new();
    for (name, (on, off)) in tiers.zip(on.seen.iter_mut().zip(&mut off.seen)) {
        all_on.merge(on);
        all_off.merge(off);
        rows.push(row(name, on, off));
    }
    rows.push(row("all", &mut all_on, &mut all_off));
    text += &rows.concat();
    text += "\n| | off | on | change | to beat |\n|---|---|---|---|---|\n";
    let per_second = |seen: &Seen| seen.served as f64 * 1e6 / LENGTH.as_micros() as f64;
    let p99_ms =
        |seen: &mut Seen| seen.latency(0.99).map_or(0.0, |p99| p99.as_micros() as f64 / 1e3);
    let megabytes = |run: &Run| run.grown_bytes as f64 / 1e6;
    let figures = [
        ("goodput, in time a second", per_second(&all_off), per_second(&all_on), "+80 %"),
        ("p99, ms", p99_ms(&mut all_off), p99_ms(&mut all_on), "-70 %"),
        ("memory, MB", megabytes(off), megabytes(on), "-60 %"),
    ];
    for (name, off, on, beaten) in figures {
        let change = (on - off) / off.max(0.1) * 100.0;
        writeln!(text, "| {name} | {off:.1} | {on:.1} | {change:+.0} % | {beaten} |")
            .expect("a string takes what it is given");
    }
    text
}

fn row(name: &str, on: &mut Seen, off: &mut Seen) -> String {
    let latencies = [0.5, 0.99].map(|share| (shown(off.latency(share)), shown(on.latency(share))));
    let [(off_p50, on_p50), (off_p99, on_p99)] = latencies;
    format!(
        "| {name} | {} | {:.1} % | {:.1} % | {off_p50} | {on_p50} | {off_p99} | {on_p99} |\n",
        on.offered,
        off.served_share() * 100.0,
        on.served_share() * 100.0
    )
}
