//! What is refused right now: a priority and a share, and the word that publishes them.
//!
//! A [`Cut`] refuses all that is less important than one priority, and of that priority itself
//! a share, drawn by dice: without the share, a coarse mix of priorities would jump between too
//! little and too much. [`Standing`] is the cut and the level in 64 bits, so that a thread which
//! decides reads one atomic word for a whole batch.
//!
//! Dice are whole numbers of 32 bits, evenly spread; who asks brings them.

use super::level::Level;
use super::tier::{PRIORITIES, Priority};

const SHARE_BITS: u32 = 32;
const PRIORITY_BITS: u32 = 10;

const _: () = assert!(PRIORITIES < 1 << PRIORITY_BITS);

/// Which requests are refused.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Cut {
    /// The least important priority that is not refused as a whole; [`PRIORITIES`] where no
    /// request is refused.
    priority: u16,
    /// How much of that priority is refused, in parts of 2^32; the largest number is all.
    share: u32,
}

impl Default for Cut {
    fn default() -> Self {
        Self::NONE
    }
}

impl Cut {
    /// Refuses nobody.
    pub const NONE: Self = Self { priority: PRIORITIES as u16, share: 0 };

    /// Refuses what is less important than `at`, and of `at` itself `share`, 0.0 to 1.0.
    pub fn new(at: Priority, share: f64) -> Self {
        // A float that is no number becomes 0, one that is too large the largest.
        let share = (share * 2_f64.powi(32)).round() as u32;
        let cut = Self { priority: at.number(), share };
        // Nothing of the very least is nothing: one word for one meaning.
        if share == 0 && usize::from(cut.priority) == PRIORITIES - 1 { Self::NONE } else { cut }
    }

    /// Whether a request is refused; `dice` is its own throw.
    pub const fn refuses(self, priority: Priority, dice: u32) -> bool {
        let number = priority.number();
        number > self.priority
            || number == self.priority && (dice < self.share || self.share == u32::MAX)
    }

    /// Whether all pass.
    pub const fn is_none(self) -> bool {
        self.priority as usize >= PRIORITIES
    }

    /// The priority at which it cuts; none where all pass.
    pub fn at(self) -> Option<u16> {
        (!self.is_none()).then_some(self.priority)
    }

    /// How much of the priority at which it cuts is refused, 0.0 to 1.0.
    pub fn share(self) -> f64 {
        if self.share == u32::MAX { 1.0 } else { f64::from(self.share) / 2_f64.powi(32) }
    }
}

/// The level and the cut in force.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Standing {
    pub level: Level,
    pub cut: Cut,
}

impl Standing {
    /// Level normal and no cut: nothing is to be looked at further. Its word is 0.
    pub const CALM: Self = Self { level: Level::Normal, cut: Cut::NONE };

    /// As one word: 0 when calm, so that a look at calm is a comparison with zero.
    pub const fn word(self) -> u64 {
        // The distance from no cut at all, so that none is 0.
        let distance = PRIORITIES as u64 - self.cut.priority as u64;
        let level = self.level.number() as u64;
        level << (SHARE_BITS + PRIORITY_BITS) | distance << SHARE_BITS | self.cut.share as u64
    }

    /// Reads what [`Standing::word`] made; of any other word, what is nearest.
    pub const fn of_word(word: u64) -> Self {
        let distance = (word >> SHARE_BITS) & ((1 << PRIORITY_BITS) - 1);
        let priority = (PRIORITIES as u64).saturating_sub(distance) as u16;
        let level = match Level::of_number((word >> (SHARE_BITS + PRIORITY_BITS)) as u8) {
            Some(level) => level,
            None => Level::Emergency,
        };
        Self { level, cut: Cut { priority, share: word as u32 } }
    }

    pub const fn is_calm(self) -> bool {
        self.word() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::super::tier::{Cohort, Tier};
    use super::*;

    fn priority(tier: Tier, cohort: u64) -> Priority {
        Priority::new(tier, Cohort::of(cohort))
    }

    #[test]
    fn cut_refuses_the_less_important_and_a_share_of_its_own() {
        let cut = Cut::new(priority(Tier::T3, 10), 0.25);
        assert!(cut.refuses(priority(Tier::T3, 11), u32::MAX));
        assert!(cut.refuses(priority(Tier::T5, 0), u32::MAX));
        assert!(!cut.refuses(priority(Tier::T3, 9), 0));
        let own = priority(Tier::T3, 10);
        assert!(cut.refuses(own, (1 << 30) - 1) && !cut.refuses(own, 1 << 30));
        assert_eq!(cut.at(), Some(3 * 128 + 10));
    }

    #[test]
    fn whole_and_empty_shares_are_exact() {
        let own = priority(Tier::T0, 0);
        for dice in [0, 1, u32::MAX - 1, u32::MAX] {
            assert!(Cut::new(own, 1.0).refuses(own, dice), "{dice}");
            assert!(!Cut::new(own, 0.0).refuses(own, dice), "{dice}");
            assert!(!Cut::new(own, f64::NAN).refuses(own, dice), "{dice}");
            assert!(!Cut::NONE.refuses(priority(Tier::T5, 127), dice), "{dice}");
        }
        assert!(Cut::new(priority(Tier::T5, 127), 0.0).is_none());
        assert!((Cut::new(own, 1.0).share() - 1.0).abs() < f64::EPSILON);
    }

    #[test]
    fn standing_survives_its_word_and_calm_is_zero() {
        assert_eq!(Standing::CALM.word(), 0);
        assert_eq!(Standing::of_word(0), Standing::default());
        for level in Level::ALL {
            for number in [0, 1, 127, 128, 640, 767] {
                let at = priority(Tier::ALL[number / 128], number as u64 % 128);
                for share in [0.0, 0.3, 1.0] {
                    let standing = Standing { level, cut: Cut::new(at, share) };
                    assert_eq!(Standing::of_word(standing.word()), standing);
                    assert_eq!(standing.is_calm(), standing == Standing::CALM);
                }
            }
        }
        assert_eq!(Standing::of_word(u64::MAX).level, Level::Emergency);
    }
}
