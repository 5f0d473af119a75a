//! Heavy hitters: which few keys of very many get the most, in memory of a fixed size.
//!
//! The space-saving sketch of Metwally, Agrawal and El Abbadi (2005): a fixed number of
//! counters, and a key that has none takes over the smallest, with its count as the error that
//! its own may have. A heap keeps the smallest at hand: to add to a key moves it down a step or
//! two, and never more than the logarithm of the counters, whatever the weights are; the list of
//! equal counts that the paper has is quick for weights of one alone.
//!
//! So that "now" means now, all counts are halved once every half-life, and what was long ago
//! fades.
//!
//! Invariants, for weights that have been halved as often: `sure <= true weight <= count` of
//! every key that has a counter; a key of more than `total / counters + 1` has one. Adding
//! allocates nothing once every counter has held a key of the length that comes.

use crate::time::{Duration, Timestamp};

/// More counters would be asked for by nobody who reads them, and a sketch is for a few.
pub const COUNTERS_MAX: usize = 4_096;

/// Bytes that are kept of a key: a longer one is known by its beginning, length and hash.
pub const KEY_BYTES_MAX: usize = 256;

/// A place of the index that leads nowhere.
const NOBODY: u16 = u16::MAX;

const _: () = assert!(COUNTERS_MAX < NOBODY as usize);

/// A key and its hash, which the caller has anyway, under whatever secret seed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Hashed<'a> {
    pub bytes: &'a [u8],
    pub hash: u64,
}

/// The sketch.
#[derive(Clone, Debug)]
pub struct Heavy {
    counters: Vec<Counter>,
    counters_max: usize,
    /// Numbers of counters, so that none counts less than the one it stands below: the parent
    /// of place `n` is at `(n - 1) / 2`.
    heap: Vec<u16>,
    /// Numbers of counters by hash: the first free place from the hash on. Twice as many places
    /// as counters or more, a power of two.
    index: Box<[u16]>,
    total: u64,
    half_life: Duration,
    halved_at: Timestamp,
}

#[derive(Clone, Debug)]
struct Counter {
    hash: u64,
    /// Its beginning, of at most [`KEY_BYTES_MAX`].
    key: Vec<u8>,
    key_len: usize,
    /// At least what the key got.
    count: u64,
    /// At most what the key got.
    sure: u64,
    beside: u64,
    /// Where in the heap it stands.
    place: u16,
}

/// One key of those that got the most.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Heaviest<'a> {
    /// At most [`KEY_BYTES_MAX`] bytes of it.
    pub key: &'a [u8],
    /// The hash that it came with.
    pub hash: u64,
    /// At least what the key got, halved once every half-life.
    pub count: u64,
    /// How much less than `count` it may be.
    pub error: u64,
    /// What was noted beside it since it has a counter, halved as well.
    pub beside: u64,
    /// What `count` comes to in a second, of a key that gets as much all the time.
    pub per_second: f64,
    /// The same of `beside`.
    pub beside_per_second: f64,
}

impl Heavy {
    /// `counters` is brought into its bounds, 1 to [`COUNTERS_MAX`]; a half-life of zero is
    /// taken as the shortest there is.
    pub fn new(counters: usize, half_life: Duration, now: Timestamp) -> Self {
        let counters_max = counters.clamp(1, COUNTERS_MAX);
        let places = (counters_max * 2).next_power_of_two();
        Self {
            counters: Vec::with_capacity(counters_max),
            counters_max,
            heap: Vec::with_capacity(counters_max),
            index: vec![NOBODY; places].into(),
            total: 0,
            half_life: half_life.max(Duration::from_micros(1)),
            halved_at: now,
        }
    }

    /// All that was added, halved as the counts are; rounded up.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// The key got this much more.
    pub fn add(&mut self, key: Hashed<'_>, weight: u64, now: Timestamp) {
        self.fade(now);
        if weight == 0 {
            return;
        }
        self.total = self.total.saturating_add(weight);
        let number = match self.find(key) {
            Some((number, _)) => number,
            None if self.counters.len() < self.counters_max => self.begin(key),
            None => self.take_over(key),
        };
        let counter = &mut self.counters[usize::from(number)];
        counter.count = counter.count.saturating_add(weight);
        counter.sure = counter.sure.saturating_add(weight);
        let place = usize::from(counter.place);
        self.sink(place);
    }

