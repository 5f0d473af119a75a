//! A log too large for one chunk: chunks in order, oldest first.
//!
//! Pushing and dropping cost the same however long the queue is, and in steady use nothing is
//! allocated: the chunk that has emptied at the front is the next one at the back.
//!
//! Invariants: no chunk is empty; `sum`, `entries` and `chunks_bytes` are those of the chunks.

use std::collections::VecDeque;

use super::chunk::{Chunk, Entry, malloc_bytes};

#[derive(Debug, Default)]
pub(super) struct Queue {
    sum: u64,
    entries: usize,
    /// The first so many entries are coarse: later than what they stand for.
    coarse: usize,
    /// What the chunks, also the spare one, cost in memory.
    chunks_bytes: usize,
    chunks: VecDeque<Box<Chunk>>,
    spare: Option<Box<Chunk>>,
}

impl Queue {
    pub(super) fn from_one(chunk: Box<Chunk>) -> Self {
        let mut queue = Self::default();
        if !chunk.is_empty() {
            queue.sum = chunk.sum();
            queue.entries = chunk.len();
            queue.chunks_bytes = chunk.heap_bytes();
            queue.chunks.push_back(chunk);
        }
        queue
    }

    pub(super) const fn sum(&self) -> u64 {
        self.sum
    }

    pub(super) const fn len(&self) -> usize {
        self.entries
    }

    pub(super) const fn coarse(&self) -> usize {
        self.coarse
    }

    pub(super) fn set_coarse(&mut self, coarse: usize) {
        self.coarse = coarse;
    }

    pub(super) fn chunks(&self) -> impl Iterator<Item = &Chunk> {
        self.chunks.iter().map(AsRef::as_ref)
    }

    pub(super) fn take_spare(&mut self) -> Option<Box<Chunk>> {
        self.spare.take()
    }

    pub(super) fn last_us(&self) -> Option<u64> {
        self.chunks.back().map(|chunk| chunk.last_us())
    }

    /// Appends, or adds to the last entry where that is not before `at_us`; the moment at which
    /// the cost counts. The sum stays within 64 bits, which the log sees to.
    #[inline]
    pub(super) fn push(&mut self, at_us: u64, cost: u64) -> u64 {
        self.sum += cost;
        if let Some(back) = self.chunks.back_mut() {
            let last_us = back.last_us();
            if last_us >= at_us {
                self.chunks_bytes += Chunk::add_to_last(back, cost);
                return last_us;
            }
            if !back.is_full() {
                self.chunks_bytes += Chunk::push(back, Entry { at_us, cost });
                self.entries += 1;
                return at_us;
            }
        }
        self.push_chunk(Entry { at_us, cost });
        self.entries += 1;
        at_us
    }

    /// Begins a new chunk with the entry.
    #[cold]
    fn push_chunk(&mut self, entry: Entry) {
        let mut chunk = match self.spare.take() {
            Some(spare) => {
                self.chunks_bytes -= spare.heap_bytes();
                spare
            }
            None => Chunk::largest(),
        };
        Chunk::push(&mut chunk, entry);
        self.chunks_bytes += chunk.heap_bytes();
        self.chunks.push_back(chunk);
    }

    /// Drops the entries up to and including `horizon_us`.
    #[inline]
    pub(super) fn expire(&mut self, horizon_us: u64) {
        if self.chunks.front().is_some_and(|front| front.first_us() <= horizon_us) {
            self.drop_expired(horizon_us);
        }
    }

    fn drop_expired(&mut self, horizon_us: u64) {
        let mut at_once = false;
        while let Some(front) = self.chunks.front_mut() {
            let (sum, len) = (front.sum(), front.len());
            // The first chunk most often loses one entry; to look at its end would cost more.
            if at_once && front.last_us() <= horizon_us {
                front.clear();
            } else {
                front.expire(horizon_us);
            }
            let dropped = len - front.len();
            self.sum -= sum - front.sum();
            self.entries -= dropped;
            self.coarse = self.coarse.saturating_sub(dropped);
            if !front.is_empty() {
                return;
            }
            self.retire_front();
            at_once = true;
        }
    }

