//! The log of what was spent when, of which sliding-log and sliding-window are made.
//!
//! A small log is one chunk used as a ring, so that a key in steady use never allocates. A large
//! one is a queue of chunks between two ends that stand in its header: it pushes at the newest
//! end, drops at the oldest, and keeps one emptied chunk to use again. Each step costs the same
//! however long the log is: a chunk carries the sum of its costs, and a whole chunk is forgotten
//! at once. Either form knows its first and last moment without a look at its entries.
//!
//! Invariants: moments never decrease; the sum of all costs fits 64 bits; no chunk of a queue is
//! empty. Units: microseconds.

use super::chunk::{Chunk, Entry};
use super::queue::Queue;

/// Into how many steps the window of a log with too many entries is divided.
const COARSE_STEPS: u64 = 1_000;

/// Two words, told apart by the first: `NoneOrMany` is the variant in which it is null, and so
/// holds what fits the second.
#[derive(Debug)]
pub(super) enum Log {
    One(Box<Chunk>),
    NoneOrMany(Option<Box<Queue>>),
}

const _: () = assert!(size_of::<Log>() == 16);

impl Log {
    pub(super) const fn new() -> Self {
        Self::NoneOrMany(None)
    }

    /// The sum of all costs, also of entries that have expired and were not dropped yet.
    #[inline]
    pub(super) fn sum(&self) -> u64 {
        match self {
            Self::One(chunk) => chunk.sum(),
            Self::NoneOrMany(Some(queue)) => queue.sum(),
            Self::NoneOrMany(None) => 0,
        }
    }

