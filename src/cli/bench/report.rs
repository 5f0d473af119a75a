//! What a run found: counts, throughput, and the distribution of latency.
//!
//! Latency is kept in whole microseconds, since that is the house clock's step; it is coarse
//! only where an answer takes a few of them. Percentiles come from a histogram of three
//! significant digits. There is no average: it hides what one looks for.

use std::fmt::{self, Write};

use hdrhistogram::Histogram;
use serde::Serialize;

use super::Plan;
use crate::cli::{
    resp::{Decision, Reply, Verdict},
    table::thousands,
};
use crate::time::{Duration, Timestamp};

/// Longer latencies count as this one.
const LATENCY_MAX: Duration = Duration::from_secs(3_600);

/// Counts of one thread, or of several merged.
#[derive(Clone, Debug)]
pub(super) struct Tally {
    allowed: u64,
    denied: u64,
    ok: u64,
    errors: u64,
    /// Requests of an open loop that were due and never sent.
    pub(super) unsent: u64,
    pub(super) first_error: Option<String>,
    latency_us: Histogram<u64>,
    /// When the latest reply came.
    pub(super) latest: Timestamp,
}

impl Tally {
    pub(super) fn new(start: Timestamp) -> Self {
        Self {
            allowed: 0,
            denied: 0,
            ok: 0,
            errors: 0,
            unsent: 0,
            first_error: None,
            latency_us: Histogram::new_with_bounds(1, LATENCY_MAX.as_micros(), 3)
                .expect("the bounds are in order and three digits are few"),
            latest: start,
        }
    }

    pub(super) fn record(&mut self, reply: Reply<'_>, latency: Duration) {
        match reply {
            Reply::Decision(Decision { verdict: Verdict::Allowed, .. }) => self.allowed += 1,
            Reply::Decision(Decision { verdict: Verdict::Denied, .. }) => self.denied += 1,
            Reply::Other => self.ok += 1,
            Reply::Error(text) => {
                self.errors += 1;
                self.first_error.get_or_insert_with(|| String::from_utf8_lossy(text).into_owned());
            }
        }
        self.latency_us.saturating_record(latency.as_micros());
    }

    pub(super) fn merge(&mut self, other: Self) {
        self.allowed += other.allowed;
        self.denied += other.denied;
        self.ok += other.ok;
        self.errors += other.errors;
        self.unsent += other.unsent;
        self.first_error = self.first_error.take().or(other.first_error);
        self.latency_us += other.latency_us;
        self.latest = self.latest.max(other.latest);
    }

    fn answered(&self) -> u64 {
        self.allowed + self.denied + self.ok + self.errors
    }
}

/// The result of a run; field names are those of `--json`.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Report {
    command: String,
    #[serde(rename = "loop")]
    discipline: &'static str,
    connections: usize,
    pipeline: usize,
    threads: usize,
    keys: u64,
    seed: u64,
    /// What an open loop asked for; null in a closed one.
    rate_per_s: Option<u64>,
    requests: u64,
    elapsed_s: f64,
    throughput_per_s: f64,
    allowed: u64,
    denied: u64,
    ok: u64,
    errors: u64,
    unsent: u64,
    first_error: Option<String>,
    latency_us: Latency,
}

#[derive(Clone, Copy, Debug, Serialize)]
struct Latency {
    p50: u64,
    p90: u64,
    p99: u64,
    p999: u64,
    max: u64,
}

impl Report {
    pub(super) fn new(plan: &Plan, tally: Tally, start: Timestamp) -> Self {
        let elapsed_s = tally.latest.since(start).as_micros() as f64 / 1e6;
        let requests = tally.answered();
        let quantile = |quantile| tally.latency_us.value_at_quantile(quantile);
        Self {
            command: plan.command.join(" "),
            discipline: if plan.rate.is_some() { "open" } else { "closed" },
            connections: plan.connections,
            pipeline: plan.pipeline,
            threads: plan.threads,
            keys: plan.keys,
            seed: plan.seed,
            rate_per_s: plan.rate,
            requests,
            elapsed_s,
            throughput_per_s: if elapsed_s > 0.0 { requests as f64 / elapsed_s } else { 0.0 },
            allowed: tally.allowed,
            denied: tally.denied,
            ok: tally.ok,
            errors: tally.errors,
            unsent: tally.unsent,
            latency_us: Latency {
                p50: quantile(0.5),
                p90: quantile(0.9),
                p99: quantile(0.99),
                p999: quantile(0.999),
                max: tally.latency_us.max(),
            },
            first_error: tally.first_error,
        }
    }

    /// The first error's text where nothing but errors came back: there is nothing measured.
    pub(super) fn all_failed(&self) -> Option<&str> {
        self.first_error.as_deref().filter(|_| self.errors == self.requests)
    }
}

