//! Making room: which Redis values go first when memory is at its bound.
//!
//! The default refuses new keys instead. Where an eviction policy is chosen, it touches Redis
//! values only, never a limiter's state: a forgotten limit would be a free pass. As in Redis, the
//! victim is the best of a small sample, here of neighbouring slots at a place that moves on.

use std::ops::ControlFlow;
use std::sync::atomic::Ordering;

use super::options::{MemoryPolicy, Shards};
use super::shard::Shard;
use super::table::{Entry, Held, Slot, seconds};
use super::{DATABASES, Engine};
use crate::time::Timestamp;

/// Candidates looked at for one victim.
const SAMPLE: usize = 16;

/// Slots looked at under one lock: where most hold limiters, candidates are rare.
const VISIT_LOOKS_MAX: usize = 512;

/// Slots and shards looked at by one call, so that no request waits long for others' memory:
/// some tens of microseconds.
const CALL_LOOKS_MAX: usize = 8_192;

/// Victims of one call, for the same reason.
const VICTIMS_MAX: usize = 32;

const _: () = assert!(CALL_LOOKS_MAX > Shards::MAX as usize, "a call may ask every shard");

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
        if !entry.value.may_be_evicted() {
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
    /// have gone. Returns whether a write may pass: there is room, or more of it than before.
    ///
    /// As in Redis, who has waited for its share of the work is not refused because there is
    /// more; whoever comes next does as much again, and housekeeping the rest.
    pub(crate) fn make_room(&self, now: Timestamp) -> bool {
        let policy = self.policy();
        let (mut victims, mut looks) = (0, CALL_LOOKS_MAX);
        while self.is_full() {
            if victims == VICTIMS_MAX || !self.evict_one(policy, now, &mut looks) {
                return victims > 0;
            }
            victims += 1;
        }
        true
    }

    /// Whether there is anything that the policy would give up.
    pub(super) fn can_evict(&self) -> bool {
        let strings = self.strings.load(Ordering::Relaxed);
        let expiring_strings = self.expiring_strings.load(Ordering::Relaxed);
        Held { bytes: 0, strings, expiring_strings }.evictable(self.policy()) > 0
    }

    fn evict_one(&self, policy: MemoryPolicy, now: Timestamp, looks: &mut usize) -> bool {
        while *looks > 0 && self.can_evict() {
            *looks -= 1;
            let place = self.evicting.fetch_add(1, Ordering::Relaxed);
            let shard = &self.shards[place as usize & (self.shards.len() - 1)];
            // Some other will do as well as one that is held.
            let Some(mut shard) = shard.try_lock() else { continue };
            let before = shard.held();
            if before.evictable(policy) == 0 {
                continue;
            }
            let Some((db, slot)) = victim(&mut shard, policy, now, looks) else { continue };
            shard.remove(db, slot);
            shard.counts.evicted += 1;
            self.post_of(&mut shard);
            let after = shard.held();
            drop(shard);
            self.account(before, after);
            return true;
        }
        false
    }
}

impl Held {
    fn evictable(self, policy: MemoryPolicy) -> usize {
        match policy {
            MemoryPolicy::NoEviction => 0,
            MemoryPolicy::AllkeysLru | MemoryPolicy::AllkeysRandom => self.strings,
            MemoryPolicy::VolatileLru
            | MemoryPolicy::VolatileRandom
            | MemoryPolicy::VolatileTtl => self.expiring_strings,
        }
    }
}

