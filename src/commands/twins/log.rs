//! A sorted set as a log: its members are gone once their score has passed.
//!
//! Scripts take out who is gone before they look at the rest. A twin looks first, past those who
//! are gone, because it may still decline, and takes them out with all else that it changes.

use std::ops::Range;

use super::Declined;
use super::lua::decimal;
use super::scene::{MOMENT_MAX, Scene};
use crate::collection::{Direction, SortedSet};
use crate::engine::KeyRef;

/// What is to be known of a log before it is changed.
#[derive(Clone, Copy, Default)]
pub(super) struct Log {
    /// Members whose time is over.
    gone: usize,
    /// Those after them.
    len: usize,
}

impl Log {
    /// Of this key; who scores no higher than `until` is gone.
    pub(super) fn at(
        scene: &mut Scene<'_, '_>,
        key: KeyRef<'_>,
        until: f64,
    ) -> Result<Self, Declined> {
        let Some(set) = scene.collection::<SortedSet>(key)? else { return Ok(Self::default()) };
        let gone = set.rank_where(|score, _| score <= until);
        Ok(Self { gone, len: set.len() - gone })
    }

    pub(super) fn len(self) -> i64 {
        self.len as i64
    }

    /// The score in this place; a negative one counts from the end.
    pub(super) fn score(
        self,
        scene: &mut Scene<'_, '_>,
        key: KeyRef<'_>,
        place: i64,
    ) -> Result<Option<f64>, Declined> {
        let Some(set) = scene.collection::<SortedSet>(key)? else { return Ok(None) };
        let place = if place < 0 { place + self.len() } else { place };
        let place = usize::try_from(place).ok().filter(|place| *place < self.len);
        Ok(place.and_then(|place| set.score_at(self.gone + place)))
    }

    /// The name of the first, which is a moment.
    pub(super) fn first(
        self,
        scene: &mut Scene<'_, '_>,
        key: KeyRef<'_>,
    ) -> Result<Option<f64>, Declined> {
        let Some(set) = scene.collection::<SortedSet>(key)?.filter(|_| self.len > 0) else {
            return Ok(None);
        };
        let mut first = None;
        set.visit(self.gone..self.gone + 1, Direction::Ascending, |member, _| {
            first = decimal(member).filter(|moment| (0.0..=MOMENT_MAX as f64).contains(moment));
        });
        first.map(Some).ok_or(Declined)
    }

    /// The last score but for one member's.
    pub(super) fn last_besides(self, set: &SortedSet, member: &[u8]) -> Option<f64> {
        let mut last = None;
        let ends = self.ranks().end;
        let two = ends.saturating_sub(2).max(self.gone)..ends;
        set.visit(two, Direction::Ascending, |other, score| {
            if other != member {
                last = Some(score);
            }
        });
        last
    }

    fn ranks(self) -> Range<usize> {
        self.gone..self.gone + self.len
    }

    /// Takes out who is gone.
    pub(super) fn forget(self, set: &mut SortedSet, key: KeyRef<'_>) {
        if self.len == 0 {
            // An empty one would have been removed, and the next be new.
            *set = SortedSet::new(key.hash());
        } else {
            set.remove_ranks(0..self.gone);
        }
    }

    /// Takes out who is gone, and with them a member.
    pub(super) fn only_forget(
        self,
        scene: &mut Scene<'_, '_>,
        key: KeyRef<'_>,
        member: Option<&[u8]>,
    ) {
        if self.gone == 0 && member.is_none() {
            return;
        }
        let forgot = scene.view.change_existing::<SortedSet, ()>(key, |set| {
            set.remove_ranks(0..self.gone);
            member.map(|member| set.remove(member));
            Ok(((), true))
        });
        debug_assert!(forgot.is_ok(), "it has just been looked at");
    }
}
