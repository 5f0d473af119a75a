//! Who goes first: [`Tier`], [`Cohort`], and the [`Priority`] that the two make.
//!
//! Six tiers alone are too coarse to shed by: giving up one would give up a sixth of the load or
//! more at a blow. So each tier is cut into 128 cohorts of users. A cohort is a hash of the user
//! and the hour: within an hour the same users are refused on every service, so that a call
//! which needs five services does not fail at the fifth, and in the next hour it is others.
//!
//! A priority counts from 0, the most important, to 767: `tier * 128 + cohort`.

use crate::time::Timestamp;

/// Cohorts of each tier.
pub const COHORTS: u16 = 128;

/// How many priorities there are.
pub const PRIORITIES: usize = Tier::ALL.len() * COHORTS as usize;

/// One hour, in microseconds: how long a cohort keeps its users.
const HOUR_US: u64 = 3_600_000_000;

/// How important requests are: `T0` is the most important, and given up last.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[repr(u8)]
pub enum Tier {
    T0,
    T1,
    T2,
    T3,
    T4,
    T5,
}

impl Tier {
    /// From the most to the least important.
    pub const ALL: [Self; 6] = [Self::T0, Self::T1, Self::T2, Self::T3, Self::T4, Self::T5];

    /// 0 to 5.
    pub const fn number(self) -> u8 {
        self as u8
    }

    /// `t0` to `t5`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::T0 => "t0",
            Self::T1 => "t1",
            Self::T2 => "t2",
            Self::T3 => "t3",
            Self::T4 => "t4",
            Self::T5 => "t5",
        }
    }

    /// Reads `t0` to `t5`, in any case.
    pub fn parse(word: &[u8]) -> Option<Self> {
        match word {
            [b't' | b'T', digit @ b'0'..=b'5'] => Some(Self::ALL[usize::from(digit - b'0')]),
            _ => None,
        }
    }
}

/// One of the 128 parts into which the users of a tier fall.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Cohort(u8);

impl Cohort {
    /// From a hash of the user together with the hour, which must be the same on every service
    /// that is to refuse the same users.
    pub const fn of(user_and_hour: u64) -> Self {
        Self((user_and_hour % COHORTS as u64) as u8)
    }

    /// From a hash of the user alone; the hour of `now` is mixed in here.
    pub const fn of_user(user: u64, now: Timestamp) -> Self {
        let hour = now.as_micros() / HOUR_US;
        Self::of(mixed(user ^ mixed(hour)))
    }

    /// 0 to 127.
    pub const fn number(self) -> u8 {
        self.0
    }
}

/// The finish of `SplitMix64`: every bit of the input moves about half of the output.
pub(super) const fn mixed(mut bits: u64) -> u64 {
    bits = bits.wrapping_add(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

/// A tier and a cohort in one number, 0 to 767; the smaller, the more important.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Priority(u16);

impl Priority {
    pub const fn new(tier: Tier, cohort: Cohort) -> Self {
        Self(tier.number() as u16 * COHORTS + cohort.0 as u16)
    }

    /// 0 to 767.
    pub const fn number(self) -> u16 {
        self.0
    }

    pub const fn tier(self) -> Tier {
        Tier::ALL[(self.0 / COHORTS) as usize]
    }

    pub const fn cohort(self) -> Cohort {
        Cohort((self.0 % COHORTS) as u8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Duration;

    #[test]
    fn tiers_are_read_as_they_are_written() {
        for tier in Tier::ALL {
            assert_eq!(Tier::parse(tier.name().as_bytes()), Some(tier));
            assert_eq!(Tier::parse(tier.name().to_uppercase().as_bytes()), Some(tier));
            assert_eq!(Tier::ALL[usize::from(tier.number())], tier);
        }
        for word in ["", "t", "t6", "t00", "0", "x0"] {
            assert_eq!(Tier::parse(word.as_bytes()), None, "{word}");
        }
    }

    #[test]
    fn priority_orders_by_tier_and_then_by_cohort() {
        let mut last = None;
        for tier in Tier::ALL {
            for cohort in 0..u64::from(COHORTS) {
                let priority = Priority::new(tier, Cohort::of(cohort));
                assert_eq!((priority.tier(), priority.cohort()), (tier, Cohort::of(cohort)));
                assert!(last < Some(priority), "{priority:?}");
                last = Some(priority);
            }
        }
        assert_eq!(last.map(|priority| usize::from(priority.number())), Some(PRIORITIES - 1));
    }

    #[test]
    fn users_keep_their_cohort_for_the_hour_and_fill_all_cohorts() {
        let start = Timestamp::from_micros(HOUR_US * 400_000);
        let later = |secs| start + Duration::from_secs(secs);
        let mut users_in = [0; COHORTS as usize];
        let mut moved = 0;
        for user in 0..12_800 {
            let cohort = Cohort::of_user(user, start);
            assert_eq!(cohort, Cohort::of_user(user, later(3_599)));
            moved += u32::from(cohort != Cohort::of_user(user, later(3_600)));
            users_in[usize::from(cohort.number())] += 1;
        }
        assert!(users_in.iter().all(|users| (60..150).contains(users)), "{users_in:?}");
        assert!(moved > 12_500, "{moved}");
    }
}
