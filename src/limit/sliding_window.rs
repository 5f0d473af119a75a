//! Sliding window: the log with moments rounded up to slots of a hundredth of the window.
//!
//! Bound: never more than the capacity in any window `(s, s+W]`. Memory is bounded: at most
//! [`SLOTS`] + 1 slots are alive. The price is that a request may count up to one slot longer
//! than in the exact log, so that a saturated key passes at least `SLOTS / (SLOTS + 1)` of
//! what the exact log would pass.
//!
//! Slots are counted from the epoch, so that a slot means the same before and after a restart.

/// Slots of one window.
pub(super) const SLOTS: u64 = 100;

pub(super) const fn slot_us(window_us: u64) -> u64 {
    window_us.div_ceil(SLOTS)
}
