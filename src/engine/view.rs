//! What a transaction sees: the locked shards, one moment, one database.
//!
//! Handlers read and change values only through a [`View`]; it exists only inside
//! `Engine::transact`. Reading a key past its deadline removes it and finds nothing.

use std::ops::ControlFlow;

use parking_lot::MutexGuard;
use smallvec::SmallVec;

use super::key::{Key, KeyRef};
use super::shard::{Expires, Kept, Shard, Storing};
use super::table::{Entry, Slot, Table, seconds};
use super::value::Value;
use super::{Engine, OutOfMemory, Scope, Stats};
use crate::time::{Duration, Timestamp};

pub(super) type Guards<'e> = SmallVec<[(usize, MutexGuard<'e, Shard>); 8]>;

#[derive(Debug)]
pub(crate) struct View<'e> {
    pub(super) engine: &'e Engine,
    /// In ascending order of shard.
    pub(super) guards: Guards<'e>,
    pub(super) now: Timestamp,
    pub(super) db: usize,
    /// Keys that are asked for count as used.
    pub(super) touches: bool,
    /// The connection whose doing this is.
    pub(super) by: u64,
    /// Which of the guards was asked for last: a key is mostly asked for more than once.
    pub(super) recent: usize,
}

/// What stands under a key.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Found<'v> {
    pub(crate) value: &'v Value,
    /// [`Timestamp::MAX`] for never.
    pub(crate) expires: Timestamp,
    /// How long ago the key was last asked for, in whole seconds.
    pub(crate) idle: Duration,
    /// What the key takes, its slot included.
    pub(crate) charge_bytes: usize,
}

/// Entries taken out by [`View::flush`]: freeing them takes long, and can wait until the shards
/// are unlocked.
#[derive(Debug)]
#[must_use = "drop it after the transaction"]
pub(crate) struct Flushed(
    #[expect(dead_code, reason = "kept only to be dropped when the shards are unlocked")]
    Vec<Table>,
);

/// Where a scan goes on. Its number is the cursor of SCAN: zero begins, and zero ends.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Cursor(u64);

impl Cursor {
    pub(crate) const fn from_number(number: u64) -> Self {
        Self(number)
    }

    pub(crate) const fn number(self) -> u64 {
        self.0
    }

    pub(super) fn new(shard: usize, slot: Slot) -> Self {
        Self(((shard as u64) << 32) | u64::from(slot))
    }

    pub(super) fn shard(self) -> usize {
        (self.0 >> 32) as usize
    }

    fn slot(self) -> Slot {
        self.0 as Slot
    }

    /// The one shard that a scan from here begins with.
    pub(crate) fn scope(self) -> Scope<'static> {
        Scope::Shard(self.shard())
    }
}

impl<'e> View<'e> {
    /// Numbers that look random.
    pub(crate) fn dice(&self) -> impl FnMut() -> u64 + use<'e> {
        let engine = self.engine;
        || engine.dice()
    }
}

