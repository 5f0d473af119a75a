//! What has changed since it was last collected: where what outlives the process comes from.
//!
//! The one place of mutation (`shard.rs`) marks the slot of a key that has changed: a bit in the
//! chunk that it has just touched. Who collects comes some times a second, shard by shard and in
//! short steps, and takes what the marked keys hold *then*. So a key that changes a thousand
//! times between two visits is written once, a log of a thousand entries costs a request no more
//! than a counter, and where nobody comes for long nothing piles up but the names of keys that
//! are gone, which have a bound. A transaction that is taken back needs nothing: what is written
//! is what is there.
//!
//! What was collected of two keys may be of different moments, as far apart as the steps are.
//! A key that goes because its time is over is not told where its deadline has been. FLUSH and
//! SWAPDB are of all shards at one moment, so their records come before whatever is collected of
//! any shard thereafter.
//!
//! While nobody tracks, a change costs one branch.

use std::ops::ControlFlow;
use std::time::Duration;

use smallvec::SmallVec;

use super::record::{put_flushed, put_removed, put_stored};
use super::shard::Shard;
use super::table::{Slot, Table};
use super::tables::BUCKETS;
use super::{Engine, Patience, Scope, View};
use crate::time::Timestamp;

/// Names of keys that are gone, kept of one shard until somebody comes: a second of deleting at
/// full speed in all of them.
const GONE_BYTES_MAX: usize = 1 << 20;

/// Bytes that one step collects before it lets the shard go: some tens of microseconds.
const STEP_BYTES: usize = 64 << 10;

/// Keys that one step of a walk looks at, for the same reason.
const STEP_KEYS: usize = 512;

/// How long a step waits for a shard: then a script holds it, and others come first.
const STEP_PATIENCE: Duration = Duration::from_millis(5);

/// What one shard notes.
#[derive(Debug, Default)]
pub(super) struct Changes {
    tracks: bool,
    /// What goes now goes because its time is over.
    expiring: bool,
    overflowed: bool,
    /// Records of keys that are gone.
    gone: Vec<u8>,
    /// How many databases were flushed since tracking began: the same in every shard.
    flushes: u64,
    /// Those that nobody has collected here: which they are in that count, each database once.
    flushed: SmallVec<[(u64, u8); 1]>,
}

/// Who collects: one for all shards.
#[derive(Debug, Default)]
pub(crate) struct Collector {
    /// Flushed databases that have been written.
    flushes: u64,
    keys: u64,
}

impl Collector {
    /// How many keys it has seen changed.
    pub(crate) fn keys(&self) -> u64 {
        self.keys
    }
}

/// Keys that are gone were forgotten: what was collected until now is not enough any more.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("more keys were deleted than are kept until they are written")]
pub(crate) struct Overflowed;

/// Where the next step goes on, in one shard.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Place {
    db: usize,
    slot: Slot,
}

/// How a step came out.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Step {
    /// There is more behind this place.
    More(Place),
    /// That was the last of the shard.
    Done,
    /// Somebody holds the shard: nothing was done.
    Held,
}

impl Changes {
    #[inline]
    pub(super) fn tracks(&self) -> bool {
        self.tracks
    }

    /// While it is set, a key goes because its time is over.
    pub(super) fn expire(&mut self, expiring: bool) {
        self.expiring = expiring;
    }

    /// A key is gone; `marked` where its last change has not been collected.
    #[inline]
    pub(super) fn removed(&mut self, db: usize, key: &[u8], marked: bool) {
        if self.tracks && (marked || !self.expiring) {
            self.note_removed(db, key);
        }
    }

    fn note_removed(&mut self, db: usize, key: &[u8]) {
        if self.gone.len() >= GONE_BYTES_MAX {
            self.overflowed = true;
            self.gone = Vec::new();
        }
        if !self.overflowed {
            put_removed(&mut self.gone, db, key);
        }
    }

    /// A database is empty now, in every shard.
    pub(super) fn flushed(&mut self, db: usize) {
        if self.tracks {
            self.flushes += 1;
            self.flushed.retain(|(_, other)| usize::from(*other) != db);
            self.flushed.push((self.flushes, db as u8));
        }
    }

