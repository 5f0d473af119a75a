//! Several keys under one locking, each asked for by a request of its own.
//!
//! With many keys, most of what a request costs is waiting for memory. So all keys of a group are
//! looked at before the first one is asked for: in one short loop for each step of the way to what
//! a request reads, whose loads do not depend on each other, so that the processor waits for those
//! of all keys together. What was found on the way stays with the key: which of the locked shards
//! is its own, and in which slot it seems to stand.
//!
//! Invariant: what stays with a key is a guess. It is compared before it is believed, and a wrong
//! one costs a search.

use smallvec::SmallVec;

use super::key::KeyRef;
use super::long::{Busy, Patience};
use super::options::Shards;
use super::table::Entry;
use super::view::{Guards, View};
use super::{Engine, Scope};
use crate::time::Timestamp;

/// So many keys are sorted by a network, the others as any list.
const FEW: usize = 8;

/// A shard's number stands above the place of a key in its group.
const PLACE_BITS: u32 = FEW.trailing_zeros();

const _: () = assert!(FEW.is_power_of_two() && Shards::MAX <= u32::MAX >> PLACE_BITS);

impl Engine {
    /// As [`Engine::try_transact`], over keys that are asked for one after another.
    #[inline]
    pub(crate) fn try_transact_group<'k, R>(
        &self,
        keys: &mut [KeyRef<'k>],
        db: usize,
        now: Timestamp,
        f: impl FnOnce(&mut View<'_>, &[KeyRef<'k>]) -> R,
    ) -> Result<R, Busy> {
        let guards = match keys.len() {
            2..=FEW => self.lock_few(keys)?,
            _ => self.lock(Scope::Keys(keys), Patience::UntilBusy)?,
        };
        Ok(self.transact_in(guards, db, now, |view| {
            view.warm(keys);
            f(view, keys)
        }))
    }

    /// In ascending order. Which of the guards is that of a key stays with the key.
    #[inline]
    fn lock_few(&self, keys: &mut [KeyRef<'_>]) -> Result<Guards<'_>, Busy> {
        let mut order = [u32::MAX; FEW];
        for (at, (slot, key)) in order.iter_mut().zip(&*keys).enumerate() {
            *slot = ((self.shard_of(*key) << PLACE_BITS) | at) as u32;
        }
        sort(&mut order);
        let mut guards = Guards::new();
        let mut locked = None;
        for packed in order.iter().take(keys.len()) {
            let number = (packed >> PLACE_BITS) as usize;
            if locked != Some(number) {
                guards.push(self.lock_shard(number, Patience::UntilBusy)?);
                locked = Some(number);
            }
            if let Some(key) = keys.get_mut(*packed as usize % FEW) {
                key.place = (guards.len() - 1) as u16;
            }
        }
        Ok(guards)
    }
}

impl View<'_> {
    /// Looks at keys that will be asked for next, so that their memory is near when they are.
    #[inline]
    fn warm(&self, keys: &mut [KeyRef<'_>]) {
        for key in &mut *keys {
            let place = self.place(*key);
            let slot = self.guards[place].1.table(self.db).and_then(|table| table.guess(*key));
            (key.place, key.slot) = (place as u16, slot.unwrap_or(KeyRef::NOWHERE));
        }
        let entry = |key: &KeyRef<'_>| {
            self.guards[usize::from(key.place)].1.table(self.db)?.entry(key.slot)
        };
        let mut entries: SmallVec<[&Entry; FEW]> = SmallVec::new();
        let mut seen = 0;
        for entry in keys.iter().filter_map(entry) {
            seen ^= entry.prefetch();
            entries.push(entry);
        }
        seen ^= entries.iter().fold(0, |seen, entry| seen ^ entry.prefetch_owned());
        seen ^= entries.iter().fold(0, |seen, entry| seen ^ entry.prefetch_tail());
        std::hint::black_box(seen);
    }
}

/// By a network of comparisons that are the same whatever the order, and so without a branch:
/// the order is random, and half of the branches would be mispredicted.
#[inline(always)]
fn sort(numbers: &mut [u32; FEW]) {
    let mut order = |one: usize, two: usize| {
        let (less, more) = (numbers[one].min(numbers[two]), numbers[one].max(numbers[two]));
        (numbers[one], numbers[two]) = (less, more);
    };
    order(0, 2);
    order(1, 3);
    order(4, 6);
    order(5, 7);

    order(0, 4);
    order(1, 5);
    order(2, 6);
    order(3, 7);

    order(0, 1);
    order(2, 3);
    order(4, 5);
    order(6, 7);

    order(2, 4);
    order(3, 5);

    order(1, 4);
    order(3, 6);

    order(1, 2);
    order(3, 4);
    order(5, 6);
}

#[cfg(test)]
mod tests {
    use super::super::Value;
    use super::*;

    const NOW: Timestamp = Timestamp::EPOCH;

    /// Stores each number under its own name.
    fn stored(count: i64) -> Engine {
        let engine = Engine::new(4, 7);
        for number in 0..count {
            let name = number.to_string();
            let key = engine.key(name.as_bytes());
            engine.transact(Scope::Keys(&[key]), 0, NOW, |view| {
                view.insert(key, Value::Integer(number), Timestamp::MAX);
            });
        }
        engine
    }

    fn found(view: &mut View<'_>, key: KeyRef<'_>) -> Option<i64> {
        match view.look(key)?.value {
            Value::Integer(number) => Some(*number),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn keys_of_a_group_of_any_size_are_found() {
        let engine = stored(40);
        for count in 0..40 {
            let names: Vec<String> = (0..count).map(|at| (at * 7 % 40).to_string()).collect();
            let mut keys: Vec<_> = names.iter().map(|name| engine.key(name.as_bytes())).collect();
            let done = engine.try_transact_group(&mut keys, 0, NOW, |view, keys| {
                for (name, key) in names.iter().zip(keys) {
                    assert_eq!(
                        found(view, *key).map(|number| number.to_string()).as_ref(),
                        Some(name)
                    );
                }
            });
            assert!(done.is_ok());
        }
    }

    #[test]
    fn wrong_guess_costs_a_search_alone() {
        let engine = stored(40);
        engine.transact(Scope::All, 0, NOW, |view| {
            for (place, slot) in (0..5).flat_map(|place| (0..40).map(move |slot| (place, slot))) {
                for (name, number) in [("21", Some(21)), ("absent", None)] {
                    let mut key = engine.key(name.as_bytes());
                    (key.place, key.slot) = (place, slot);
                    assert_eq!(found(view, key), number);
                }
            }
        });
    }

    #[test]
    fn key_that_an_earlier_one_of_its_group_removed_is_gone() {
        let engine = stored(2);
        let mut keys = [engine.key(b"1"), engine.key(b"1"), engine.key(b"new")];
        let done = engine.try_transact_group(&mut keys, 0, NOW, |view, keys| {
            assert!(view.remove(keys[0]));
            view.insert(keys[2], Value::Integer(3), Timestamp::MAX);
            (found(view, keys[1]), found(view, keys[2]))
        });
        assert_eq!(done, Ok((None, Some(3))));
    }

    #[test]
    fn network_sorts_what_is_sorted_for_any_threshold() {
        // Numbers are in order if they are so for each threshold, above it or not.
        for bits in 0..1_u32 << FEW {
            let mut numbers = std::array::from_fn(|at| bits >> at & 1);
            sort(&mut numbers);
            assert!(numbers.is_sorted(), "{bits:b}");
        }
    }
}
