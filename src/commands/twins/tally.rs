//! How often each twin has answered, and how often it has declined.
//!
//! Every worker counts for itself, so nothing is shared between writers; sums are made when INFO
//! or a scrape asks.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::{COUNT, Declined, Number, all};

/// The counters of one worker, by the twins' numbers.
#[derive(Debug)]
pub(in super::super) struct Tally([Counter; COUNT]);

#[derive(Debug, Default)]
struct Counter {
    answered: AtomicU64,
    declined: AtomicU64,
}

/// What one twin has counted.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct TwinCounts {
    pub(crate) name: &'static str,
    pub(crate) answered: u64,
    pub(crate) declined: u64,
}

impl Default for Tally {
    fn default() -> Self {
        Self(std::array::from_fn(|_| Counter::default()))
    }
}

impl Tally {
    pub(in super::super) fn count(&self, number: Number, result: Result<(), Declined>) {
        let counter = &self.0[usize::from(number)];
        let counter = if result.is_ok() { &counter.answered } else { &counter.declined };
        // Only the worker itself writes, so no read-modify-write is needed.
        counter.store(counter.load(Relaxed) + 1, Relaxed);
    }

    pub(in super::super) fn add_to(&self, sums: &mut [TwinCounts]) {
        for (sum, counter) in sums.iter_mut().zip(&self.0) {
            sum.answered += counter.answered.load(Relaxed);
            sum.declined += counter.declined.load(Relaxed);
        }
    }
}

impl TwinCounts {
    /// Of every twin, in the order of their numbers: nothing yet.
    pub(in super::super) fn none() -> Vec<Self> {
        all().map(|twin| Self { name: twin.name, answered: 0, declined: 0 }).collect()
    }
}
