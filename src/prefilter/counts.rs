//! What came of asking: counted by each thread for itself, summed when somebody looks.
//!
//! A shared counter would be the only word that threads with a hot denied key fight for. So
//! each has a lane on cache lines of its own, written by it alone with a plain load and store.

use std::sync::atomic::{AtomicU64, Ordering};

use crossbeam_utils::CachePadded;

/// The counters of one thread.
#[derive(Debug, Default)]
pub(crate) struct Lane(CachePadded<Counters>);

#[derive(Debug, Default)]
struct Counters {
    answered: AtomicU64,
    missed: AtomicU64,
    repeated: AtomicU64,
    remembered: AtomicU64,
    displaced: AtomicU64,
}

/// The sum over threads.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Counts {
    /// Questions that the memory had an answer to. A request that is planned a second time asks
    /// twice.
    pub(crate) answered: u64,
    /// Questions that went on to the engine.
    pub(crate) missed: u64,
    /// Requests that were denied from memory, each counted once.
    pub(crate) repeated: u64,
    /// Denials remembered in a free place, or over one of the same bucket and cost.
    pub(crate) remembered: u64,
    /// Denials remembered over one of another bucket that still held.
    pub(crate) displaced: u64,
}

impl Lane {
    pub(super) fn answered(&self) {
        count(&self.0.answered);
    }

    pub(super) fn missed(&self) {
        count(&self.0.missed);
    }

    /// A client is told what the memory has answered.
    pub(crate) fn repeated(&self) {
        count(&self.0.repeated);
    }

    pub(super) fn remembered(&self) {
        count(&self.0.remembered);
    }

    pub(super) fn displaced(&self) {
        count(&self.0.displaced);
    }

    pub(super) fn add_to(&self, sum: &mut Counts) {
        let Counters { answered, missed, repeated, remembered, displaced } = &*self.0;
        sum.answered += answered.load(Ordering::Relaxed);
        sum.missed += missed.load(Ordering::Relaxed);
        sum.repeated += repeated.load(Ordering::Relaxed);
        sum.remembered += remembered.load(Ordering::Relaxed);
        sum.displaced += displaced.load(Ordering::Relaxed);
    }
}

fn count(counter: &AtomicU64) {
    counter.store(counter.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
}
