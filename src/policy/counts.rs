//! What has been decided by a tenant's policy, counted where every worker finds it at once.
//!
//! Counts outlive a change of the document: a tenant's go on under its name, a rule's under the
//! rule's name.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};

use parking_lot::Mutex;

/// Of one tenant.
#[derive(Debug, Default)]
pub(crate) struct TenantCounts {
    counts: [AtomicU64; Counted::ALL.len()],
    is_limited: AtomicBool,
    recent: Mutex<Recent>,
    /// Of [`SHARE_WHOLE`], how much was not admitted of late.
    denied_share: AtomicU32,
}

/// The seconds that the share of what is admitted looks back over.
const RECENT_SECONDS: usize = 10;

/// All of it, as a whole number.
const SHARE_WHOLE: u32 = 1 << 30;

/// What had been allowed and denied at the last full seconds, the oldest first.
#[derive(Debug, Default)]
struct Recent(VecDeque<(u64, u64)>);

/// What is counted of a tenant.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Counted {
    Allowed,
    Denied,
    /// No rule applied.
    Unmatched,
    /// There was no room for a bucket, and the answer was made up.
    Degraded,
    /// Reservations that came to more than was estimated: charged all the same.
    Overspent,
}

impl Counted {
    pub(crate) const ALL: [Self; 5] =
        [Self::Allowed, Self::Denied, Self::Unmatched, Self::Degraded, Self::Overspent];

    /// As metrics and INFO call it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Allowed => "allowed",
            Self::Denied => "denied",
            Self::Unmatched => "unmatched",
            Self::Degraded => "degraded",
            Self::Overspent => "overspent",
        }
    }
}

impl TenantCounts {
    #[inline]
    pub(crate) fn count(&self, what: Counted) {
        self.counts[what as usize].fetch_add(1, Relaxed);
        if what == Counted::Denied && !self.is_limited.load(Relaxed) {
            self.is_limited.store(true, Relaxed);
        }
    }

    pub(crate) fn of(&self, what: Counted) -> u64 {
        self.counts[what as usize].load(Relaxed)
    }

    /// Once a second: what has happened since goes into the share.
    pub(crate) fn note_second(&self) {
        if !self.is_limited() {
            return;
        }
        let now = (self.of(Counted::Allowed), self.of(Counted::Denied));
        let mut recent = self.recent.lock();
        recent.0.push_back(now);
        if recent.0.len() > RECENT_SECONDS + 1 {
            recent.0.pop_front();
        }
        // Before the first second is over nothing had been counted.
        let then = recent.0.front().filter(|_| recent.0.len() > 1).copied().unwrap_or_default();
        let (allowed, denied) = (now.0 - then.0, now.1 - then.1);
        let Some(all) = allowed.checked_add(denied).filter(|all| *all > 0) else { return };
        let share = denied as f64 / all as f64 * f64::from(SHARE_WHOLE);
        self.denied_share.store(share as u32, Relaxed);
    }

    /// The share of its decisions that allowed over the last ten seconds, or the last ones in which
    /// there were any; 1 where nothing was denied.
    pub(crate) fn admitted_share(&self) -> f64 {
        1.0 - f64::from(self.denied_share.load(Relaxed)) / f64::from(SHARE_WHOLE)
    }

    /// Whether anything was ever denied.
    #[inline]
    pub(crate) fn is_limited(&self) -> bool {
        self.is_limited.load(Relaxed)
    }
}

/// Of one rule. It is no part of what a document says, so any two are equal.
#[derive(Clone, Debug, Default)]
pub(crate) struct RuleCounts(Arc<RuleCounters>);

#[derive(Debug, Default)]
pub(crate) struct RuleCounters {
    pub(crate) denied: AtomicU64,
    /// What it would have denied, had it been enforced.
    pub(crate) shadow_denied: AtomicU64,
    /// What its candidate would have denied.
    pub(crate) candidate_denied: AtomicU64,
}

impl PartialEq for RuleCounts {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl std::ops::Deref for RuleCounts {
    type Target = RuleCounters;

    fn deref(&self) -> &RuleCounters {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn second(counts: &TenantCounts, allowed: usize, denied: usize) {
        (0..allowed).for_each(|_| counts.count(Counted::Allowed));
        (0..denied).for_each(|_| counts.count(Counted::Denied));
        counts.note_second();
    }

    fn percent(counts: &TenantCounts) -> i64 {
        (counts.admitted_share() * 100.0).round() as i64
    }

    #[test]
    fn share_is_that_of_the_last_ten_seconds() {
        let counts = TenantCounts::default();
        second(&counts, 100, 0);
        assert_eq!(percent(&counts), 100);
        second(&counts, 10, 30);
        for _ in 0..9 {
            second(&counts, 10, 30);
        }
        assert_eq!(percent(&counts), 25);
        for _ in 0..10 {
            second(&counts, 10, 0);
        }
        assert_eq!(percent(&counts), 100);
    }

    #[test]
    fn share_stands_while_nothing_is_decided() {
        let counts = TenantCounts::default();
        second(&counts, 10, 10);
        for _ in 0..30 {
            second(&counts, 0, 0);
        }
        assert_eq!(percent(&counts), 50);
    }
}