    /// What is gone: databases first, which everyone else's records must follow.
    fn collect_gone(&mut self, collector: &mut Collector, out: &mut Vec<u8>) {
        for (number, db) in self.flushed.drain(..) {
            if number > collector.flushes {
                put_flushed(out, usize::from(db));
                collector.keys += 1;
            }
        }
        collector.flushes = collector.flushes.max(self.flushes);
        out.append(&mut self.gone);
    }
}

impl Shard {
    fn set_tracking(&mut self, tracks: bool) {
        self.changes = Changes { tracks, ..Changes::default() };
        for db in 0..=BUCKETS {
            if let Some(table) = self.table_mut(db) {
                table.forget_changes();
            }
        }
    }

    /// What is gone comes first: a key that has come back since is marked, and comes later.
    fn collect(
        &mut self,
        collector: &mut Collector,
        place: Place,
        out: &mut Vec<u8>,
    ) -> Result<Step, Overflowed> {
        if std::mem::take(&mut self.changes.overflowed) {
            return Err(Overflowed);
        }
        self.changes.collect_gone(collector, out);
        let full = out.len() + STEP_BYTES;
        let mut from = place.slot;
        for db in place.db..=BUCKETS {
            if let Some(table) = self.table_mut(db)
                && let Some(slot) = table.collect(from, |entry| {
                    put_stored(out, db, (entry.key.as_bytes(), entry.expires), &entry.value);
                    collector.keys += 1;
                    if out.len() < full {
                        ControlFlow::Continue(())
                    } else {
                        ControlFlow::Break(())
                    }
                })
            {
                return Ok(Step::More(Place { db, slot }));
            }
            from = 0;
        }
        Ok(Step::Done)
    }

    fn walk(&self, place: Place, now: Timestamp, out: &mut Vec<u8>) -> Step {
        let full = out.len() + STEP_BYTES;
        let (mut from, mut steps) = (place.slot, STEP_KEYS);
        for db in place.db..=BUCKETS {
            let next = self.table(db).and_then(|table: &Table| {
                table.walk(from, &mut steps, |_, entry| {
                    if entry.is_expired(now) {
                        return ControlFlow::Continue(());
                    }
                    put_stored(out, db, (entry.key.as_bytes(), entry.expires), &entry.value);
                    if out.len() < full {
                        ControlFlow::Continue(())
                    } else {
                        ControlFlow::Break(())
                    }
                })
            });
            if let Some(slot) = next {
                return Step::More(Place { db, slot });
            }
            if steps == 0 || out.len() >= full {
                return if db == BUCKETS {
                    Step::Done
                } else {
                    Step::More(Place { db: db + 1, slot: 0 })
                };
            }
            from = 0;
        }
        Step::Done
    }
}

impl Engine {
    /// Begins to note changes, or ends it; what was noted before is forgotten.
    pub(crate) fn track_changes(&self, tracks: bool) {
        for shard in &self.shards {
            shard.lock().set_tracking(tracks);
        }
    }

    /// One step of collecting what has changed in a shard; it begins at the default place, and
    /// ends when the shard has been seen. After an overflow, which is told once, what was written
    /// before is no longer to be believed.
    pub(crate) fn collect_changes(
        &self,
        collector: &mut Collector,
        (shard, place): (usize, Place),
        out: &mut Vec<u8>,
    ) -> Result<Step, Overflowed> {
        let Some(mut shard) = self.shards[shard].try_lock_for(STEP_PATIENCE) else {
            return Ok(Step::Held);
        };
        shard.collect(collector, place, out)
    }

    /// One step of a walk over all that a shard holds. Changes have to be collected meanwhile,
    /// and once more afterwards: what the walk has passed may change, and keys move.
    pub(crate) fn walk_shard(
        &self,
        (shard, place): (usize, Place),
        now: Timestamp,
        out: &mut Vec<u8>,
    ) -> Step {
        match self.shards[shard].try_lock_for(STEP_PATIENCE) {
            Some(shard) => shard.walk(place, now, out),
            None => Step::Held,
        }
    }

    /// A transaction of who is alone with the engine.
    pub(super) fn alone<R>(
        &self,
        scope: Scope<'_>,
        db: u8,
        now: Timestamp,
        f: impl FnOnce(&mut View<'_>) -> R,
    ) -> R {
        let guards = self.lock(scope, Patience::UntilBusy);
        let guards = guards.expect("nobody runs scripts before there are clients");
        self.transact_in(guards, usize::from(db), now, f)
    }
}
