//! Counters of one worker thread: written by it alone, read by whoever asks.
//!
//! Nothing here is shared between writers, so counting is a plain load and store on the
//! thread's own cache lines. Sums over the workers are made when INFO or a scrape asks.
//!
//! Invariant: nothing here goes down. CONFIG RESETSTAT keeps what was counted (`baseline.rs`).

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use smallvec::SmallVec;

use crate::protocol::Error;
use crate::time::Duration;

/// Upper bounds of the duration buckets in nanoseconds: powers of four from 250 ns on; what is
/// longer than the last falls into one more.
pub(crate) const BUCKET_BOUNDS_NS: [u64; 14] = {
    let mut bounds = [250; 14];
    let mut at = 1;
    while at < bounds.len() {
        bounds[at] = bounds[at - 1] * 4;
        at += 1;
    }
    bounds
};

/// Distinct error codes that are counted by name; further ones are counted as `other`.
const ERROR_CODES_MAX: usize = 64;

#[derive(Debug)]
pub(crate) struct Tally {
    commands: Box<[CommandTally]>,
    errors: Mutex<BTreeMap<String, u64>>,
}

/// Calls of one command in a row.
#[derive(Debug)]
struct Run {
    command: u16,
    calls: u32,
    /// Of them, answered with an error.
    failed: u32,
}

/// Different commands of a script or of a short batch.
const RUNS_USUAL: usize = 8;

/// Calls whose time is not known one by one.
#[derive(Debug, Default)]
pub(super) struct Runs(SmallVec<[Run; RUNS_USUAL]>);

impl Runs {
    /// In order, repeats joined: the next to fail is the one counted last.
    pub(super) fn count(&mut self, command: u16) {
        match self.0.last_mut() {
            Some(last) if last.command == command => last.calls += 1,
            _ => self.0.push(Run { command, calls: 1, failed: 0 }),
        }
    }

    /// The call counted last has failed.
    pub(super) fn fail(&mut self) {
        if let Some(last) = self.0.last_mut() {
            last.failed += 1;
        }
    }

    /// In any order, so that there are never more runs than commands.
    pub(super) fn count_joined(&mut self, command: u16, failed: bool) {
        let failed = u32::from(failed);
        match self.0.iter_mut().find(|run| run.command == command) {
            Some(run) => {
                run.calls = run.calls.saturating_add(1);
                run.failed = run.failed.saturating_add(failed);
            }
            None => self.0.push(Run { command, calls: 1, failed }),
        }
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}

/// Success and failure are counted apart, so that neither seems to go down to who reads while
/// the other is being written.
#[derive(Debug, Default)]
pub(crate) struct CommandTally {
    succeeded: AtomicU64,
    failed: AtomicU64,
    rejected: AtomicU64,
    nanos: AtomicU64,
    buckets: [AtomicU64; BUCKET_BOUNDS_NS.len() + 1],
}

/// A sum over workers.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct CommandCounts {
    /// How often the command was carried out.
    pub(crate) calls: u64,
    pub(crate) nanos: u64,
    /// Refused before they were carried out; no part of `calls`.
    pub(crate) rejected: u64,
    /// Of the `calls`, answered with an error.
    pub(crate) failed: u64,
    /// By [`BUCKET_BOUNDS_NS`]; not cumulative.
    pub(crate) buckets: [u64; BUCKET_BOUNDS_NS.len() + 1],
}

impl Tally {
    pub(super) fn new(commands: usize) -> Self {
        let commands = (0..commands).map(|_| CommandTally::default()).collect();
        Self { commands, errors: Mutex::default() }
    }

    pub(super) fn command(&self, number: u16) -> &CommandTally {
        &self.commands[usize::from(number)]
    }

    /// Counts the calls, each with its share of the time that they took together.
    pub(super) fn share(&self, runs: &mut Runs, took: Duration) {
        let calls = runs.0.iter().map(|run| u64::from(run.calls)).sum();
        let Some(nanos_each) = (took.as_micros() * 1_000).checked_div(calls) else { return };
        for Run { command, calls, failed } in runs.0.drain(..) {
            self.command(command).answered(u64::from(calls), u64::from(failed), nanos_each);
        }
    }

    pub(super) fn error(&self, error: &Error) {
        if matches!(error, Error::PassedOn(_)) {
            return;
        }
        let mut errors = self.errors.lock();
        let code = error.code();
        let known = errors.len() < ERROR_CODES_MAX || errors.contains_key(&*code);
        let code = if known { code } else { "other".into() };
        *errors.entry(code.into_owned()).or_default() += 1;
    }

    pub(super) fn add_errors(&self, sums: &mut BTreeMap<String, u64>) {
        for (code, count) in self.errors.lock().iter() {
            *sums.entry(code.clone()).or_default() += count;
        }
    }
}

impl CommandCounts {
    /// What was counted after `before`.
    pub(super) fn since(&self, before: &Self) -> Self {
        Self {
            calls: self.calls.saturating_sub(before.calls),
            nanos: self.nanos.saturating_sub(before.nanos),
            rejected: self.rejected.saturating_sub(before.rejected),
            failed: self.failed.saturating_sub(before.failed),
            buckets: std::array::from_fn(|at| self.buckets[at].saturating_sub(before.buckets[at])),
        }
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.calls += other.calls;
        self.nanos += other.nanos;
        self.rejected += other.rejected;
        self.failed += other.failed;
        for (sum, bucket) in self.buckets.iter_mut().zip(&other.buckets) {
            *sum += bucket;
        }
    }
}

impl CommandTally {
    /// `failed` of the `calls` were answered with an error.
    #[inline]
    pub(super) fn answered(&self, calls: u64, failed: u64, nanos_each: u64) {
        add(&self.succeeded, calls - failed);
        if failed > 0 {
            add(&self.failed, failed);
        }
        add(&self.nanos, calls * nanos_each);
        let bucket = BUCKET_BOUNDS_NS.partition_point(|bound| *bound < nanos_each);
        add(&self.buckets[bucket], calls);
    }

    pub(super) fn rejected(&self) {
        add(&self.rejected, 1);
    }

    pub(super) fn add_to(&self, sum: &mut CommandCounts) {
        let failed = self.failed.load(Ordering::Relaxed);
        sum.calls += self.succeeded.load(Ordering::Relaxed) + failed;
        sum.failed += failed;
        sum.rejected += self.rejected.load(Ordering::Relaxed);
        sum.nanos += self.nanos.load(Ordering::Relaxed);
        for (sum, bucket) in sum.buckets.iter_mut().zip(&self.buckets) {
            *sum += bucket.load(Ordering::Relaxed);
        }
    }
}

/// Only the owning thread writes, so no read-modify-write is needed.
fn add(counter: &AtomicU64, by: u64) {
    counter.store(counter.load(Ordering::Relaxed).wrapping_add(by), Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_fall_into_the_bucket_that_bounds_them() {
        let tally = Tally::new(1);
        for nanos in [0, 250, 251, 1_000, u64::MAX / 8] {
            tally.command(0).answered(1, u64::from(nanos == 250), nanos);
        }
        let mut sum = CommandCounts::default();
        tally.command(0).add_to(&mut sum);
        assert_eq!((sum.calls, sum.failed), (5, 1));
        assert_eq!(sum.buckets[0], 2);
        assert_eq!(sum.buckets[1], 2);
        assert_eq!(sum.buckets[BUCKET_BOUNDS_NS.len()], 1);
    }
}
