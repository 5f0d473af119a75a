//! What changed, in the order in which it changed: the hook of everything that follows changes.
//!
//! The one place of mutation (`shard.rs`) appends here while the shard's lock is held, so the
//! sequence numbers of a shard are the order of its changes. With no listener an append costs
//! one branch. Replaying a shard's effects from the start gives the shard again.

use crate::time::Timestamp;

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

/// Collects effects once somebody listens.
#[derive(Debug, Default)]
pub(super) struct Effects {
    sequence: u64,
    pending: Option<Vec<Effect>>,
}

impl Effects {
    pub(super) fn listen(&mut self) {
        self.pending.get_or_insert_default();
    }

    #[inline]
    pub(super) fn append(&mut self, db: usize, change: impl FnOnce() -> Change) {
        if let Some(pending) = &mut self.pending {
            self.sequence += 1;
            pending.push(Effect { sequence: self.sequence, db: db as u8, change: change() });
        }
    }

    /// What was collected since the last call, oldest first.
    pub(super) fn drain(&mut self) -> Vec<Effect> {
        self.pending.as_mut().map(std::mem::take).unwrap_or_default()
    }
}
