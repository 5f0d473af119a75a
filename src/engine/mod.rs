//! What is remembered: the keyspace, its values, their expiry, and the memory they take.
//!
//! The keyspace is cut into shards, each under a lock of its own; the hash of a key alone picks
//! its shard, whichever database it is in. [`Engine::try_transact`] is the one way in: it locks the
//! shards of the keys that a request names in ascending order, so two transactions never wait
//! for each other in a circle, and hands out a [`View`] of them at one moment.
//!
//! Invariants: time inside a shard never goes back; keys and values change only in `shard.rs`;
//! nothing waits for I/O while a shard is locked.

mod buckets;
#[cfg(test)]
mod bucket_tests;
mod changes;
mod collections;
mod evict;
mod followers;
mod group;
mod key;
mod long;
mod options;
mod outbox;
mod places;
mod record;
mod shard;
mod stats;
mod table;
mod tables;
mod tenant_room;
mod tenants;
#[cfg(test)]
mod tests;
mod tickets;
mod tracked;
mod undo;
mod value;
mod view;
mod waiting;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crossbeam_utils::CachePadded;
use parking_lot::{Mutex, MutexGuard};
use smallvec::SmallVec;

pub(crate) use buckets::spend;
pub(crate) use buckets::{Answers, Asked, Hold, Manner};
pub(crate) use changes::{Collector, Overflowed, Place, Step};
pub(crate) use key::{Key, KeyHasher, KeyRef};
pub(crate) use long::{Busy, Long, Patience};
pub(crate) use options::{MemoryPolicy, Options};
pub(crate) use record::{Record, RecordError};
pub(crate) use shard::{Expires, Kept};
pub(crate) use stats::Stats;
pub(crate) use tables::BUCKETS;
pub(crate) use tenants::Full;
#[cfg(test)]
use tenants::Usage;
pub(crate) use tickets::{Settled, Ticket, ticket_name};
pub(crate) use tracked::{NOBODY, News, Readers};
pub(crate) use value::{Collection, Value, reserve};
pub(crate) use view::{Cursor, Flushed, Found, View};
pub(crate) use waiting::{Served, Waiter};

use crate::protocol::Error;
use crate::time::Timestamp;
use outbox::Outbox;
use shard::{Generation, Shard};
use table::{Held, KEY_BYTES_MIN};
use tenants::Tenants;
use view::Guards;

/// Databases that SELECT can choose from.
pub(crate) const DATABASES: usize = 16;

/// Keys that one step of the sweep looks at under one lock: some tens of microseconds.
const SWEEP_KEYS_MAX: usize = 2_048;

/// A new key would not fit under the memory bound.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("the memory bound is reached")]
pub(crate) struct OutOfMemory;

/// Which shards a transaction locks.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Scope<'k> {
    /// Those of these keys.
    Keys(&'k [KeyRef<'k>]),
    /// One, by its number.
    Shard(usize),
    All,
}

impl From<OutOfMemory> for Error {
    fn from(_: OutOfMemory) -> Self {
        Self::OutOfMemory
    }
}

impl From<Busy> for Error {
    fn from(_: Busy) -> Self {
        Self::Busy
    }
}

#[derive(Debug)]
pub(crate) struct Engine {
    shards: Box<[CachePadded<Mutex<Shard>>]>,
    /// Those of the shards, to be read without a lock.
    generations: Box<[Arc<Generation>]>,
    tenants: Arc<Tenants>,
    looks: tenant_room::Looks,
    hasher: KeyHasher,
    /// Sums over the shards; they lag by at most what those have not yet handed over.
    used_bytes: AtomicUsize,
    strings: AtomicUsize,
    expiring_strings: AtomicUsize,
    /// Zero for no bound.
    memory_max: AtomicUsize,
    policy: std::sync::atomic::AtomicU8,
    /// Where the sweep and the eviction go on.
    sweeping: AtomicUsize,
    evicting: AtomicU64,
    /// Where the dice stand.
    dice: AtomicU64,
    long: CachePadded<Long>,
    /// What each shard told last.
    latest: Mutex<Vec<Stats>>,
    outbox: Outbox,
}