    #[inline(always)]
    pub(super) fn last_us(&self) -> Option<u64> {
        match self {
            Self::One(chunk) if chunk.is_empty() => None,
            Self::One(chunk) => Some(chunk.last_us()),
            Self::NoneOrMany(Some(queue)) => Some(queue.last_us()),
            Self::NoneOrMany(None) => None,
        }
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Self::One(chunk) => chunk.len(),
            Self::NoneOrMany(Some(queue)) => queue.len(),
            Self::NoneOrMany(None) => 0,
        }
    }

    /// How many of the first entries are coarse.
    pub(super) fn coarse(&self) -> usize {
        match self {
            Self::NoneOrMany(Some(queue)) => queue.coarse(),
            Self::One(_) | Self::NoneOrMany(None) => 0,
        }
    }

    pub(super) fn entries(&self) -> impl Iterator<Item = Entry> {
        let (one, queue) = match self {
            Self::One(chunk) => (Some(chunk), None),
            Self::NoneOrMany(queue) => (None, queue.as_ref()),
        };
        let many = queue.into_iter().flat_map(|queue| queue.entries());
        one.into_iter().flat_map(|chunk| chunk.entries()).chain(many)
    }

    /// Drops the entries up to and including `horizon_us`.
    #[inline(always)]
    pub(super) fn expire(&mut self, horizon_us: u64) {
        match self {
            Self::One(chunk) => chunk.expire(horizon_us),
            Self::NoneOrMany(Some(queue)) => {
                if queue.first_us() <= horizon_us {
                    queue.expire(horizon_us);
                    self.leave_empty_queue();
                }
            }
            Self::NoneOrMany(None) => {}
        }
    }

    /// Goes on with the spare chunk of a queue that holds nothing more.
    #[inline]
    fn leave_empty_queue(&mut self) {
        if let Self::NoneOrMany(Some(queue)) = self
            && queue.len() == 0
        {
            *self = queue.take_spare().map_or(Self::new(), Self::One);
        }
    }

    /// The sum of the costs up to and including `horizon_us`.
    pub(super) fn sum_until(&self, horizon_us: u64) -> u64 {
        match self {
            Self::One(chunk) => chunk.sum_until(horizon_us),
            Self::NoneOrMany(Some(queue)) => queue.sum_until(horizon_us),
            Self::NoneOrMany(None) => 0,
        }
    }

    /// The moment of the entry at which the costs, added up from the first, reach `need`, which
    /// is above zero; `None` if they never do.
    pub(super) fn reaches_us(&self, need: u64) -> Option<u64> {
        if need > self.sum() {
            return None;
        }
        match self {
            Self::One(chunk) => Some(chunk.reaches_us(need)),
            Self::NoneOrMany(Some(queue)) => Some(queue.reaches_us(need)),
            Self::NoneOrMany(None) => None,
        }
    }

    /// Appends, or adds to the last entry where that is not before `at_us`; the moment at which
    /// the cost counts. A cost that would take the sum beyond 64 bits is cut to what fits.
    #[inline]
    pub(super) fn push(&mut self, at_us: u64, cost: u64) -> u64 {
        let cost = cost.min(u64::MAX - self.sum());
        if cost == 0 {
            return at_us;
        }
        match self {
            Self::One(chunk) => {
                if !chunk.is_empty() {
                    let last_us = chunk.last_us();
                    if last_us >= at_us {
                        Chunk::add_to_last(chunk, cost);
                        return last_us;
                    }
                }
                if chunk.is_full() {
                    self.push_to_full(Entry { at_us, cost });
                } else {
                    Chunk::push(chunk, Entry { at_us, cost });
                }
                at_us
            }
            Self::NoneOrMany(Some(queue)) => queue.push(at_us, cost),
            Self::NoneOrMany(None) => {
                let mut chunk = Chunk::smallest();
                Chunk::push(&mut chunk, Entry { at_us, cost });
                *self = Self::One(chunk);
                at_us
            }
        }
    }

    /// Gives a full only chunk more room, or becomes a queue.
    #[cold]
    fn push_to_full(&mut self, entry: Entry) {
        if let Self::One(chunk) = self {
            *chunk = chunk.grown();
            if !chunk.is_full() {
                Chunk::push(chunk, entry);
                return;
            }
        }
        if let Some(queue) = self.as_queue() {
            queue.push(entry.at_us, entry.cost);
        }
    }

    /// A queue, also where one chunk would do; of a log that holds something.
    fn as_queue(&mut self) -> Option<&mut Queue> {
        let queue = match std::mem::replace(self, Self::new()) {
            Self::One(chunk) => Some(Box::new(Queue::from_one(chunk))),
            Self::NoneOrMany(queue) => queue,
        };
        *self = Self::NoneOrMany(queue);
        match self {
            Self::One(_) => None,
            Self::NoneOrMany(queue) => queue.as_deref_mut(),
        }
    }

    /// Takes up to `cost` away from the oldest entries; what was taken.
    pub(super) fn refund(&mut self, cost: u64) -> u64 {
        let before = self.sum();
        let mut left = cost.min(before);
        match self {
            Self::One(chunk) => {
                while left > 0 {
                    let sum = chunk.sum();
                    chunk.reduce_first(left);
                    left -= sum - chunk.sum();
                }
            }
            Self::NoneOrMany(Some(queue)) => {
                queue.refund(left);
                self.leave_empty_queue();
            }
            Self::NoneOrMany(None) => {}
        }
        before - self.sum()
    }

    /// More than `entries_max` entries: rounds the oldest half up to steps of a thousandth of the
    /// window and merges what then falls together. Later than the truth, so never over a limit.
    pub(super) fn bound(&mut self, entries_max: u32, window_us: u64) {
        if let Self::NoneOrMany(Some(queue)) = self
            && queue.len() > entries_max as usize
        {
            // Fewer steps for a small maximum, so that what they hold is well below it.
            let steps = (u64::from(entries_max) / 4).min(COARSE_STEPS);
            queue.coarsen(window_us.div_ceil(steps));
        }
    }

    /// Says of a log that was read back how many of its first entries are coarse.
    pub(super) fn set_coarse(&mut self, coarse: usize) {
        if coarse > 0
            && let Some(queue) = self.as_queue()
        {
            queue.set_coarse(coarse);
        }
    }

    /// Reads the header.
    #[inline]
    pub(super) fn prefetch(&self) -> u64 {
        match self {
            Self::One(chunk) => chunk.sum(),
            Self::NoneOrMany(Some(queue)) => queue.prefetch(),
            Self::NoneOrMany(None) => 0,
        }
    }

    /// Reads where the next entry will stand, if that is not in the header.
    #[inline]
    pub(super) fn prefetch_tail(&self) -> u64 {
        match self {
            Self::One(chunk) => chunk.prefetch_tail(),
            Self::NoneOrMany(Some(queue)) => queue.prefetch_tail(),
            Self::NoneOrMany(None) => 0,
        }
    }

    pub(super) fn heap_bytes(&self) -> usize {
        match self {
            Self::One(chunk) => chunk.heap_bytes(),
            Self::NoneOrMany(Some(queue)) => queue.heap_bytes(),
            Self::NoneOrMany(None) => 0,
        }
    }
}

