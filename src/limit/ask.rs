//! One question put to an algorithm, and the arithmetic of the answers.
//!
//! Every algorithm answers through [`Ask::allow`] and [`Ask::deny`], so that the five figures
//! mean the same everywhere. Units: microseconds.

use crate::time::Duration;

use super::decision::{Decision, Verdict};

/// A request at a moment against a capacity above zero.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ask {
    pub(super) capacity: u64,
    pub(super) cost: u64,
    pub(super) window_us: u64,
    pub(super) now_us: u64,
    /// When the period of a calendar began; of no meaning for another align.
    pub(super) start_us: u64,
}

impl Ask {
    /// What was spent up to and including this moment counts no more; `None` where all counts,
    /// because time is younger than the window.
    pub(super) const fn horizon_us(&self) -> Option<u64> {
        self.now_us.checked_sub(self.window_us)
    }

    /// Whether the cost fits beside what is used. Zero always does.
    pub(super) const fn fits(&self, used: u64) -> bool {
        self.cost <= self.capacity.saturating_sub(used)
    }

    /// How much must be forgotten first where the cost does not fit but could; at most `used`.
    pub(super) const fn excess(&self, used: u64) -> u64 {
        let over = used.saturating_sub(self.capacity);
        let free = self.capacity.saturating_sub(used);
        over.saturating_add(self.cost.saturating_sub(free))
    }

    /// Whether no wait can help.
    pub(super) const fn is_never(&self) -> bool {
        self.cost > self.capacity
    }

    /// `used` counts this request.
    pub(super) const fn allow(&self, used: u64, reset_us: u64) -> Decision {
        self.decision(Verdict::Allow, used, reset_us)
    }

    /// The wait is dropped where none can help.
    pub(super) const fn deny(&self, used: u64, retry_us: u64, reset_us: u64) -> Decision {
        let retry_after =
            if self.is_never() { None } else { Some(Duration::from_micros(retry_us)) };
        self.decision(Verdict::Deny { retry_after }, used, reset_us)
    }

    const fn decision(&self, verdict: Verdict, used: u64, reset_us: u64) -> Decision {
        Decision {
            verdict,
            limit: self.capacity,
            remaining: self.capacity.saturating_sub(used),
            reset_after: Duration::from_micros(reset_us),
        }
    }
}

/// Rounds down, saturates, and is quick where both fit 64 bits, as they nearly always do.
pub(super) fn quotient(dividend: u128, divisor: u64) -> u64 {
    match u64::try_from(dividend) {
        Ok(dividend) => dividend / divisor,
        Err(_) => u64::try_from(dividend / u128::from(divisor)).unwrap_or(u64::MAX),
    }
}

/// As [`quotient`], but rounds up.
pub(super) fn quotient_ceil(dividend: u128, divisor: u64) -> u64 {
    quotient(dividend.saturating_add(u128::from(divisor - 1)), divisor)
}
