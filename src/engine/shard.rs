//! One shard: its databases, and the one place where anything in them changes.
//!
//! [`Shard::store`], [`Shard::edit`], [`Shard::set_expires`], [`Shard::remove`],
//! [`Shard::flush`] and [`Shard::swap`] are that place, also for expiry, eviction and replay.
//! They, and nothing else, keep the memory sum, move the limiter generation, mark what has
//! changed, tell the followers of a key and note what can be undone.

use std::borrow::Cow;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crossbeam_utils::CachePadded;
use smallvec::SmallVec;

use super::changes::Changes;
use super::followers::Followers;
use super::key::KeyRef;
use super::table::{Entry, Held, Slot, Table, seconds};
use super::tables::{BUCKETS, Tables};
use super::tenants::{Tenants, tenant_of};
use super::tracked::Tracked;
use super::undo::Undo;
use super::value::Value;
use crate::time::Timestamp;

/// What a shard has counted since the start.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    pub(super) hits: u64,
    pub(super) misses: u64,
    pub(super) expired: u64,
    pub(super) evicted: u64,
    pub(super) allowed: u64,
    pub(super) denied: u64,
    /// Reservations and leases whose time was over before they were settled.
    pub(super) holds_expired: u64,
}

/// What an edit did to the value it was given.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Kept {
    /// Nothing: a value made for the edit is thrown away again.
    Unchanged,
    /// A limiter spent; nothing else about it changed.
    Spent { expires: Timestamp },
    /// Anything else.
    Changed { expires: Expires },
}

/// What becomes of a key's deadline.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Expires {
    Keep,
    At(Timestamp),
    Never,
}

impl Expires {
    fn over(self, current: Timestamp) -> Timestamp {
        match self {
            Self::Keep => current,
            Self::At(at) => at,
            Self::Never => Timestamp::MAX,
        }
    }
}

/// How an entry comes to be stored.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Storing {
    /// Whatever else.
    Put,
    /// A limiter is there because it was spent from, which alone ends no denial.
    FirstSpend,
    /// The same of a bucket that has been counted among its tenant's keys.
    Admitted,
}

/// Moves when a limiter is removed, replaced, or changed other than by a spend. Written under the
/// shard's lock, read by anybody.
#[derive(Debug, Default)]
pub(super) struct Generation(CachePadded<AtomicU64>);

impl Generation {
    pub(super) fn read(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }

    #[inline]
    fn add(&self, moves: bool) {
        if moves {
            // Nobody else writes: whoever does holds the shard.
            self.0.store(self.0.load(Ordering::Relaxed) + 1, Ordering::Release);
        }
    }
}

#[derive(Debug)]
pub(super) struct Shard {
    tables: Tables,
    /// The latest moment any transaction here has seen.
    pub(super) latest: Timestamp,
    generation: Arc<Generation>,
    tenants: Arc<Tenants>,
    pub(super) counts: Counts,
    pub(super) changes: Changes,
    pub(super) followers: Followers,
    /// What the transaction would take back, where it might have to.
    pub(super) undo: Option<Undo>,
    /// Where the expiry sweep goes on: database and slot.
    swept: (usize, Slot),
    /// Where the search for something to evict goes on: the same.
    pub(super) evicting: (usize, Slot),
}

impl Shard {
    /// One of several shards, with what numbers the changes in all of them.
    pub(super) fn new(
        order: &Arc<AtomicU64>,
        generation: Arc<Generation>,
        tenants: Arc<Tenants>,
    ) -> Self {
        Self {
            tables: Tables::default(),
            latest: Timestamp::default(),
            generation,
            tenants,
            counts: Counts::default(),
            changes: Changes::default(),
            followers: Followers::ordered_by(order),
            undo: None,
            swept: (0, 0),
            evicting: (0, 0),
        }
    }

    #[inline]
    pub(super) fn held(&self) -> Held {
        self.tables.held()
    }

    pub(super) fn limiter_generation(&self) -> u64 {
        self.generation.read()
    }

    pub(super) fn table(&self, db: usize) -> Option<&Table> {
        self.tables.get(db)
    }

    pub(super) fn table_mut(&mut self, db: usize) -> Option<&mut Table> {
        self.tables.get_mut(db)
    }

    /// The entry of a live key. A key past its deadline is removed on the way.
    pub(super) fn find(&mut self, db: usize, key: KeyRef<'_>, now: Timestamp) -> Option<Slot> {
        let slot = self.tables.get(db)?.find(key)?;
        if self.tables[db].at(slot).is_expired(now) {
            self.expire(db, slot);
            return None;
        }
        Some(slot)
    }

    /// The same, and the key counts as used at this moment.
    #[inline]
    pub(super) fn find_used(&mut self, db: usize, key: KeyRef<'_>, now: Timestamp) -> Option<Slot> {
        let table = self.tables.get_mut(db)?;
        let slot = table.find(key)?;
        let entry = table.at(slot);
        if entry.is_expired(now) {
            self.expire(db, slot);
            return None;
        }
        entry.accessed_s = seconds(now);
        Some(slot)
    }

