//! What changed, in the order in which it changed: the hook of everything that follows changes.
//!
//! The one place of mutation (`shard.rs`) appends here while the shard's lock is held, so the
//! sequence numbers of a shard are the order of its changes. With no listener an append costs
//! one branch. Replaying a shard's effects from the start gives the shard again.
//!
//! With a listener it costs more than it should: every allowed request appends its limiter's
//! whole encoded state, which for a log grows with what the window holds. A list that nobody
//! drains ends at [`PENDING_MAX`]; its listener must then start over from the shard itself.

use crate::time::Timestamp;

/// Changes of one shard that wait for their listener: some seconds of a busy shard, and with
/// states of common size some megabytes.
const PENDING_MAX: usize = 1 << 15;

/// Changes were lost because nobody came for them. The next ones are collected again: who
/// follows must first take over the shard as it is.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("more changes than are kept were not asked for in time")]
pub(crate) struct Overflowed;

/// One change of one shard.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Effect {
    /// Counts the changes of one shard from 1.
    pub(crate) sequence: u64,
    pub(crate) db: u8,
    pub(crate) change: Change,
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Change {
    /// The key now holds this encoded value until this moment.
    Stored { key: Box<[u8]>, value: Vec<u8>, expires: Timestamp },
    /// The key's deadline moved.
    Expiring { key: Box<[u8]>, expires: Timestamp },
    /// The key is gone: deleted, expired or evicted.
    Removed { key: Box<[u8]> },
    /// Every key of the database is gone.
    Flushed,
    /// The database and this one have exchanged their contents.
    Swapped { other: u8 },
}

/// Where the list stood.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mark {
    sequence: u64,
    pending: usize,
}

/// Collects effects once somebody listens.
#[derive(Debug, Default)]
pub(super) struct Effects {
    sequence: u64,
    pending: Option<Vec<Effect>>,
    overflowed: bool,
}

impl Effects {
    pub(super) fn listen(&mut self) {
        self.pending.get_or_insert_default();
    }

    #[inline]
    pub(super) fn append(&mut self, db: usize, change: impl FnOnce() -> Change) {
        if let Some(pending) = &mut self.pending {
            self.sequence += 1;
            if self.overflowed || pending.len() == PENDING_MAX {
                self.overflowed = true;
                *pending = Vec::new();
                return;
            }
            pending.push(Effect { sequence: self.sequence, db: db as u8, change: change() });
        }
    }

    pub(super) fn mark(&self) -> Mark {
        Mark { sequence: self.sequence, pending: self.pending.as_ref().map_or(0, Vec::len) }
    }

    /// Forgets what was appended since the mark: it has been taken back.
    pub(super) fn rewind(&mut self, mark: Mark) {
        if let Some(pending) = &mut self.pending
            && !self.overflowed
        {
            pending.truncate(mark.pending);
            self.sequence = mark.sequence;
        }
    }

    /// What was collected since the last call, oldest first.
    pub(super) fn drain(&mut self) -> Result<Vec<Effect>, Overflowed> {
        if std::mem::take(&mut self.overflowed) {
            return Err(Overflowed);
        }
        Ok(self.pending.as_mut().map(std::mem::take).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn list_that_nobody_drains_says_that_it_overflowed_and_begins_anew() {
        let mut effects = Effects::default();
        effects.listen();
        let append = |effects: &mut Effects, count: usize| {
            (0..count).for_each(|_| effects.append(0, || Change::Flushed));
        };
        append(&mut effects, PENDING_MAX);
        assert_eq!(effects.drain().map(|list| list.len()), Ok(PENDING_MAX));
        append(&mut effects, PENDING_MAX + 2);
        assert_eq!(effects.drain(), Err(Overflowed));
        append(&mut effects, 1);
        let sequence = 2 * PENDING_MAX as u64 + 3;
        let expected = Effect { sequence, db: 0, change: Change::Flushed };
        assert_eq!(effects.drain(), Ok(vec![expected]));
    }
}
