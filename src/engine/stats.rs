//! What the engine has counted and holds, added up over its shards.
//!
//! Each shard is consistent in itself; the sum is of one moment only for who holds them all.

use super::shard::{Counts, Shard};
use super::table::Table;
use super::tables::BUCKETS;
use super::{DATABASES, Engine};

/// How long the statistics wait for the shards that are held.
const STATS_PATIENCE: std::time::Duration = std::time::Duration::from_millis(10);

/// What the engine has counted and holds.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Stats {
    pub(crate) hits: u64,
    pub(crate) misses: u64,
    pub(crate) expired: u64,
    pub(crate) evicted: u64,
    /// Decisions on keys.
    pub(crate) allowed: u64,
    pub(crate) denied: u64,
    /// Reservations and leases whose time was over before they were settled.
    pub(crate) holds_expired: u64,
    /// Keys of the space of buckets.
    pub(crate) buckets: usize,
    pub(crate) used_bytes: usize,
    /// Keys whose readers are told of their changes, and those readers.
    pub(crate) tracked_keys: usize,
    pub(crate) tracked_readers: usize,
    pub(crate) databases: [DatabaseStats; DATABASES],
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct DatabaseStats {
    pub(crate) keys: usize,
    pub(crate) expiring: usize,
}

impl Stats {
    pub(super) fn of(shard: &Shard) -> Self {
        let Counts { hits, misses, expired, evicted, allowed, denied, holds_expired } =
            shard.counts;
        let database = |db| {
            let table = shard.table(db);
            table.map_or_else(DatabaseStats::default, |table| DatabaseStats {
                keys: table.len(),
                expiring: table.expiring(),
            })
        };
        let (tracked_keys, tracked_readers) = shard.followers.tracked_counts();
        Self {
            hits,
            misses,
            expired,
            evicted,
            allowed,
            denied,
            holds_expired,
            buckets: shard.table(BUCKETS).map_or(0, Table::len),
            used_bytes: shard.held().bytes,
            tracked_keys,
            tracked_readers,
            databases: std::array::from_fn(database),
        }
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.hits += other.hits;
        self.misses += other.misses;
        self.expired += other.expired;
        self.evicted += other.evicted;
        self.allowed += other.allowed;
        self.denied += other.denied;
        self.holds_expired += other.holds_expired;
        self.buckets += other.buckets;
        self.used_bytes += other.used_bytes;
        self.tracked_keys += other.tracked_keys;
        self.tracked_readers += other.tracked_readers;
        for (sum, database) in self.databases.iter_mut().zip(&other.databases) {
            sum.keys += database.keys;
            sum.expiring += database.expiring;
        }
    }
}

impl Engine {
    /// Visits every shard in turn; each is consistent in itself. Never waits for long: of a
    /// shard that is held it tells what it knew last.
    pub(crate) fn stats(&self) -> Stats {
        let mut latest = self.latest.lock();
        latest.resize(self.shards.len(), Stats::default());
        let mut patience = STATS_PATIENCE;
        let mut stats = Stats::default();
        for (shard, latest) in self.shards.iter().zip(&mut *latest) {
            match shard.try_lock_for(patience) {
                Some(shard) => *latest = Stats::of(&shard),
                None => patience = std::time::Duration::ZERO,
            }
            stats.add(latest);
        }
        stats
    }
}
