//! Numbers that differ from process to process: so that many callers do not return together.

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::time::Duration;

/// A sequence of numbers that look random: good for spreading, not for secrets.
#[derive(Debug)]
pub(super) struct Dice(AtomicU64);

impl Dice {
    pub(super) fn new() -> Self {
        Self(AtomicU64::new(RandomState::new().hash_one(0_u8)))
    }

    /// A span from `least` to `most`, both possible; `least` if it is the larger.
    pub(super) fn between(&self, least: Duration, most: Duration) -> Duration {
        let least_us = least.as_micros();
        let room_us = most.as_micros().saturating_sub(least_us);
        let share = u128::from(self.roll()) * (u128::from(room_us) + 1);
        Duration::from_micros(least_us + (share >> 64) as u64)
    }

    /// `SplitMix64`.
    fn roll(&self) -> u64 {
        const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
        let mut mixed = self.0.fetch_add(STEP, Ordering::Relaxed).wrapping_add(STEP);
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_fill_the_range_and_stay_in_it() {
        let dice = Dice(AtomicU64::new(1));
        let us = Duration::from_micros;
        let mut seen = [0; 4];
        for _ in 0..1_000 {
            seen[dice.between(us(2), us(5)).as_micros() as usize - 2] += 1;
        }
        assert!(seen.iter().all(|count| (200..300).contains(count)), "{seen:?}");
        assert_eq!(dice.between(us(9), us(3)), us(9));
        assert!(dice.between(us(0), us(u64::MAX)) > us(0));
    }
}
