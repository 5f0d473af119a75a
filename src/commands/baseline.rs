//! What had been counted at the last CONFIG RESETSTAT, for INFO to leave out.
//!
//! Counters themselves go on: their writers never wait for who resets, and what Prometheus reads
//! never goes down. All differences saturate: a count may be read a moment before the baseline.

use std::collections::BTreeMap;

use super::host::Facts;
use super::tally::CommandCounts;
use crate::engine::Stats;

/// Nothing, until the first reset.
#[derive(Clone, Debug, Default)]
pub(super) struct Baseline {
    pub(super) facts: Facts,
    pub(super) stats: Stats,
    /// By number of the command or subcommand.
    pub(super) entries: Vec<CommandCounts>,
    pub(super) errors: BTreeMap<String, u64>,
}

impl Baseline {
    /// The counts of all entries without what was before.
    pub(super) fn entries_since(&self, mut counts: Vec<CommandCounts>) -> Vec<CommandCounts> {
        for (count, before) in counts.iter_mut().zip(&self.entries) {
            *count = count.since(before);
        }
        counts
    }

    /// The errors that came after, by code.
    pub(super) fn errors_since(&self, mut counts: BTreeMap<String, u64>) -> BTreeMap<String, u64> {
        for (code, before) in &self.errors {
            if let Some(count) = counts.get_mut(code) {
                *count = count.saturating_sub(*before);
            }
        }
        counts.retain(|_, count| *count > 0);
        counts
    }

    /// What the engine holds now, and has counted after.
    pub(super) fn stats_since(&self, stats: &Stats) -> Stats {
        let before = &self.stats;
        Stats {
            hits: stats.hits.saturating_sub(before.hits),
            misses: stats.misses.saturating_sub(before.misses),
            expired: stats.expired.saturating_sub(before.expired),
            evicted: stats.evicted.saturating_sub(before.evicted),
            allowed: stats.allowed.saturating_sub(before.allowed),
            denied: stats.denied.saturating_sub(before.denied),
            holds_expired: stats.holds_expired.saturating_sub(before.holds_expired),
            ..*stats
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_came_after_is_left() {
        let stats =
            |hits, allowed, used_bytes| Stats { hits, allowed, used_bytes, ..Stats::default() };
        let counts = |calls, bucket| {
            let mut counts = CommandCounts { calls, ..CommandCounts::default() };
            counts.buckets[3] = bucket;
            counts
        };
        let errors = |rows: &[(&str, u64)]| -> BTreeMap<String, u64> {
            rows.iter().map(|(code, count)| ((*code).to_owned(), *count)).collect()
        };
        let baseline = Baseline {
            stats: stats(5, 2, 100),
            entries: vec![counts(7, 3), counts(9, 0)],
            errors: errors(&[("ERR", 2), ("NOAUTH", 1)]),
            ..Baseline::default()
        };
        let left = baseline.stats_since(&stats(6, 2, 40));
        assert_eq!((left.hits, left.allowed, left.used_bytes), (1, 0, 40));
        // The second was read a moment before the baseline.
        let left = baseline.entries_since(vec![counts(10, 4), counts(8, 0)]);
        assert_eq!(left, [counts(3, 1), counts(0, 0)]);
        let left = baseline.errors_since(errors(&[("ERR", 3), ("NOAUTH", 1), ("OOM", 4)]));
        assert_eq!(left, errors(&[("ERR", 1), ("OOM", 4)]));
    }
}
