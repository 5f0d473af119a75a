//! The settings of the keyspace: how large it may grow, and how it forgets.
//!
//! Defaults stand in `config/tollgate.yaml` and nowhere else.

use std::num::NonZeroUsize;

use serde::{Deserialize, Serialize};

use crate::size::{Bytes, BytesMax, OrAuto};
use crate::time::Duration;

/// The section `engine`.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Options {
    /// Memory of keys and values; zero is no bound.
    pub(crate) memory_max: OrAuto<Bytes>,
    /// What to do at that bound.
    pub(crate) memory_policy: MemoryPolicy,
    /// Bytes of one key.
    pub(crate) key_bytes_max: BytesMax,
    /// Bytes of one value.
    pub(crate) value_bytes_max: BytesMax,
    /// Keys that clients are told about when they change.
    pub(crate) tracked_keys_max: NonZeroUsize,
    /// Parts of the keyspace that work side by side.
    pub(crate) shards: Shards,
    /// How often expired keys are looked for.
    pub(crate) expiry_period: Duration,
    /// How long one such look may take.
    pub(crate) expiry_budget: Duration,
}

/// What the keyspace does with a write at its bound; the names are those of Redis.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum MemoryPolicy {
    /// Refuse the write.
    #[serde(rename = "noeviction")]
    NoEviction,
    /// Drop keys that were not used for long.
    AllkeysLru,
    /// The same among keys that expire.
    VolatileLru,
    /// Drop any key.
    AllkeysRandom,
    /// Drop any key that expires.
    VolatileRandom,
    /// Drop the keys that expire soonest.
    VolatileTtl,
}

/// A number of shards: a power of two, 1 to [`Shards::MAX`].
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(try_from = "u32", into = "u32")]
pub(crate) struct Shards(u32);

impl Shards {
    /// More shards than this cost memory and bring no speed on any machine we know.
    pub(crate) const MAX: u32 = 4_096;

    pub(crate) const fn number(self) -> usize {
        self.0 as usize
    }
}

impl TryFrom<u32> for Shards {
    type Error = String;

    fn try_from(count: u32) -> Result<Self, String> {
        if count.is_power_of_two() && count <= Self::MAX {
            return Ok(Self(count));
        }
        let max = Self::MAX;
        let nearest = count.clamp(1, max).next_power_of_two();
        Err(format!("expected a power of two from 1 to {max}, such as {nearest}"))
    }
}

impl From<Shards> for u32 {
    fn from(shards: Shards) -> Self {
        shards.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_are_a_power_of_two() {
        for count in [1, 2, 256, 4_096] {
            assert_eq!(Shards::try_from(count).map(u32::from), Ok(count));
        }
        for count in [0, 3, 100, 8_192, u32::MAX] {
            assert!(Shards::try_from(count).is_err(), "{count}");
        }
    }
}
