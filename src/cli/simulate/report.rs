//! The figures of `tollgate simulate load`: a row for each rejector and load.
//!
//! Field names are those of `--json`. Shares are 0 to 1, waits whole milliseconds; a percentile
//! is at most a sixteenth too high.

use std::fmt;

use serde::Serialize;

use crate::load::{CAPACITY_PER_S, Measured, Shield, Tier};
use crate::time::Duration;

/// All that was simulated.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Report {
    seed: u64,
    seconds: u64,
    capacity_per_s: f64,
    pub(super) steady: Vec<Steady>,
    pub(super) recovery: Vec<Recovery>,
}

/// One rejector under one even load.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Steady {
    pub(super) rejector: &'static str,
    /// What is offered, in capacities.
    pub(super) load: f64,
    /// The share of the places' time that went into work which somebody waited for.
    pub(super) useful: f64,
    pub(super) late_per_served: f64,
    wait_p50_ms: u64,
    wait_p99_ms: u64,
    refused_share: f64,
    /// The share that was served, by tier.
    pub(super) served_share: [f64; Tier::ALL.len()],
}

/// One rejector after an overload has ended.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Recovery {
    pub(super) rejector: &'static str,
    pub(super) offered: u64,
    pub(super) refused: u64,
    pub(super) late: u64,
    /// When the last request was refused or late; null if none was.
    last_ms: Option<u64>,
}

impl Report {
    pub(super) fn new(seed: u64, seconds: u64) -> Self {
        Self {
            seed,
            seconds,
            capacity_per_s: CAPACITY_PER_S,
            steady: Vec::new(),
            recovery: Vec::new(),
        }
    }
}

impl Steady {
    pub(super) fn new(shield: Shield, load: f64, measured: &Measured) -> Self {
        let wait = |share| measured.waits.quantile(share).map_or(0, Duration::as_millis);
        Self {
            rejector: shield.name(),
            load,
            useful: measured.utilisation,
            late_per_served: measured.late_per_served(),
            wait_p50_ms: wait(0.5),
            wait_p99_ms: wait(0.99),
            refused_share: measured.refused_share(),
            served_share: Tier::ALL.map(|tier| measured.served_share(tier).min(1.0)),
        }
    }
}

impl Recovery {
    pub(super) fn new(shield: Shield, measured: &Measured) -> Self {
        Self {
            rejector: shield.name(),
            offered: measured.offered.iter().sum(),
            refused: measured.refused.iter().sum(),
            late: measured.late.iter().sum(),
            last_ms: measured.last_refusal.map(Duration::as_millis),
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.steady.is_empty() {
            writeln!(
                f,
                "{:<13}{:>6}{:>9}{:>12}{:>13}{:>10}{:>9}{:>9}",
                "rejector", "load", "useful", "late/served", "wait p50-p99", "refused", "t0", "t5"
            )?;
        }
        for row in &self.steady {
            let waits = format!("{}-{} ms", row.wait_p50_ms, row.wait_p99_ms);
            writeln!(
                f,
                "{:<13}{:>5}x{:>9.3}{:>12.3}{:>13}{:>9.1}%{:>8.1}%{:>8.1}%",
                row.rejector,
                row.load,
                row.useful,
                row.late_per_served,
                waits,
                row.refused_share * 100.0,
                row.served_share[0] * 100.0,
                row.served_share[5] * 100.0
            )?;
        }
        if !self.recovery.is_empty() {
            let title = "recovery";
            writeln!(
                f,
                "\n{title:<13}{:>9}{:>9}{:>9}{:>12}",
                "offered", "refused", "late", "until"
            )?;
        }
        for row in &self.recovery {
            let until = row.last_ms.map_or_else(|| "-".to_owned(), |ms| format!("{ms} ms"));
            let (rejector, offered) = (row.rejector, row.offered);
            writeln!(f, "{rejector:<13}{offered:>9}{:>9}{:>9}{until:>12}", row.refused, row.late)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_stand_below_their_names() {
        let mut report = Report::new(1, 2);
        let measured = Measured::default();
        report.steady.push(Steady::new(Shield::FeedForward, 30.0, &measured));
        report.recovery.push(Recovery::new(Shield::Off, &measured));
        let text = report.to_string();
        let lengths: Vec<usize> = text.lines().map(str::len).collect();
        assert_eq!(lengths, [81, 81, 0, 52, 52], "{text}");
    }
}