    /// The slot of a key, whether it has expired or not.
    pub(super) fn slot(&self, db: usize, key: KeyRef<'_>) -> Option<Slot> {
        self.tables.get(db)?.find(key)
    }

    pub(super) fn entry(&mut self, db: usize, slot: Slot) -> &mut Entry {
        self.tables[db].at(slot)
    }

    /// Puts a value under a key, whatever was there.
    pub(super) fn store(&mut self, db: usize, key: KeyRef<'_>, entry: Entry) {
        self.store_as(db, key, entry, Storing::Put);
    }

    pub(super) fn store_as(
        &mut self,
        db: usize,
        key: KeyRef<'_>,
        mut entry: Entry,
        storing: Storing,
    ) {
        self.generation.add(storing == Storing::Put && entry.value.is_limit());
        self.tables.make(db);
        if self.undo.is_some() {
            // It may come from under another key, where it noted its changes.
            entry.value.forget_undo();
        }
        let slot = self.tables[db].find(key);
        if db == BUCKETS {
            let counts = slot.is_none() && storing != Storing::Admitted;
            let (tenant, bytes) = (tenant_of(entry.tenant_name()), entry.whole_bytes());
            self.tenants.stored(tenant, u64::from(counts), bytes);
        }
        if let Some(slot) = slot {
            let old = self.tables[db].replace(slot, entry);
            self.mark(db, slot);
            self.generation.add(old.value.is_limit());
            if db == BUCKETS {
                let (tenant, bytes) = (tenant_of(old.tenant_name()), old.whole_bytes());
                self.tenants.recharged(tenant, bytes, 0);
            }
            self.note_gone(db, Cow::Owned(old));
        } else {
            let slot = self.tables[db].insert(entry);
            self.mark(db, slot);
            self.note_new(db, key);
        }
        self.tell(db, key.bytes());
    }

    /// Changes a value in place, as `edit` says. A collection that is left empty goes.
    #[inline]
    pub(super) fn edit<R, E>(
        &mut self,
        db: usize,
        slot: Slot,
        edit: impl FnOnce(&mut Value) -> Result<(R, Kept), E>,
    ) -> Result<R, E> {
        let undo_bytes = if self.undo.is_some() { self.note_edit(db, slot) } else { 0 };
        let table = &mut self.tables[db];
        let entry = table.at(slot);
        let (charged, was_limit) = (entry.charge_bytes(), entry.value.is_limit());
        let (result, kept) = edit(&mut entry.value)?;
        if let Some(undo) = &mut self.undo {
            undo.count(undo_bytes, entry.value.undo_bytes());
        }
        debug_assert_eq!(entry.value.is_limit(), was_limit, "only `store` changes the kind");
        // Also of an edit that changed nothing to be seen: a log may have dropped what is old.
        let charges = entry.charge_bytes();
        let current = entry.expires;
        if db == BUCKETS && charged != charges {
            self.tenants.recharged(tenant_of(entry.tenant_name()), charged, charges);
        }
        let expires = match kept {
            Kept::Unchanged => {
                table.recharge(charged, charges);
                return Ok(result);
            }
            Kept::Spent { expires } => expires,
            Kept::Changed { expires } => {
                self.generation.add(was_limit || entry.value.is_limit());
                expires.over(current)
            }
        };
        if entry.value.is_empty_collection() {
            table.recharge(charged, charges);
            self.remove(db, slot);
            return Ok(result);
        }
        if db != BUCKETS {
            self.followers.changed(db, entry.key.as_bytes());
        }
        // Nearly always, and then nobody counts it.
        let is_plain = was_limit && self.undo.is_none() && expires.max(current) != Timestamp::MAX;
        if is_plain {
            entry.expires = expires;
        }
        table.recharge(charged, charges);
        if self.changes.tracks() {
            table.mark(slot);
        }
        if is_plain {
            return Ok(result);
        }
        if expires != current {
            if self.undo.is_some() {
                self.note_expires(db, slot);
            }
            self.tables[db].set_expires(slot, expires);
        }
        Ok(result)
    }

    /// Brings a value back to what it was.
    pub(super) fn revalue(&mut self, db: usize, slot: Slot, back: impl FnOnce(&mut Value)) {
        let table = &mut self.tables[db];
        let entry = table.at(slot);
        let charged = entry.charge_bytes();
        back(&mut entry.value);
        let charges = entry.charge_bytes();
        if db == BUCKETS && charged != charges {
            self.tenants.recharged(tenant_of(entry.tenant_name()), charged, charges);
        }
        table.recharge(charged, charges);
    }

    pub(super) fn set_expires(&mut self, db: usize, slot: Slot, expires: Timestamp) {
        if self.undo.is_some() {
            self.note_expires(db, slot);
        }
        let entry = self.tables[db].at(slot);
        self.generation.add(entry.value.is_limit());
        self.followers.changed(db, entry.key.as_bytes());
        self.tables[db].set_expires(slot, expires);
        self.mark(db, slot);
    }