    /// Notes something else of a key, which does not rank it: nothing where it has no counter.
    pub fn note_beside(&mut self, key: Hashed<'_>, weight: u64, now: Timestamp) {
        self.fade(now);
        if let Some((number, _)) = self.find(key) {
            let beside = &mut self.counters[usize::from(number)].beside;
            *beside = beside.saturating_add(weight);
        }
    }

    /// At most `most` keys, those that got the most first. What has faded is left out.
    pub fn top(&mut self, most: usize, now: Timestamp) -> Vec<Heaviest<'_>> {
        self.fade(now);
        let since_us = now.since(self.halved_at).as_micros();
        let half_life_s = self.half_life.as_micros() as f64 / 1e6;
        // What comes evenly stands at one half-life's worth right after a halving, and at two
        // right before the next.
        let span_s = half_life_s * (1.0 + since_us as f64 / self.half_life.as_micros() as f64);
        let mut top: Vec<Heaviest<'_>> = self
            .counters
            .iter()
            .filter(|counter| counter.sure > 0)
            .map(|counter| Heaviest {
                key: &counter.key,
                hash: counter.hash,
                count: counter.count,
                error: counter.count - counter.sure,
                beside: counter.beside,
                per_second: counter.count as f64 / span_s,
                beside_per_second: counter.beside as f64 / span_s,
            })
            .collect();
        top.sort_unstable_by(|one, other| (other.count, one.key).cmp(&(one.count, other.key)));
        top.truncate(most);
        top
    }

    /// Halves once for each half-life that has passed. Rounded so that both bounds stay bounds;
    /// the order of counts stays as it is, and the heap with it.
    fn fade(&mut self, now: Timestamp) {
        let since = now.since(self.halved_at);
        if since < self.half_life {
            return;
        }
        let times = since.as_micros() / self.half_life.as_micros();
        self.halved_at = self.halved_at + Duration::from_micros(times * self.half_life.as_micros());
        let times = u32::try_from(times).unwrap_or(u32::MAX);
        for counter in &mut self.counters {
            counter.count = halved_up(counter.count, times);
            counter.sure = halved_down(counter.sure, times);
            counter.beside = halved_down(counter.beside, times);
        }
        self.total = halved_up(self.total, times);
    }

    /// The key's counter, and the place of the index that leads to it.
    fn find(&self, key: Hashed<'_>) -> Option<(u16, usize)> {
        let mut at = self.home(key.hash);
        loop {
            let number = self.index[at];
            if number == NOBODY {
                return None;
            }
            if self.counters[usize::from(number)].is_of(key) {
                return Some((number, at));
            }
            at = self.after(at);
        }
    }

    /// A counter of its own for a new key.
    fn begin(&mut self, key: Hashed<'_>) -> u16 {
        let number = self.counters.len() as u16;
        self.counters.push(Counter {
            hash: key.hash,
            key: kept(key.bytes).to_vec(),
            key_len: key.bytes.len(),
            count: 0,
            sure: 0,
            beside: 0,
            place: self.heap.len() as u16,
        });
        self.heap.push(number);
        self.rise(self.heap.len() - 1);
        self.enter(key.hash, number);
        number
    }

    /// The smallest counter for a new key; its count is what the key may have got unseen.
    fn take_over(&mut self, key: Hashed<'_>) -> u16 {
        let number = self.heap[0];
        let old_hash = self.counters[usize::from(number)].hash;
        self.leave(old_hash, number);
        let counter = &mut self.counters[usize::from(number)];
        counter.hash = key.hash;
        counter.key.clear();
        counter.key.extend_from_slice(kept(key.bytes));
        counter.key_len = key.bytes.len();
        counter.sure = 0;
        counter.beside = 0;
        self.enter(key.hash, number);
        number
    }

    fn home(&self, hash: u64) -> usize {
        hash as usize & (self.index.len() - 1)
    }

    fn after(&self, at: usize) -> usize {
        (at + 1) & (self.index.len() - 1)
    }

    fn enter(&mut self, hash: u64, number: u16) {
        let mut at = self.home(hash);
        while self.index[at] != NOBODY {
            at = self.after(at);
        }
        self.index[at] = number;
    }

    /// Takes a counter out of the index, and moves up what would not be found past the gap.
    fn leave(&mut self, hash: u64, number: u16) {
        let mut gap = self.home(hash);
        while self.index[gap] != number {
            gap = self.after(gap);
        }
        let mut at = self.after(gap);
        while self.index[at] != NOBODY {
            let home = self.home(self.counters[usize::from(self.index[at])].hash);
            let mask = self.index.len() - 1;
            // How far each stands behind the home of what may move.
            let is_reached = at.wrapping_sub(home) & mask >= at.wrapping_sub(gap) & mask;
            if is_reached {
                self.index[gap] = self.index[at];
                gap = at;
            }
            at = self.after(at);
        }
        self.index[gap] = NOBODY;
    }

    fn count_at(&self, place: usize) -> u64 {
        self.counters[usize::from(self.heap[place])].count
    }

    fn swap(&mut self, one: usize, other: usize) {
        self.heap.swap(one, other);
        for place in [one, other] {
            self.counters[usize::from(self.heap[place])].place = place as u16;
        }
    }

    fn rise(&mut self, mut place: usize) {
        while place > 0 && self.count_at(place) < self.count_at((place - 1) / 2) {
            self.swap(place, (place - 1) / 2);
            place = (place - 1) / 2;
        }
    }

    fn sink(&mut self, mut place: usize) {
        loop {
            let children = 2 * place + 1..(2 * place + 3).min(self.heap.len());
            let Some(least) = children.min_by_key(|child| self.count_at(*child)) else { return };
            if self.count_at(place) <= self.count_at(least) {
                return;
            }
            self.swap(place, least);
            place = least;
        }
    }
}