impl View<'_> {
    /// The one moment of this transaction.
    pub(crate) fn now(&self) -> Timestamp {
        self.now
    }

    pub(crate) fn db(&self) -> usize {
        self.db
    }

    /// Looks at another database from here on.
    pub(crate) fn select(&mut self, db: usize) {
        self.db = db;
    }

    /// Whether keys count as used from here on, when they are asked for.
    pub(crate) fn touch_keys(&mut self, touches: bool) {
        self.touches = touches;
    }

    /// Looks a key up for a reader: counts a hit or a miss, and the key as used.
    pub(crate) fn read(&mut self, key: KeyRef<'_>) -> Option<Found<'_>> {
        let (now, touches) = (self.now, self.touches);
        let entry = self.count(key)?;
        if touches {
            entry.accessed_s = seconds(now);
        }
        Some(found(entry, now))
    }

    /// Looks keys up for a reader, all before any is shown, so that they can be compared.
    pub(crate) fn read_all(&mut self, keys: &[KeyRef<'_>]) -> Vec<Option<&Value>> {
        for key in keys {
            // What has expired is gone after this, and all that is left is shown.
            self.read(*key);
        }
        let value = |key: &KeyRef<'_>| {
            let table = self.guards[self.place(*key)].1.table(self.db)?;
            Some(&table.entry(table.find(*key)?)?.value)
        };
        keys.iter().map(value).collect()
    }

    /// Looks a key up for one who asks about it: counts a hit or a miss.
    pub(crate) fn glance(&mut self, key: KeyRef<'_>) -> Option<Found<'_>> {
        let now = self.now;
        self.count(key).map(|entry| found(entry, now))
    }

    fn count(&mut self, key: KeyRef<'_>) -> Option<&mut Entry> {
        let (now, db) = (self.now, self.db);
        let shard = self.shard(key);
        let Some(slot) = shard.find(db, key, now) else {
            shard.counts.misses += 1;
            return None;
        };
        shard.counts.hits += 1;
        Some(shard.entry(db, slot))
    }

    /// Looks a key up without leaving a trace.
    pub(crate) fn look(&mut self, key: KeyRef<'_>) -> Option<Found<'_>> {
        let (now, db) = (self.now, self.db);
        let shard = self.shard(key);
        let slot = shard.find(db, key, now)?;
        Some(found(shard.entry(db, slot), now))
    }

    /// Changes what stands under a key, or what `make` makes where nothing does.
    ///
    /// A made value is stored unless `edit` leaves it unchanged. An `edit` that fails must have
    /// left the value as it was. Fails with [`OutOfMemory`]
    /// where a new key would have to be stored at the memory bound.
    #[inline]
    pub(crate) fn update<R, E: From<OutOfMemory>>(
        &mut self,
        key: KeyRef<'_>,
        make: impl FnOnce(Timestamp) -> Value,
        edit: impl FnOnce(&mut Value, Timestamp) -> Result<(R, Kept), E>,
    ) -> Result<R, E> {
        let (now, db, engine, touches) = (self.now, self.db, self.engine, self.touches);
        let shard = self.shard(key);
        let found = if touches { shard.find_used(db, key, now) } else { shard.find(db, key, now) };
        if let Some(slot) = found {
            return shard.edit(db, slot, |value| edit(value, now));
        }
        let mut value = make(now);
        let (result, kept) = edit(&mut value, now)?;
        let (expires, storing) = match kept {
            Kept::Unchanged => return Ok(result),
            Kept::Spent { expires } => (expires, Storing::FirstSpend),
            Kept::Changed { expires: Expires::At(expires) } => (expires, Storing::Put),
            Kept::Changed { expires: Expires::Keep | Expires::Never } => {
                (Timestamp::MAX, Storing::Put)
            }
        };
        engine.room_for_a_key()?;
        if expires > now {
            shard.store_as(db, key, Entry::new(key, value, expires, now), storing);
        }
        Ok(result)
    }

    /// Changes an existing value; nothing where there is none.
    pub(crate) fn edit<R, E>(
        &mut self,
        key: KeyRef<'_>,
        edit: impl FnOnce(&mut Value, Timestamp) -> Result<(R, Kept), E>,
    ) -> Result<Option<R>, E> {
        let (now, db) = (self.now, self.db);
        let shard = self.shard(key);
        let Some(slot) = shard.find(db, key, now) else { return Ok(None) };
        shard.edit(db, slot, |value| edit(value, now)).map(Some)
    }

    /// Puts a value under a key, whatever was there. A deadline that has passed removes the key.
    pub(crate) fn insert(&mut self, key: KeyRef<'_>, value: Value, expires: Timestamp) {
        let (now, db) = (self.now, self.db);
        if expires <= now {
            self.remove(key);
            return;
        }
        self.shard(key).store(db, key, Entry::new(key, value, expires, now));
    }

    /// Moves the deadline of a key; one that has passed removes it. Returns whether the key was
    /// there.
    pub(crate) fn set_expires(&mut self, key: KeyRef<'_>, expires: Timestamp) -> bool {
        let (now, db) = (self.now, self.db);
        let shard = self.shard(key);
        let Some(slot) = shard.find(db, key, now) else { return false };
        if expires <= now {
            shard.remove(db, slot);
        } else {
            shard.set_expires(db, slot, expires);
        }
        true
    }

    /// Counts a decision on this key, for the statistics.
    pub(crate) fn count_decision(&mut self, key: KeyRef<'_>, allowed: bool) {
        let counts = &mut self.shard(key).counts;
        if allowed {
            counts.allowed += 1;
        } else {
            counts.denied += 1;
        }
    }

    /// Removes a key. Returns whether it was there.
    pub(crate) fn remove(&mut self, key: KeyRef<'_>) -> bool {
        let (now, db) = (self.now, self.db);
        let shard = self.shard(key);
        let slot = shard.find(db, key, now);
        if let Some(slot) = slot {
            shard.remove(db, slot);
        }
        slot.is_some()
    }

    /// Takes a key away: its value and deadline.
    pub(crate) fn take(&mut self, key: KeyRef<'_>) -> Option<(Value, Timestamp)> {
        let (now, db) = (self.now, self.db);
        let shard = self.shard(key);
        let slot = shard.find(db, key, now)?;
        shard.take(db, slot).map(|entry| (entry.value, entry.expires))
    }

    /// Forgets every key of the locked shards in the current database.
    pub(crate) fn flush(&mut self) -> Flushed {
        let db = self.db;
        Flushed(self.guards.iter_mut().filter_map(|(_, shard)| shard.flush(db)).collect())
    }

    /// Exchanges the current database with another one, in the locked shards.
    pub(crate) fn swap(&mut self, other: usize) {
        for (_, shard) in &mut self.guards {
            shard.swap(self.db, other);
        }
    }

    /// Some key of the locked shards in the current database, each as likely as another.
    ///
    /// Where nearly all are past their deadline, and not yet swept, it may find none.
    pub(crate) fn random_key(&mut self) -> Option<Key> {
        /// Keys past their deadline met in a row before giving up.
        const TRIES: usize = 100;
        let keys = self.len() as u64;
        if keys == 0 {
            return None;
        }
        let mut dice = self.dice();
        (0..TRIES).find_map(|_| {
            let mut place = (dice() % keys) as usize;
            let table = self.guards.iter().find_map(|(_, shard)| {
                let table = shard.table(self.db)?;
                let here = place < table.len();
                place = place.saturating_sub(table.len());
                here.then_some(table)
            })?;
            let entry = table.entry(table.pick(&mut dice)?)?;
            (!entry.is_expired(self.now)).then(|| entry.key.clone())
        })
    }

    /// How many keys the locked shards hold in the current database, expired ones included.
    pub(crate) fn len(&self) -> usize {
        self.guards.iter().filter_map(|(_, shard)| shard.table(self.db)).map(Table::len).sum()
    }

    /// Shows the live keys of the locked shards from `cursor` on, until `steps` are used up: one
    /// for each key, and one for each stretch of empty slots. Returns where to go on; `None` at
    /// the end.
    ///
    /// A slot keeps its key as long as the key lives, so a key that is there throughout a scan
    /// is shown exactly once; but for one that a transaction has removed before it was taken
    /// back ([`View::revocable`]): it may come back into another slot, and be missed or shown
    /// twice.
    pub(crate) fn scan(
        &self,
        cursor: Cursor,
        steps: &mut usize,
        mut visit: impl FnMut(&[u8], &Value),
    ) -> Option<Cursor> {
        for (number, shard) in &self.guards {
            let from = match number.cmp(&cursor.shard()) {
                std::cmp::Ordering::Less => continue,
                std::cmp::Ordering::Equal => cursor.slot(),
                std::cmp::Ordering::Greater => 0,
            };
            let Some(table) = shard.table(self.db) else { continue };
            let next = table.walk(from, steps, |_, entry| {
                if !entry.is_expired(self.now) {
                    visit(entry.key.as_bytes(), &entry.value);
                }
                ControlFlow::Continue(())
            });
            if let Some(slot) = next {
                return Some(Cursor::new(*number, slot));
            }
        }
        self.engine.cursor_after(self.guards.last()?.0)
    }

    /// What the locked shards have counted and hold.
    pub(crate) fn stats(&self) -> Stats {
        let mut stats = Stats::default();
        self.guards.iter().for_each(|(_, shard)| stats.add(&Stats::of(shard)));
        stats
    }

    /// A key that no request has named.
    pub(crate) fn key<'k>(&self, bytes: &'k [u8]) -> KeyRef<'k> {
        self.engine.key(bytes)
    }

    /// Whether the shard of the key is locked, so that the key may be asked for.
    pub(crate) fn holds(&self, key: KeyRef<'_>) -> bool {
        let number = self.engine.shard_of(key);
        self.guards.binary_search_by_key(&number, |(number, _)| *number).is_ok()
    }

    #[inline]
    pub(super) fn shard(&mut self, key: KeyRef<'_>) -> &mut Shard {
        self.recent = self.place(key);
        &mut self.guards[self.recent].1
    }

    /// Which of the guards is that of the key's shard: nearly always the only one, or in a group
    /// the one that was asked for last, or that the key remembers.
    ///
    /// Also of a single one the number is compared. A key that was not named would otherwise be
    /// read and written where no other request finds it.
    #[inline]
    pub(super) fn place(&self, key: KeyRef<'_>) -> usize {
        let number = self.engine.shard_of(key);
        let is_at = |place: usize| self.guards.get(place).is_some_and(|(at, _)| *at == number);
        if is_at(self.recent) {
            return self.recent;
        }
        let place = usize::from(key.place);
        if is_at(place) { place } else { self.search_place(number) }
    }

    #[inline(never)]
    fn search_place(&self, number: usize) -> usize {
        self.guards
            .binary_search_by_key(&number, |(number, _)| *number)
            .expect("a transaction locks the shard of every key it names")
    }
}

fn found(entry: &Entry, now: Timestamp) -> Found<'_> {
    Found {
        value: &entry.value,
        expires: entry.expires,
        idle: Duration::from_secs(u64::from(seconds(now).saturating_sub(entry.accessed_s))),
        charge_bytes: entry.whole_bytes(),
    }
}