/// The best of some candidates, from where the last search in this shard ended.
fn victim(
    shard: &mut Shard,
    policy: MemoryPolicy,
    now: Timestamp,
    looks: &mut usize,
) -> Option<(usize, Slot)> {
    let granted = VISIT_LOOKS_MAX.min(*looks);
    let (mut steps, mut seen) = (granted, 0);
    let mut best: Option<(u64, usize, Slot)> = None;
    let (mut db, mut from) = shard.evicting;
    // One more than there are: the rest of the first one comes last.
    for _ in 0..=DATABASES {
        let table = shard.table(db).filter(|table| table.held().evictable(policy) > 0);
        let next = table.and_then(|table| {
            table.walk(from, &mut steps, |slot, entry| {
                if let Some(score) = policy.score(entry, now) {
                    best = best.max(Some((score, db, slot)));
                    seen += 1;
                }
                if seen < SAMPLE { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            })
        });
        (db, from) = match next {
            Some(slot) => (db, slot),
            None => ((db + 1) % DATABASES, 0),
        };
        if seen >= SAMPLE || steps == 0 {
            break;
        }
    }
    shard.evicting = (db, from);
    *looks -= granted - steps;
    best.map(|(_, db, slot)| (db, slot))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{START, get, put};
    use super::super::{Expires, Kept, OutOfMemory, Scope, Value};
    use super::*;
    use crate::limit::{Algorithm, Quota, State};
    use crate::time::Duration;

    const HOUR: Duration = Duration::from_secs(3_600);

    fn put_limiter(engine: &Engine, name: &[u8]) -> Result<(), OutOfMemory> {
        let quota = Quota::new(Algorithm::FixedWindow, 5, HOUR).expect("a plain quota");
        let key = engine.key(name);
        engine.transact(Scope::Keys(&[key]), 0, START, |view| {
            view.update(
                key,
                |now| Value::Limit(State::new(&quota, now)),
                |_, _| Ok(((), Kept::Changed { expires: Expires::Never })),
            )
        })
    }

    #[test]
    fn the_longest_unused_string_goes_first_and_no_limiter_ever() {
        let engine = Engine::new(1, 7);
        put(&engine, b"old", 1, Timestamp::MAX, START);
        put(&engine, b"young", 1, Timestamp::MAX, START + HOUR);
        assert_eq!(put_limiter(&engine, b"limiter"), Ok(()));
        engine.set_policy(MemoryPolicy::AllkeysLru);
        engine.set_memory_max(engine.used_bytes());
        assert!(engine.make_room(START + HOUR));
        assert_eq!(get(&engine, b"old", START + HOUR), None);
        assert_eq!(get(&engine, b"young", START + HOUR), Some(1));
        engine.set_memory_max(1);
        assert!(engine.make_room(START + HOUR), "one has gone");
        assert!(!engine.make_room(START + HOUR), "only the limiter is left");
        assert_eq!(engine.stats().databases[0].keys, 1);
    }

    #[test]
    fn a_new_limiter_is_refused_only_when_nothing_can_be_evicted() {
        let engine = Engine::new(1, 7);
        put(&engine, b"string", 1, Timestamp::MAX, START);
        engine.set_memory_max(1);
        assert_eq!(put_limiter(&engine, b"a"), Err(OutOfMemory));
        engine.set_policy(MemoryPolicy::VolatileLru);
        assert_eq!(put_limiter(&engine, b"a"), Err(OutOfMemory));
        engine.set_policy(MemoryPolicy::AllkeysLru);
        assert_eq!(put_limiter(&engine, b"a"), Ok(()));
        assert!(engine.make_room(START));
        assert_eq!(put_limiter(&engine, b"b"), Err(OutOfMemory));
        assert_eq!(put_limiter(&engine, b"a"), Ok(()), "a live one grows no table");
    }

    #[test]
    fn call_that_ran_out_of_victims_has_made_progress() {
        let engine = Engine::new(4, 7);
        for number in 0..1_000_u32 {
            put(&engine, &number.to_be_bytes(), 1, Timestamp::MAX, START);
        }
        engine.set_policy(MemoryPolicy::AllkeysRandom);
        engine.set_memory_max(1);
        assert!(engine.make_room(START));
        assert!(engine.is_full());
        assert_eq!(engine.stats().evicted, VICTIMS_MAX as u64);
        while engine.make_room(START) && engine.is_full() {}
        assert_eq!(engine.used_bytes(), 0);
    }

    #[test]
    fn a_few_strings_among_many_limiters_are_found_by_bounded_looks() {
        const LIMITERS: u32 = 40_000;
        let engine = Engine::new(2, 7);
        for number in 0..LIMITERS {
            assert_eq!(put_limiter(&engine, &number.to_be_bytes()), Ok(()));
        }
        engine.set_policy(MemoryPolicy::VolatileTtl);
        engine.set_memory_max(1);
        for name in [b"a", b"b", b"c"] {
            put(&engine, name, 1, START + HOUR, START);
        }
        let mut looked = 0;
        let mut search = || {
            let mut looks = CALL_LOOKS_MAX;
            let found = engine.evict_one(MemoryPolicy::VolatileTtl, START, &mut looks);
            looked += CALL_LOOKS_MAX - looks;
            (found, CALL_LOOKS_MAX - looks)
        };
        // Each search goes on where the last one ended, so a lap over all finds each of them.
        for _ in 0..3 + 2 * LIMITERS as usize / CALL_LOOKS_MAX {
            search();
        }
        assert!(!engine.can_evict());
        assert_eq!(search(), (false, 0), "nothing is looked at where nothing can go");
        assert!(looked <= 2 * LIMITERS as usize, "{looked} looks");
        assert_eq!(engine.stats().databases[0].keys, LIMITERS as usize);
    }
}