/// The table for people.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.command)?;
        write!(f, "{} loop", self.discipline)?;
        if let Some(rate) = self.rate_per_s {
            write!(f, " at {} per second", thousands(rate))?;
        }
        let plural = if self.threads == 1 { "" } else { "s" };
        writeln!(
            f,
            ", {} connections, pipeline {}, {} thread{plural}, {} keys\n",
            self.connections,
            self.pipeline,
            self.threads,
            thousands(self.keys)
        )?;
        let throughput = format!("{} per second", thousands(self.throughput_per_s.round() as u64));
        writeln!(f, "  throughput  {throughput}")?;
        writeln!(f, "  requests    {} in {:.2} s", thousands(self.requests), self.elapsed_s)?;
        for (name, count) in [("allowed", self.allowed), ("denied", self.denied), ("ok", self.ok)] {
            if count > 0 {
                writeln!(f, "  {name:<10}  {}", thousands(count))?;
            }
        }
        write!(f, "  errors      {}", thousands(self.errors))?;
        match &self.first_error {
            Some(text) => writeln!(f, ", the first: {text}")?,
            None => writeln!(f)?,
        }
        if self.unsent > 0 {
            let unsent = thousands(self.unsent);
            writeln!(f, "  unsent      {unsent}: the server did not keep up with the rate")?;
        }
        let Latency { p50, p90, p99, p999, max } = self.latency_us;
        let figures = [("p50", p50), ("p90", p90), ("p99", p99), ("p99.9", p999), ("max", max)];
        let (mut names, mut values) = (String::new(), String::new());
        for (name, micros) in figures {
            write!(names, "{name:>11}")?;
            write!(values, "{:>11}", span(micros))?;
        }
        write!(f, "\n  latency   {names}\n            {values}")
    }
}

fn span(micros: u64) -> String {
    match micros {
        0..1_000 => format!("{micros} us"),
        1_000..1_000_000 => format!("{:.2} ms", micros as f64 / 1e3),
        1_000_000.. => format!("{:.2} s", micros as f64 / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Timestamp = Timestamp::from_millis(1_000);

    fn decision(verdict: Verdict) -> Reply<'static> {
        let (limit, remaining, retry_after_ms, reset_after_ms) = (1, 0, -1, 0);
        Reply::Decision(Decision { verdict, limit, remaining, retry_after_ms, reset_after_ms })
    }

    /// A hundred replies a millisecond apart, one of them slow.
    fn report() -> Report {
        let mut tally = Tally::new(START);
        let mut record = |reply, count, latency| {
            (0..count).for_each(|_| tally.record(reply, latency));
        };
        record(decision(Verdict::Allowed), 60, Duration::from_micros(100));
        record(decision(Verdict::Denied), 30, Duration::from_micros(200));
        record(Reply::Other, 7, Duration::from_micros(200));
        record(Reply::Error(b"ERR first"), 1, Duration::from_micros(200));
        record(Reply::Error(b"ERR second"), 1, Duration::from_micros(200));
        record(Reply::Other, 1, Duration::from_millis(50));
        tally.latest = START + Duration::from_millis(100);
        Report::new(&Plan::for_tests(), tally, START)
    }

    #[test]
    fn replies_are_counted_by_what_they_say() {
        let Report { allowed, denied, ok, errors, requests, first_error, .. } = report();
        assert_eq!((allowed, denied, ok, errors, requests), (60, 30, 8, 2, 100));
        assert_eq!(first_error.as_deref(), Some("ERR first"));
    }

    #[test]
    fn percentiles_keep_three_digits() {
        let Report { latency_us: Latency { p50, p90, p99, max, .. }, throughput_per_s, .. } =
            report();
        assert_eq!((p50, p90, p99), (100, 200, 200));
        assert!((50_000..=50_050).contains(&max), "{max}");
        assert!((throughput_per_s - 1_000.0).abs() < 1e-9, "{throughput_per_s}");
    }

    #[test]
    fn merged_tallies_count_together() {
        let mut sum = Tally::new(START);
        for latency in [1, 3] {
            let mut tally = Tally::new(START);
            tally.record(Reply::Error(b"ERR x"), Duration::from_micros(latency));
            tally.latest = START + Duration::from_micros(latency);
            sum.merge(tally);
        }
        let report = Report::new(&Plan::for_tests(), sum, START);
        assert_eq!((report.requests, report.latency_us.p50, report.latency_us.max), (2, 1, 3));
        assert_eq!(report.all_failed(), Some("ERR x"));
    }

    #[test]
    fn table_and_json_hold_the_same_figures() {
        let report = report();
        let table = report.to_string();
        for part in ["1,000 per second", "allowed     60", "errors      2, the first: ERR first"] {
            assert!(table.contains(part), "{part} in {table}");
        }
        let json = serde_json::to_value(&report).expect("plain fields");
        assert_eq!(json["latency_us"]["p99"], 200);
        assert_eq!(json["loop"], "closed");
        assert_eq!(json["denied"], 30);
    }

    #[test]
    fn figures_are_readable() {
        assert_eq!([7, 1_250, 2_500_000].map(span), ["7 us", "1.25 ms", "2.50 s"]);
    }
}
