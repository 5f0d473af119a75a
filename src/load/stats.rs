//! What a load manager has done so far, and how it stands.
//!
//! Totals only grow. What is refused is counted by its reason and by its tier.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::time::Duration;

use super::cut::Cut;
use super::level::Level;
use super::pressure::Pressures;
use super::request::{Reason, Work};
use super::tier::Tier;

/// Totals as they are counted.
#[derive(Debug, Default)]
pub(super) struct Totals {
    pub(super) offered: [AtomicU64; Tier::ALL.len()],
    pub(super) refused: [AtomicU64; Tier::ALL.len()],
    pub(super) by_reason: [AtomicU64; Reason::ALL.len()],
    pub(super) served: AtomicU64,
    pub(super) failed: AtomicU64,
    pub(super) cancelled: AtomicU64,
}

impl Totals {
    pub(super) fn offer(&self, tier: Tier) {
        add(&self.offered[usize::from(tier.number())]);
    }

    pub(super) fn refuse(&self, tier: Tier, reason: Reason) {
        add(&self.refused[usize::from(tier.number())]);
        add(&self.by_reason[reason as usize]);
    }
}

pub(super) fn add(total: &AtomicU64) {
    total.fetch_add(1, Ordering::Relaxed);
}

fn all<const N: usize>(totals: &[AtomicU64; N]) -> [u64; N] {
    std::array::from_fn(|place| totals[place].load(Ordering::Relaxed))
}

/// How a load manager stands, with its totals since it was made.
#[derive(Clone, Debug, PartialEq)]
pub struct Stats {
    /// Requests that came, by tier.
    pub offered: [u64; Tier::ALL.len()],
    /// Requests refused, before or after they waited, by tier.
    pub refused: [u64; Tier::ALL.len()],
    refused_by_reason: [u64; Reason::ALL.len()],
    /// Requests that were worked on and done well.
    pub served: u64,
    /// Requests that were worked on and failed.
    pub failed: u64,
    /// Requests whose caller gave up, before or during the work.
    pub cancelled: u64,
    /// The level in force.
    pub level: Level,
    /// The level that somebody has pinned.
    pub forced: Option<Level>,
    /// The smoothed pressure that moves the level.
    pub pressure: f64,
    /// What the last look read.
    pub pressures: Pressures,
    /// By kind of work, in the order of [`Work::ALL`].
    pub lanes: [LaneStats; Work::ALL.len()],
}

/// How one kind of work stands.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LaneStats {
    pub waiting: u64,
    pub in_flight: u64,
    pub in_flight_max: u32,
    /// The longest wait.
    pub timeout: Duration,
    /// The share that the rejector would admit, 0.0 to 1.0.
    pub admit: f64,
    /// What is refused.
    pub cut: Cut,
}

impl Stats {
    /// Requests refused for this reason.
    pub fn refused_for(&self, reason: Reason) -> u64 {
        self.refused_by_reason[reason as usize]
    }

    pub(super) fn of(totals: &Totals, level: Level, lanes: [LaneStats; Work::ALL.len()]) -> Self {
        Self {
            offered: all(&totals.offered),
            refused: all(&totals.refused),
            refused_by_reason: all(&totals.by_reason),
            served: totals.served.load(Ordering::Relaxed),
            failed: totals.failed.load(Ordering::Relaxed),
            cancelled: totals.cancelled.load(Ordering::Relaxed),
            level,
            forced: None,
            pressure: 0.0,
            pressures: Pressures::default(),
            lanes,
        }
    }
}