impl Engine {
    /// `seed` makes key hashes unpredictable from outside; `shards` is a power of two.
    pub(crate) fn new(shards: usize, seed: u64) -> Self {
        debug_assert!(shards.is_power_of_two());
        let hasher = KeyHasher::new(seed);
        let tenants = Arc::new(Tenants::new(hasher.clone()));
        let generations: Box<[Arc<Generation>]> = (0..shards).map(|_| Arc::default()).collect();
        let order = Arc::default();
        let shard = |generation: &Arc<Generation>| {
            CachePadded::new(Mutex::new(Shard::new(
                &order,
                Arc::clone(generation),
                Arc::clone(&tenants),
            )))
        };
        Self {
            shards: generations.iter().map(shard).collect(),
            generations,
            tenants,
            looks: tenant_room::Looks::default(),
            hasher,
            used_bytes: AtomicUsize::new(0),
            strings: AtomicUsize::new(0),
            expiring_strings: AtomicUsize::new(0),
            memory_max: AtomicUsize::new(0),
            policy: std::sync::atomic::AtomicU8::new(MemoryPolicy::NoEviction as u8),
            sweeping: AtomicUsize::new(0),
            evicting: AtomicU64::new(0),
            dice: AtomicU64::new(seed),
            long: CachePadded::default(),
            latest: Mutex::default(),
            outbox: Outbox::default(),
        }
    }

    /// What names are to be hashed with that clients choose.
    pub(crate) fn hasher(&self) -> &KeyHasher {
        &self.hasher
    }

