//! What one worker has seen and given up under load: written by it alone, read by whoever asks.
//!
//! While all is calm only the time that its batches took is added up, once a batch.

use std::sync::atomic::{AtomicU64, Ordering};

use crossbeam_utils::CachePadded;

use crate::time::Duration;

/// Why a request got less than an exact answer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Reason {
    /// It was among the least important, of which a share is refused.
    Shed,
    /// Level 3 gives up requests of its tier.
    Emergency,
    /// A signal of its tenant says that this tenant is full.
    TenantSignal,
    /// It would have made a new key at level 3.
    NewKey,
}

impl Reason {
    pub(crate) const ALL: [Self; 4] =
        [Self::Shed, Self::Emergency, Self::TenantSignal, Self::NewKey];

    /// As DETAIL, INFO and metrics call it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Shed => "shed",
            Self::Emergency => "emergency",
            Self::TenantSignal => "tenant_signal",
            Self::NewKey => "new_key",
        }
    }
}

/// What a request got instead.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Instead {
    /// An error that asks to come back.
    Refused,
    /// A made-up answer, one way or the other.
    Allowed,
    Denied,
}

impl Instead {
    pub(crate) const ALL: [Self; 3] = [Self::Refused, Self::Allowed, Self::Denied];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Refused => "refused",
            Self::Allowed => "allowed",
            Self::Denied => "denied",
        }
    }
}

/// The counters of one thread, and its dice.
#[derive(Debug)]
pub(crate) struct Lane(CachePadded<Counters>);

#[derive(Debug, Default)]
struct Counters {
    busy_us: AtomicU64,
    offered: AtomicU64,
    admitted: AtomicU64,
    given_up: [[AtomicU64; Instead::ALL.len()]; Reason::ALL.len()],
    dice: AtomicU64,
}

/// The sum over threads.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Counts {
    /// Time spent on batches.
    pub(crate) busy_us: u64,
    /// Requests that could have been refused, while some were.
    pub(crate) offered: u64,
    /// Of them, those that were not.
    pub(crate) admitted: u64,
    /// By reason, and by what was answered instead.
    pub(crate) given_up: [[u64; Instead::ALL.len()]; Reason::ALL.len()],
}

impl Lane {
    /// `seed` sets where the dice begin.
    pub(super) fn new(seed: u64) -> Self {
        Self(CachePadded::new(Counters { dice: seed.into(), ..Counters::default() }))
    }

    #[inline]
    pub(in crate::commands) fn was_busy(&self, span: Duration) {
        add(&self.0.busy_us, span.as_micros());
    }

    pub(super) fn offered(&self) {
        add(&self.0.offered, 1);
    }

    pub(super) fn admitted(&self) {
        add(&self.0.admitted, 1);
    }

    pub(super) fn gave_up(&self, reason: Reason, instead: Instead) {
        add(&self.0.given_up[reason as usize][instead as usize], 1);
    }

    /// Evenly spread over 32 bits: a Weyl sequence through a mixing of its bits.
    pub(super) fn throw(&self) -> u32 {
        let next = self.0.dice.load(Ordering::Relaxed).wrapping_add(0x9e37_79b9_7f4a_7c15);
        self.0.dice.store(next, Ordering::Relaxed);
        let mixed = (next ^ (next >> 31)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        ((mixed ^ (mixed >> 29)) >> 32) as u32
    }

    pub(super) fn add_to(&self, sum: &mut Counts) {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        sum.busy_us += read(&self.0.busy_us);
        sum.offered += read(&self.0.offered);
        sum.admitted += read(&self.0.admitted);
        for (sums, counters) in sum.given_up.iter_mut().zip(&self.0.given_up) {
            for (sum, counter) in sums.iter_mut().zip(counters) {
                *sum += read(counter);
            }
        }
    }
}

/// Only the owning thread writes.
fn add(counter: &AtomicU64, by: u64) {
    counter.store(counter.load(Ordering::Relaxed).wrapping_add(by), Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_kept_by_reason_and_answer() {
        let (lane, other) = (Lane::new(1), Lane::new(2));
        lane.gave_up(Reason::Shed, Instead::Refused);
        other.gave_up(Reason::Shed, Instead::Refused);
        lane.gave_up(Reason::Emergency, Instead::Denied);
        lane.was_busy(Duration::from_millis(2));
        let mut sum = Counts::default();
        lane.add_to(&mut sum);
        other.add_to(&mut sum);
        assert_eq!(sum.given_up[Reason::Shed as usize], [2, 0, 0]);
        assert_eq!(sum.given_up[Reason::Emergency as usize], [0, 0, 1]);
        assert_eq!(sum.busy_us, 2_000);
    }

    #[test]
    fn dice_are_even_and_differ_by_seed() {
        let lane = Lane::new(7);
        let low = (0..100_000).filter(|_| lane.throw() < u32::MAX / 10).count();
        assert!((9_700..=10_300).contains(&low), "{low}");
        assert_ne!(Lane::new(1).throw(), Lane::new(2).throw());
    }
}