impl Counter {
    fn is_of(&self, key: Hashed<'_>) -> bool {
        self.hash == key.hash && self.key_len == key.bytes.len() && self.key == kept(key.bytes)
    }
}

fn kept(key: &[u8]) -> &[u8] {
    &key[..key.len().min(KEY_BYTES_MAX)]
}

fn halved_down(count: u64, times: u32) -> u64 {
    count.checked_shr(times).unwrap_or(0)
}

/// Never zero again once it was not: what may have been, may have been.
fn halved_up(count: u64, times: u32) -> u64 {
    let down = halved_down(count, times);
    let lost = down.checked_shl(times).unwrap_or(0) != count;
    down + u64::from(lost)
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    const START: Timestamp = Timestamp::from_millis(1_000_000);
    const HALF_LIFE: Duration = Duration::from_secs(10);

    /// Few homes, so that keys stand in each other's way.
    fn hashed(key: &[u8; 2]) -> Hashed<'_> {
        Hashed { bytes: key, hash: u64::from(key[0] % 8) * 0x0100_0001 }
    }

    fn one(key: &'static [u8]) -> Hashed<'static> {
        Hashed { bytes: key, hash: key.len() as u64 }
    }

    /// What every key got, halved exactly.
    #[derive(Default)]
    struct Truth(HashMap<[u8; 2], f64>);

    impl Truth {
        fn total(&self) -> f64 {
            self.0.values().sum()
        }
    }

    fn check_heap_and_index(heavy: &Heavy) {
        for place in 1..heavy.heap.len() {
            assert!(heavy.count_at((place - 1) / 2) <= heavy.count_at(place));
        }
        for (number, counter) in heavy.counters.iter().enumerate() {
            assert_eq!(usize::from(heavy.heap[usize::from(counter.place)]), number);
            let key = Hashed { bytes: &counter.key, hash: counter.hash };
            assert_eq!(heavy.find(key).map(|(found, _)| usize::from(found)), Some(number));
        }
        let entered = heavy.index.iter().filter(|number| **number != NOBODY).count();
        assert_eq!(entered, heavy.counters.len());
    }

    proptest! {
        #[test]
        fn counts_enclose_the_truth_and_nobody_heavy_is_missed(
            counters in 1_usize..20,
            steps in proptest::collection::vec((0_u8..60, 1_u64..50, 0_u64..40), 1..400),
        ) {
            let mut heavy = Heavy::new(counters, HALF_LIFE, START);
            let mut truth = Truth::default();
            let mut now = START;
            for (key, weight, pause) in steps {
                // A half-life passes now and then.
                if pause == 0 {
                    now = now + HALF_LIFE;
                    truth.0.values_mut().for_each(|weight| *weight /= 2.0);
                }
                // Low numbers come far more often.
                let key = [key.min(key.wrapping_mul(7) % 60), key % 3];
                heavy.add(hashed(&key), weight, now);
                *truth.0.entry(key).or_default() += weight as f64;
                prop_assert!(heavy.total() as f64 >= truth.total());
            }
            check_heap_and_index(&heavy);
            for counter in &heavy.counters {
                let key: [u8; 2] = counter.key[..].try_into().expect("two bytes");
                let got = truth.0[&key];
                prop_assert!(counter.sure as f64 <= got, "{counter:?} for {got}");
                prop_assert!(counter.count as f64 >= got, "{counter:?} for {got}");
            }
            let bound = truth.total() / counters as f64 + 1.0;
            for (key, got) in &truth.0 {
                if *got > bound {
                    prop_assert!(heavy.find(hashed(key)).is_some(), "{key:?} got {got}");
                }
            }
        }
    }

    #[test]
    fn heaviest_come_first_with_their_error() {
        let mut heavy = Heavy::new(2, HALF_LIFE, START);
        heavy.add(one(b"a"), 5, START);
        heavy.add(one(b"bb"), 1, START);
        heavy.add(one(b"ccc"), 2, START);
        heavy.note_beside(one(b"a"), 7, START);
        heavy.note_beside(one(b"bb"), 9, START);
        let top = heavy.top(10, START);
        let seen: Vec<_> =
            top.iter().map(|one| (one.key, one.count, one.error, one.beside)).collect();
        assert_eq!(seen, [(&b"a"[..], 5, 0, 7), (&b"ccc"[..], 3, 1, 0)]);
        assert_eq!(heavy.top(1, START).len(), 1);
        assert_eq!(heavy.total(), 8);
    }

    #[test]
    fn what_was_long_ago_fades_and_goes() {
        let mut heavy = Heavy::new(2, HALF_LIFE, START);
        heavy.add(one(b"a"), 100, START);
        let count = |heavy: &mut Heavy, after: Duration| {
            heavy.top(1, START + after).first().map(|heaviest| heaviest.count)
        };
        assert_eq!(count(&mut heavy, Duration::from_secs(9)), Some(100));
        assert_eq!(count(&mut heavy, Duration::from_secs(10)), Some(50));
        assert_eq!(count(&mut heavy, Duration::from_secs(39)), Some(13));
        assert_eq!(count(&mut heavy, Duration::from_secs(10_000)), None);
    }

    #[test]
    fn even_flow_is_told_by_the_second_at_any_moment() {
        let mut heavy = Heavy::new(4, HALF_LIFE, START);
        let mut now = START;
        for tick in 1..=20_000_u64 {
            now = now + Duration::from_millis(10);
            heavy.add(one(b"a"), 3, now);
            if tick > 10_000 && tick.is_multiple_of(77) {
                let per_second = heavy.top(1, now)[0].per_second;
                assert!((per_second - 300.0).abs() < 4.0, "{per_second} at {tick}");
            }
        }
    }

    #[test]
    fn keys_that_differ_past_what_is_kept_are_two_unless_their_hash_is_one() {
        let long = [[b'k'; KEY_BYTES_MAX + 1], {
            let mut other = [b'k'; KEY_BYTES_MAX + 1];
            other[KEY_BYTES_MAX] = b'x';
            other
        }];
        let mut heavy = Heavy::new(4, HALF_LIFE, START);
        for (hash, bytes) in long.iter().enumerate() {
            heavy.add(Hashed { bytes, hash: hash as u64 }, 1, START);
        }
        heavy.add(Hashed { bytes: &long[0][..KEY_BYTES_MAX], hash: 0 }, 1, START);
        assert_eq!(heavy.top(9, START).len(), 3);
    }

    #[test]
    fn most_extreme_weights_do_not_overflow() {
        let mut heavy = Heavy::new(1, Duration::ZERO, START);
        heavy.add(one(b"a"), u64::MAX, START);
        heavy.add(one(b"bb"), u64::MAX, START);
        assert_eq!(heavy.top(1, START)[0].count, u64::MAX);
        assert!(heavy.top(1, Timestamp::MAX).is_empty());
    }

    #[test]
    fn nothing_is_allocated_once_every_counter_has_a_key() {
        let mut heavy = Heavy::new(3, HALF_LIFE, START);
        let keys: Vec<[u8; 2]> = (0..100_u8).map(|number| [number, number]).collect();
        let room = |heavy: &Heavy| -> Vec<(usize, usize)> {
            let keys = heavy.counters.iter();
            keys.map(|counter| (counter.key.as_ptr() as usize, counter.key.capacity())).collect()
        };
        for key in &keys[..3] {
            heavy.add(hashed(key), 1, START);
        }
        let before = room(&heavy);
        for key in &keys {
            heavy.add(hashed(key), 1, START);
        }
        assert_eq!(room(&heavy), before);
        assert_eq!((heavy.counters.capacity(), heavy.heap.capacity()), (3, 3));
    }
}