    pub(crate) fn key<'a>(&self, bytes: &'a [u8]) -> KeyRef<'a> {
        self.hasher.key(bytes)
    }

    /// Runs `f` over the locked shards at one moment that is never before any that these
    /// shards have seen.
    ///
    /// Waits for the shards, but while a transaction is [`Long`] only for a moment.
    #[inline]
    pub(crate) fn try_transact<R>(
        &self,
        scope: Scope<'_>,
        db: usize,
        now: Timestamp,
        f: impl FnOnce(&mut View<'_>) -> R,
    ) -> Result<R, Busy> {
        let guards = self.lock(scope, Patience::UntilBusy)?;
        Ok(self.transact_in(guards, db, now, f))
    }

    /// The same for who must not wait at all, and can come again.
    pub(crate) fn attempt<R>(
        &self,
        scope: Scope<'_>,
        db: usize,
        now: Timestamp,
        f: impl FnOnce(&mut View<'_>) -> R,
    ) -> Result<R, Busy> {
        let guards = self.lock(scope, Patience::None)?;
        Ok(self.transact_in(guards, db, now, f))
    }

    /// The same for tests, which hold nothing for long.
    #[cfg(test)]
    pub(crate) fn transact<R>(
        &self,
        scope: Scope<'_>,
        db: usize,
        now: Timestamp,
        f: impl FnOnce(&mut View<'_>) -> R,
    ) -> R {
        self.try_transact(scope, db, now, f).expect("no transaction is long")
    }

    #[inline]
    fn transact_in<'e, R>(
        &'e self,
        mut guards: Guards<'e>,
        db: usize,
        now: Timestamp,
        f: impl FnOnce(&mut View<'_>) -> R,
    ) -> R {
        let mut latest = now;
        for (_, shard) in &guards {
            latest = latest.max(shard.latest);
        }
        let mut before = Held::default();
        for (_, shard) in &mut guards {
            shard.latest = latest;
            before = before.plus(shard.held());
        }
        let mut view =
            View { engine: self, guards, now: latest, db, touches: true, by: NOBODY, recent: 0 };
        let result = f(&mut view);
        if view.guards.iter().any(|(_, shard)| shard.followers.are_any()) {
            self.tell_followers(&mut view);
        }
        let held = view.guards.iter().map(|(_, shard)| shard.held());
        self.account(before, held.fold(Held::default(), Held::plus));
        result
    }

    /// Serves who waits for what has changed, and posts what others must be told.
    #[cold]
    fn tell_followers(&self, view: &mut View<'_>) {
        if view.guards.iter().any(|(_, shard)| shard.followers.is_stirred()) {
            let served = view.serve();
            self.post_more(served);
        }
        if view.guards.iter().any(|(_, shard)| shard.followers.has_news()) {
            let by = view.by;
            self.post(view.guards.iter_mut().map(|(_, shard)| &mut **shard), by);
        }
    }

    fn lock(&self, scope: Scope<'_>, patience: Patience) -> Result<Guards<'_>, Busy> {
        match scope {
            Scope::Keys([key]) => self.lock_one(self.shard_of(*key), patience),
            Scope::Keys(keys) => {
                let mut numbers: SmallVec<[usize; 16]> =
                    keys.iter().map(|key| self.shard_of(*key)).collect();
                numbers.sort_unstable();
                numbers.dedup();
                self.lock_each(numbers, patience)
            }
            Scope::Shard(number) if number < self.shards.len() => self.lock_one(number, patience),
            Scope::Shard(_) => Ok(Guards::new()),
            Scope::All => self.lock_each(0..self.shards.len(), patience),
        }
    }

    /// In the order given, which ascends.
    fn lock_each(
        &self,
        numbers: impl IntoIterator<Item = usize>,
        patience: Patience,
    ) -> Result<Guards<'_>, Busy> {
        numbers.into_iter().map(|number| self.lock_shard(number, patience)).collect()
    }

    #[inline]
    fn lock_one(&self, number: usize, patience: Patience) -> Result<Guards<'_>, Busy> {
        let mut guards = Guards::new();
        guards.push(self.lock_shard(number, patience)?);
        Ok(guards)
    }

    #[inline]
    fn lock_shard(
        &self,
        number: usize,
        patience: Patience,
    ) -> Result<(usize, MutexGuard<'_, Shard>), Busy> {
        let shard: &Mutex<Shard> = &self.shards[number];
        Ok((number, self.long.lock(shard, patience)?))
    }

    /// Who makes others wait for long says so here.
    pub(crate) fn long(&self) -> &Long {
        &self.long
    }

    /// A number that looks random: splitmix64 from the seed on. Good enough to pick a key with.
    fn dice(&self) -> u64 {
        const STEP: u64 = 0x9E37_79B9_7F4A_7C15;
        let mixed = self.dice.fetch_add(STEP, Ordering::Relaxed).wrapping_add(STEP);
        let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    fn shard_of(&self, key: KeyRef<'_>) -> usize {
        key.shard_bits() & (self.shards.len() - 1)
    }

    /// The first position after a shard; `None` after the last one.
    fn cursor_after(&self, shard: usize) -> Option<Cursor> {
        (shard + 1 < self.shards.len()).then(|| Cursor::new(shard + 1, 0))
    }

    /// Only what changed by more than nothing is written: the sum is on a line of memory that
    /// every worker reads.
    fn account(&self, before: Held, after: Held) {
        for (sum, before, after) in [
            (&self.used_bytes, before.bytes, after.bytes),
            (&self.strings, before.strings, after.strings),
            (&self.expiring_strings, before.expiring_strings, after.expiring_strings),
        ] {
            if before != after {
                sum.fetch_add(after.wrapping_sub(before), Ordering::Relaxed);
            }
        }
    }

    /// What all entries and chunks of slots are charged against the memory bound.
    pub(crate) fn used_bytes(&self) -> usize {
        self.used_bytes.load(Ordering::Relaxed)
    }

    pub(crate) fn memory_max(&self) -> usize {
        self.memory_max.load(Ordering::Relaxed)
    }

    /// Zero for no bound.
    pub(crate) fn set_memory_max(&self, bytes: usize) {
        self.memory_max.store(bytes, Ordering::Relaxed);
    }

    /// Whether the memory bound is reached; one that no key fits under is so from the start.
    pub(crate) fn is_full(&self) -> bool {
        let max = self.memory_max();
        max != 0 && (self.used_bytes() >= max || max < KEY_BYTES_MIN)
    }

    /// Whether memory is so far over its bound (by a sixteenth) that even live limiters must
    /// not grow. Between the two bounds only new keys are refused. Where there is something to
    /// evict, as after the bound was lowered, that goes first, and nobody is refused.
    pub(crate) fn is_overfull(&self) -> bool {
        let max = self.memory_max();
        max != 0 && self.used_bytes() >= max.saturating_add(max / 16) && !self.can_evict()
    }

    /// The gate has already evicted what it may for one request; where there is more to evict,
    /// the key passes, and that goes next.
    fn room_for_a_key(&self) -> Result<(), OutOfMemory> {
        if self.is_full() && !self.can_evict() { Err(OutOfMemory) } else { Ok(()) }
    }

    /// One bounded step of the sweep for expired keys; a shard that is held has its turn in the
    /// next lap. Returns whether it ended a lap over the
    /// whole keyspace: the caller goes on until then, or until its budget is spent.
    pub(crate) fn sweep(&self, now: Timestamp) -> bool {
        let number = self.sweeping.load(Ordering::Relaxed) & (self.shards.len() - 1);
        let done = self.shards[number].try_lock().is_none_or(|mut shard| {
            let before = shard.held();
            let now = now.max(shard.latest);
            let done = shard.sweep(now, SWEEP_KEYS_MAX);
            self.post_of(&mut shard);
            self.account(before, shard.held());
            done
        });
        if done {
            self.sweeping.store(number + 1, Ordering::Relaxed);
        }
        done && number + 1 == self.shards.len()
    }

    pub(crate) fn shards(&self) -> usize {
        self.shards.len()
    }
}