    /// Takes `cost`, which is at most the sum, away from the oldest entries.
    pub(super) fn refund(&mut self, cost: u64) {
        let kept = self.sum - cost;
        while self.sum > kept
            && let Some(front) = self.chunks.front_mut()
        {
            let (sum, len) = (front.sum(), front.len());
            front.reduce_first(self.sum - kept);
            let dropped = len - front.len();
            self.sum -= sum - front.sum();
            self.entries -= dropped;
            self.coarse = self.coarse.saturating_sub(dropped);
            if front.is_empty() {
                self.retire_front();
            }
        }
    }

    /// Keeps the emptied first chunk as the spare one, or frees it.
    #[cold]
    fn retire_front(&mut self) {
        let Some(mut chunk) = self.chunks.pop_front() else { return };
        if self.spare.is_none() && chunk.is_largest() {
            chunk.clear();
            self.spare = Some(chunk);
        } else {
            self.chunks_bytes -= chunk.heap_bytes();
        }
    }

    pub(super) fn sum_until(&self, horizon_us: u64) -> u64 {
        let mut sum = 0;
        for chunk in &self.chunks {
            if chunk.last_us() > horizon_us {
                return sum + chunk.sum_until(horizon_us);
            }
            sum += chunk.sum();
        }
        sum
    }

    /// As [`super::log::Log::reaches_us`].
    pub(super) fn reaches_us(&self, need: u64) -> Option<u64> {
        let front = self.chunks.front()?;
        if need <= front.sum() {
            return Some(front.reaches_us(need));
        }
        let mut left = need - front.sum();
        for chunk in self.chunks.iter().skip(1) {
            if left <= chunk.sum() {
                return Some(chunk.reaches_us(left));
            }
            left -= chunk.sum();
        }
        None
    }

    /// Rounds the oldest half up to steps and merges what falls together, and with it whatever
    /// later entries lie within the last of these steps.
    #[cold]
    pub(super) fn coarsen(&mut self, step_us: u64) {
        let half = self.entries / 2;
        let mut merged = Self::default();
        for taken in 0.. {
            let Some(entry) = self.chunks.front().and_then(|front| front.entries().next()) else {
                break;
            };
            let in_last_step = merged.last_us() >= Some(entry.at_us);
            if taken >= half && !in_last_step {
                break;
            }
            merged.push(entry.at_us.div_ceil(step_us).saturating_mul(step_us), entry.cost);
            self.refund(entry.cost);
        }
        self.coarse = merged.entries;
        self.sum += merged.sum;
        self.entries += merged.entries;
        self.chunks_bytes += merged.chunks_bytes;
        for chunk in merged.chunks.into_iter().rev() {
            self.chunks.push_front(chunk);
        }
    }

    /// What the queue costs in memory, with all that it holds.
    pub(super) fn heap_bytes(&self) -> usize {
        let chunks = match self.chunks.capacity() {
            0 => 0,
            capacity => malloc_bytes(capacity * size_of::<Box<Chunk>>()),
        };
        malloc_bytes(size_of::<Self>()) + chunks + self.chunks_bytes
    }

    #[cfg(test)]
    pub(super) fn assert_counts(&self) {
        let chunks = || self.chunks();
        assert_eq!(self.sum, chunks().map(Chunk::sum).sum::<u64>());
        assert_eq!(self.entries, chunks().map(Chunk::len).sum::<usize>());
        let bytes = chunks().chain(self.spare.as_deref()).map(Chunk::heap_bytes);
        assert_eq!(self.chunks_bytes, bytes.sum::<usize>());
    }
}

impl Clone for Queue {
    fn clone(&self) -> Self {
        let chunks: VecDeque<_> = self.chunks().map(Chunk::duplicate).collect();
        let chunks_bytes = chunks.iter().map(|chunk| chunk.heap_bytes()).sum();
        Self {
            sum: self.sum,
            entries: self.entries,
            coarse: self.coarse,
            chunks_bytes,
            chunks,
            spare: None,
        }
    }
}
