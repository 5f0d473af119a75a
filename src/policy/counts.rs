//! What has been decided by a tenant's policy, counted where every worker finds it at once.
//!
//! Counts outlive a change of the document: a tenant's go on under its name, a rule's under the
//! rule's name.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// Of one tenant.
#[derive(Debug, Default)]
pub(crate) struct TenantCounts {
    counts: [AtomicU64; Counted::ALL.len()],
    is_limited: AtomicBool,
}

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
