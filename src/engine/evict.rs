//! Making room: which Redis values go first when memory is at its bound.
//!
//! The default refuses new keys instead. Where an eviction policy is chosen, it touches Redis
//! values only, never a limiter's state: a forgotten limit would be a free pass. As in Redis, the
//! victim is the best of a small sample, here of neighbouring slots at a place that moves on.

use std::ops::ControlFlow;
use std::sync::atomic::Ordering;

use super::options::MemoryPolicy;
use super::table::{Entry, Slot, seconds};
use super::{DATABASES, Engine};
use crate::time::Timestamp;

/// Candidates looked at for one victim.
const SAMPLE: usize = 16;

/// Shards visited in search of one victim before giving up.
const VISITS_MAX: usize = 64;

/// Victims of one call, so that no request waits long for others' memory.
const VICTIMS_MAX: usize = 32;

impl MemoryPolicy {
    pub(crate) const ALL: [Self; 6] = [
        Self::NoEviction,
        Self::AllkeysLru,
        Self::VolatileLru,
        Self::AllkeysRandom,
        Self::VolatileRandom,
        Self::VolatileTtl,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::NoEviction => "noeviction",
            Self::AllkeysLru => "allkeys-lru",
            Self::VolatileLru => "volatile-lru",
            Self::AllkeysRandom => "allkeys-random",
            Self::VolatileRandom => "volatile-random",
            Self::VolatileTtl => "volatile-ttl",
        }
    }

    pub(crate) fn parse(name: &[u8]) -> Option<Self> {
        Self::ALL.into_iter().find(|policy| policy.name().as_bytes().eq_ignore_ascii_case(name))
    }

    /// How gladly an entry is given up, or `None` where it must stay.
    fn score(self, entry: &Entry, now: Timestamp) -> Option<u64> {
        if entry.value.is_limit() {
            return None;
        }
        let volatile = entry.expires != Timestamp::MAX;
        let idle_s = u64::from(seconds(now).saturating_sub(entry.accessed_s));
        match self {
            Self::NoEviction => None,
            Self::AllkeysLru => Some(idle_s),
            Self::VolatileLru => volatile.then_some(idle_s),
            Self::AllkeysRandom => Some(0),
            Self::VolatileRandom => volatile.then_some(0),
            Self::VolatileTtl => volatile.then(|| u64::MAX - entry.expires.as_micros()),
        }
    }
}

impl Engine {
    pub(crate) fn policy(&self) -> MemoryPolicy {
        let stored = usize::from(self.policy.load(Ordering::Relaxed));
        MemoryPolicy::ALL.get(stored).copied().unwrap_or(MemoryPolicy::NoEviction)
    }

    pub(crate) fn set_policy(&self, policy: MemoryPolicy) {
        self.policy.store(policy as u8, Ordering::Relaxed);
    }

    /// Forgets values as the policy allows until memory is under its bound, or a bounded number
    /// have gone. Returns whether there is room now.
    pub(crate) fn make_room(&self, now: Timestamp) -> bool {
        let policy = self.policy();
        for _ in 0..VICTIMS_MAX {
            if !self.is_full() {
                return true;
            }
            if policy == MemoryPolicy::NoEviction || !self.evict_one(policy, now) {
                return false;
            }
        }
        !self.is_full()
    }

    fn evict_one(&self, policy: MemoryPolicy, now: Timestamp) -> bool {
        (0..VISITS_MAX.max(self.shards.len())).any(|_| {
            // A large odd stride visits every shard, and other slots of it each time.
            let place = self.evicting.fetch_add(1, Ordering::Relaxed);
            let number = place as usize & (self.shards.len() - 1);
            let mut shard = self.shards[number].lock();
            let before = shard.held();
            let mut best: Option<(u64, usize, Slot)> = None;
            for db in 0..DATABASES {
                let Some(table) = shard.table(db) else { break };
                if table.len() == 0 {
                    continue;
                }
                let start =
                    (place.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as u32 % table.slots();
                let mut seen = 0;
                let mut look = |slot: Slot, entry: &Entry| {
                    if let Some(score) = policy.score(entry, now) {
                        best = best.max(Some((score, db, slot)));
                        seen += 1;
                    }
                    if seen < SAMPLE { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
                };
                table.walk(start, &mut { usize::MAX }, &mut look);
                table.walk(0, &mut (start as usize), &mut look);
            }
            let Some((_, db, slot)) = best else { return false };
            shard.remove(db, slot);
            shard.counts.evicted += 1;
            let after = shard.held();
            drop(shard);
            self.account(before, after);
            true
        })
    }
}