impl Clone for Log {
    fn clone(&self) -> Self {
        match self {
            Self::One(chunk) => Self::One(chunk.duplicate()),
            Self::NoneOrMany(queue) => Self::NoneOrMany(queue.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::reference::Random;
    use super::super::state::{Kind, State};
    use super::*;
    use crate::time::{Duration, Timestamp};

    /// What stood where in a queue: at its oldest end, in chunks, at its newest end.
    type Spreads = BTreeSet<[bool; 3]>;

    /// A log beside the plain list that it stands for.
    struct Twins {
        log: Log,
        list: Vec<Entry>,
        now_us: u64,
    }

    impl Twins {
        fn push(&mut self, cost: u64) {
            self.log.push(self.now_us, cost);
            match self.list.last_mut() {
                Some(last) if last.at_us >= self.now_us => last.cost += cost,
                Some(_) | None => self.list.push(Entry { at_us: self.now_us, cost }),
            }
        }

        fn refund(&mut self, cost: u64) {
            let mut left = cost;
            for entry in &mut self.list {
                let taken = entry.cost.min(left);
                entry.cost -= taken;
                left -= taken;
            }
            self.list.retain(|entry| entry.cost > 0);
            assert_eq!(self.log.refund(cost), cost - left);
        }

        fn expire(&mut self, horizon_us: u64) {
            let kept = self.list.partition_point(|entry| entry.at_us <= horizon_us);
            let expired: u64 = self.list.drain(..kept).map(|entry| entry.cost).sum();
            assert_eq!(self.log.sum_until(horizon_us), expired);
            self.log.expire(horizon_us);
        }

        /// What the log does with too many entries, in its plainest form.
        fn bound(&mut self, entries_max: u32, window_us: u64) {
            self.log.bound(entries_max, window_us);
            let is_large = matches!(self.log, Log::NoneOrMany(Some(_)));
            if !is_large || self.list.len() <= entries_max as usize {
                return;
            }
            let step_us = window_us.div_ceil(u64::from(entries_max) / 4);
            let (half, mut coarse) = (self.list.len() / 2, 0);
            let mut merged: Vec<Entry> = Vec::new();
            for (index, mut entry) in std::mem::take(&mut self.list).into_iter().enumerate() {
                let last_us = merged.last().map(|last| last.at_us);
                let is_coarse = index < half || last_us >= Some(entry.at_us);
                if is_coarse {
                    entry.at_us = entry.at_us.next_multiple_of(step_us);
                }
                match merged.last_mut() {
                    Some(last) if last.at_us >= entry.at_us => last.cost += entry.cost,
                    Some(_) | None => {
                        merged.push(entry);
                        coarse += usize::from(is_coarse);
                    }
                }
            }
            self.list = merged;
            assert_eq!(self.log.coarse(), coarse);
        }

        /// Writes the log and reads it back.
        fn restart(&mut self) {
            let log = std::mem::replace(&mut self.log, Log::new());
            let last_us = log.last_us().unwrap_or(0).max(self.now_us);
            let (window, last) = (Duration::from_secs(1), Timestamp::from_micros(last_us));
            let mut bytes = Vec::new();
            State { window, last, kind: Kind::SlidingLog(log) }.encode(&mut bytes);
            let state = State::decode(&bytes).expect("what was written");
            if let Kind::SlidingLog(log) = state.kind {
                self.log = log;
            }
        }

        fn agree(&self, random: &mut Random, spreads: &mut Spreads) {
            if let Log::NoneOrMany(Some(queue)) = &self.log {
                queue.assert_counts();
                spreads.insert(queue.spread().map(|entries| entries > 0));
            }
            let sum: u64 = self.list.iter().map(|entry| entry.cost).sum();
            assert_eq!(self.log.sum(), sum);
            assert_eq!(self.log.len(), self.list.len());
            assert_eq!(self.log.last_us(), self.list.last().map(|entry| entry.at_us));
            let (need, mut before) = (1 + random.below(sum + 2), 0);
            let reached = self.list.iter().find(|entry| {
                before += entry.cost;
                before >= need
            });
            assert_eq!(self.log.reaches_us(need), reached.map(|entry| entry.at_us));
        }
    }

    /// Costs and distances of a profile keep to one shape of chunk, or mix all.
    fn run(seed: u64, spreads: &mut Spreads) {
        let mut random = Random::seeded(seed);
        let costs = random.pick(&[&[1][..], &[1, 1, 1, 2], &[1, 300, 70_000], &[1, 1 << 40]]);
        // Within 32 bits, such that a small ring must move its base now and then, and beyond.
        let steps_us = random.pick(&[
            &[1_000][..],
            &[0, 1, 50_000],
            &[1_000_000, 90_000_000],
            &[1, 90_000_000, 1 << 33],
        ]);
        let size = random.pick(&[3, 12, 60, 126, 127, 143, 159, 700]);
        let mut twins = Twins { log: Log::new(), list: Vec::new(), now_us: 1 << 50 };
        for step in 0..1_500 {
            twins.now_us += random.pick(steps_us);
            twins.push(random.pick(costs));
            if twins.list.len() > size || random.below(200) == 0 {
                let index = random.below(twins.list.len() as u64) / random.pick(&[1, 8, 1_000]);
                twins.expire(twins.list[index as usize].at_us);
            }
            if random.below(50) == 0 {
                let most = random.pick(&[4, 80, 100_000]);
                twins.refund(random.below(most));
            }
            if random.below(100) == 0 && !twins.list.is_empty() {
                // Nearly all goes; what is left may stand at one end or both.
                let left = 1 + random.below(20.min(twins.list.len() as u64));
                twins.expire(twins.list[twins.list.len() - left as usize].at_us - 1);
            }
            if random.below(100) == 0 {
                let entries_max = random.pick(&[8, 100, 400]);
                twins.bound(entries_max, random.pick(&[1_000, 60_000_000]));
            }
            match random.below(400) {
                0 => twins.restart(),
                1 => twins.log = twins.log.clone(),
                _ => {}
            }
            if step % 7 == 0 {
                twins.agree(&mut random, spreads);
            }
        }
        assert!(twins.log.entries().eq(twins.list.iter().copied()));
        assert!(twins.log.clone().entries().eq(twins.list.iter().copied()));
        twins.agree(&mut random, spreads);
    }

    #[test]
    fn log_agrees_with_a_list() {
        let mut spreads = Spreads::new();
        for seed in 0..300 {
            run(seed, &mut spreads);
        }
        // All that can be: a log of something never has the newest end alone.
        assert_eq!(spreads.len(), 6, "{spreads:?}");
        assert!(!spreads.contains(&[false; 3]) && !spreads.contains(&[false, false, true]));
    }
}