    /// Removes an entry. Where it may have to come back, it is kept and not copied.
    pub(super) fn remove(&mut self, db: usize, slot: Slot) {
        if let Some(entry) = self.take_out(db, slot) {
            self.note_gone(db, Cow::Owned(entry));
        }
    }

    /// Removes an entry for who goes on to use it.
    pub(super) fn take(&mut self, db: usize, slot: Slot) -> Option<Entry> {
        let entry = self.take_out(db, slot)?;
        self.note_gone(db, Cow::Borrowed(&entry));
        Some(entry)
    }

    fn take_out(&mut self, db: usize, slot: Slot) -> Option<Entry> {
        let entry = self.take_over(db, slot)?;
        self.generation.add(entry.value.is_limit());
        Some(entry)
    }

    /// Removes an entry that says as much as none: no denial that stands can be of it.
    fn take_over(&mut self, db: usize, slot: Slot) -> Option<Entry> {
        let table = self.tables.get_mut(db)?;
        let marked = table.is_marked(slot);
        let entry = table.remove(slot)?;
        if db == BUCKETS {
            self.tenants.removed(tenant_of(entry.tenant_name()), entry.whole_bytes());
        }
        self.changes.removed(db, entry.key.as_bytes(), marked);
        self.tell(db, entry.key.as_bytes());
        Some(entry)
    }

    /// Removes a bucket of which nothing is spent or held.
    pub(super) fn remove_empty(&mut self, slot: Slot) {
        if let Some(entry) = self.take_over(BUCKETS, slot) {
            self.note_gone(BUCKETS, Cow::Owned(entry));
        }
    }

    /// What stands in the slot has changed.
    #[inline]
    fn mark(&mut self, db: usize, slot: Slot) {
        if self.changes.tracks() {
            self.tables[db].mark(slot);
        }
    }

    /// Tells who follows the key. Nobody follows a bucket: no request can name it.
    #[inline]
    fn tell(&mut self, db: usize, key: &[u8]) {
        if db != BUCKETS {
            self.followers.changed(db, key);
        }
    }

    /// Forgets a database. The entries are returned, so that the caller frees them after
    /// letting the shard go.
    pub(super) fn flush(&mut self, db: usize) -> Option<Table> {
        debug_assert!(self.undo.is_none(), "who flushes holds every shard, and is never undone");
        self.followers.track(Tracked::flush);
        self.changes.flushed(db);
        let table = self.tables.get_mut(db).filter(|table| table.len() > 0).map(std::mem::take)?;
        self.followers.changed_all(db, |key| table.find(key).is_some());
        self.generation.add(true);
        if db == BUCKETS {
            table.walk(0, &mut { usize::MAX }, |_, entry| {
                self.tenants.removed(tenant_of(entry.tenant_name()), entry.whole_bytes());
                ControlFlow::Continue(())
            });
        }
        Some(table)
    }

    /// Exchanges the contents of two databases.
    pub(super) fn swap(&mut self, db: usize, other: usize) {
        self.tables.make(db.max(other));
        debug_assert!(self.undo.is_none(), "who swaps holds every shard, and is never undone");
        self.followers.track(Tracked::flush);
        let tables = [&self.tables[db], &self.tables[other]];
        for db in [db, other] {
            self.followers
                .changed_all(db, |key| tables.iter().any(|table| table.find(key).is_some()));
        }
        self.tables.swap(db, other);
        self.generation.add(true);
        if self.changes.tracks() {
            for db in [db, other] {
                self.changes.flushed(db);
                self.tables[db].mark_all();
            }
        }
    }

    /// Removes what has expired within the next `steps` of a walk. Returns whether this lap over
    /// the shard is done.
    pub(super) fn sweep(&mut self, now: Timestamp, mut steps: usize) -> bool {
        self.latest = self.latest.max(now);
        let (db, from) = self.swept;
        let Some(table) = self.tables.get(db) else {
            self.swept = (0, 0);
            return true;
        };
        let mut expired: SmallVec<[Slot; 64]> = SmallVec::new();
        let next = if table.expiring() == 0 {
            None
        } else {
            table.walk(from, &mut steps, |slot, entry| {
                if entry.is_expired(now) {
                    expired.push(slot);
                }
                ControlFlow::Continue(())
            })
        };
        for slot in expired {
            self.expire(db, slot);
        }
        self.swept = match next {
            Some(slot) => (db, slot),
            None => (self.tables.next_expiring(db).unwrap_or(0), 0),
        };
        self.swept == (0, 0)
    }

    pub(super) fn expire(&mut self, db: usize, slot: Slot) {
        self.changes.expire(true);
        if db == BUCKETS {
            self.counts.holds_expired += u64::from(self.tables[db].at(slot).value.is_ticket());
            self.remove_empty(slot);
        } else {
            self.followers.expire(true);
            self.remove(db, slot);
            self.followers.expire(false);
            self.counts.expired += 1;
        }
        self.changes.expire(false);
    }
}
