//! The settings of the memory of denials.
//!
//! Defaults stand in `config/tollgate.yaml` and nowhere else.

use serde::{Deserialize, Serialize};

/// The section `prefilter`.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Options {
    /// Remember denials at all.
    pub(crate) enabled: bool,
    /// Denials remembered at one time.
    pub(crate) entries_max: Entries,
}

/// Entries of the table: [`Entries::MIN`] to [`Entries::MAX`].
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(try_from = "i64", into = "u32")]
pub(crate) struct Entries(u32);

impl Entries {
    /// What the table allocates at once.
    pub(crate) const MIN: u32 = super::table::CHUNK_ENTRIES as u32;
    /// Two gigabytes of records.
    pub(crate) const MAX: u32 = 1 << 24;

    pub(crate) const fn number(self) -> usize {
        self.0 as usize
    }
}

impl TryFrom<i64> for Entries {
    type Error = String;

    fn try_from(count: i64) -> Result<Self, String> {
        let (min, max) = (Self::MIN, Self::MAX);
        let fitting = u32::try_from(count).ok().filter(|count| (min..=max).contains(count));
        fitting.map(Self).ok_or_else(|| format!("expected a whole number from {min} to {max}"))
    }
}

impl From<Entries> for u32 {
    fn from(entries: Entries) -> Self {
        entries.0
    }
}

#[cfg(test)]
impl Options {
    /// The smallest table, or none.
    pub(crate) fn small(enabled: bool) -> Self {
        Self { enabled, entries_max: Entries(Entries::MIN) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_have_bounds() {
        for count in [1_024, 65_536, 1 << 24] {
            assert_eq!(Entries::try_from(count).map(|entries| i64::from(entries.0)), Ok(count));
        }
        for count in [-1, 0, 1_023, (1 << 24) + 1] {
            assert!(Entries::try_from(count).is_err(), "{count}");
        }
    }
}
