//! A log too large for one chunk: chunks in order, oldest first, and both ends in the header.
//!
//! Pushing and dropping cost the same however long the queue is, and in steady use nothing is
//! allocated: the chunk that has emptied at the front is the next one at the back. A server with
//! many keys finds none of this in cache, and each pointer that a request follows is a further
//! wait. So the header alone answers the usual request: it holds both ends of the log, and what
//! is asked of every request comes first in it.
//!
//! Invariants: a queue holds at least one entry, until its log takes it away; no chunk is empty;
//! `sum` and `entries` are those of chunks and ends together, `chunks_bytes` is that of the chunks
//! and their list; where no chunk stands and the newest end holds entries, so does the oldest.

use std::collections::VecDeque;
use std::mem::offset_of;

use super::chunk::{Chunk, Entry};
use super::ends::{Newest, Oldest, entry};
use crate::size::malloc_bytes;

#[derive(Debug)]
#[repr(C)]
pub(super) struct Queue {
    oldest: Oldest,
    sum: u64,
    /// Of 32 bits: more would not fit in memory.
    entries: u32,
    /// The first so many entries are coarse: later than what they stand for.
    coarse: u32,
    /// What the chunks, also the spare one, and their list cost in memory: asked for at every
    /// request, and so beside what every request reads.
    chunks_bytes: usize,
    newest: Newest,
    chunks: VecDeque<Box<Chunk>>,
    spare: Option<Box<Chunk>>,
}

// Fills a block of the system's allocator. From the moment of the first entry on, which ends the
// oldest end, to where the gaps of the newest begin stands what every request reads and writes.
const _: () = assert!((size_of::<Queue>() + 8).is_multiple_of(16));
const _: () = assert!(offset_of!(Queue, newest) + 16 - (offset_of!(Queue, sum) - 8) <= 48);

impl Queue {
    /// The chunk is not empty.
    pub(super) fn from_one(chunk: Box<Chunk>) -> Self {
        let mut queue = Self {
            oldest: Oldest::unstaged(chunk.first_us()),
            sum: chunk.sum(),
            entries: chunk.len() as u32,
            coarse: 0,
            newest: Newest::unstaged(chunk.last_us()),
            chunks_bytes: chunk.heap_bytes(),
            chunks: VecDeque::from([chunk]),
            spare: None,
        };
        queue.chunks_bytes += list_bytes(&queue.chunks);
        queue.stage_oldest();
        queue
    }

    pub(super) const fn sum(&self) -> u64 {
        self.sum
    }

    pub(super) const fn len(&self) -> usize {
        self.entries as usize
    }

    pub(super) const fn coarse(&self) -> usize {
        self.coarse as usize
    }

    pub(super) fn set_coarse(&mut self, coarse: usize) {
        self.coarse = coarse as u32;
    }

    pub(super) const fn first_us(&self) -> u64 {
        self.oldest.first_us()
    }

    pub(super) const fn last_us(&self) -> u64 {
        self.newest.last_us()
    }

    pub(super) fn entries(&self) -> impl Iterator<Item = Entry> {
        let chunks = self.chunks.iter().flat_map(|chunk| chunk.entries());
        let newest = self.newest.moments().map(entry);
        self.oldest.moments().map(entry).chain(chunks).chain(newest)
    }

    pub(super) fn take_spare(&mut self) -> Option<Box<Chunk>> {
        self.spare.take()
    }

    /// Appends, or adds to the last entry where that is not before `at_us`; the moment at which
    /// the cost counts. The sum stays within 64 bits, which the log sees to.
    #[inline]
    pub(super) fn push(&mut self, at_us: u64, cost: u64) -> u64 {
        debug_assert!(self.entries > 0, "an empty queue does not know its ends");
        self.sum += cost;
        if cost == 1 && self.newest.push(at_us) {
            self.entries += 1;
            return at_us;
        }
        self.push_unstaged(at_us, cost)
    }

    /// Pushes what the newest end has no room for, or cannot hold.
    fn push_unstaged(&mut self, at_us: u64, cost: u64) -> u64 {
        let last_us = self.last_us();
        if at_us <= last_us {
            self.add_to_last(cost);
            return last_us;
        }
        self.unstage_newest();
        self.entries += 1;
        if cost == 1 {
            self.newest.restart_with(at_us);
        } else {
            self.push_to_chunk(Entry { at_us, cost });
            self.newest.restart_after(at_us);
        }
        at_us
    }

    fn add_to_last(&mut self, cost: u64) {
        self.unstage_newest();
        if self.chunks.is_empty() {
            let oldest = self.oldest;
            self.oldest = Oldest::unstaged(oldest.first_us());
            oldest.moments().for_each(|at_us| self.push_to_chunk(entry(at_us)));
        }
        if let Some(back) = self.chunks.back_mut() {
            self.chunks_bytes += Chunk::add_to_last(back, cost);
        }
    }

    /// Moves what is staged at the newest end to the chunks.
    fn unstage_newest(&mut self) {
        if self.newest.len() == 0 {
            return;
        }
        let newest = self.newest;
        self.newest.restart_after(newest.last_us());
        newest.moments().for_each(|at_us| self.push_to_chunk(entry(at_us)));
    }

    fn push_to_chunk(&mut self, entry: Entry) {
        match self.chunks.back_mut() {
            Some(back) if !back.is_full() => self.chunks_bytes += Chunk::push(back, entry),
            Some(_) | None => self.push_chunk(entry),
        }
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
        self.chunks_bytes -= list_bytes(&self.chunks);
        self.chunks.push_back(chunk);
        self.chunks_bytes += list_bytes(&self.chunks);
    }

    /// Drops the entries up to and including `horizon_us`.
    pub(super) fn expire(&mut self, horizon_us: u64) {
        if !self.oldest.is_empty() {
            self.expire_oldest(horizon_us);
            if !self.oldest.is_empty() {
                return;
            }
        }
        while let Some(front) = self.chunks.front_mut() {
            let (sum, len) = (front.sum(), front.len());
            if front.last_us() > horizon_us {
                front.expire(horizon_us);
                let (sum, len) = (sum - front.sum(), len - front.len());
                self.forget(sum, len);
                self.stage_oldest();
                return;
            }
            self.forget(sum, len);
            self.retire_front();
        }
        self.stage_oldest();
        self.expire_oldest(horizon_us);
    }

    #[inline(always)]
    fn expire_oldest(&mut self, horizon_us: u64) {
        let expired = self.oldest.expire(horizon_us);
        self.forget(expired as u64, expired);
    }

    /// Takes `cost`, which is at most the sum, away from the oldest entries.
    pub(super) fn refund(&mut self, cost: u64) {
        let kept = self.sum - cost;
        while self.sum > kept {
            if !self.oldest.is_empty() {
                self.oldest.pop();
                self.forget(1, 1);
            } else if let Some(front) = self.chunks.front_mut() {
                let (sum, len) = (front.sum(), front.len());
                front.reduce_first(self.sum - kept);
                let is_empty = front.is_empty();
                let (sum, len) = (sum - front.sum(), len - front.len());
                self.forget(sum, len);
                if is_empty {
                    self.retire_front();
                }
            }
            if self.oldest.is_empty() {
                self.stage_oldest();
            }
        }
    }

    /// What is gone, of the first entries.
    #[inline(always)]
    fn forget(&mut self, sum: u64, entries: usize) {
        self.sum -= sum;
        self.entries -= entries as u32;
        self.coarse = self.coarse.saturating_sub(entries as u32);
    }

    /// Fills the oldest end, at which nothing is staged, from the first chunk; from the newest
    /// end where there is no chunk.
    fn stage_oldest(&mut self) {
        match self.chunks.front_mut() {
            Some(front) => {
                self.oldest.take_from(front);
                if front.is_empty() {
                    self.retire_front();
                }
            }
            None => self.oldest = self.newest.take_as_oldest(),
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
        let live = |at_us: &u64| *at_us <= horizon_us;
        if !live(&self.first_us()) {
            return 0;
        }
        let mut sum = self.oldest.moments().take_while(live).count() as u64;
        if sum < self.oldest.len() as u64 {
            return sum;
        }
        for chunk in &self.chunks {
            if chunk.last_us() > horizon_us {
                return sum + chunk.sum_until(horizon_us);
            }
            sum += chunk.sum();
        }
        sum + self.newest.moments().take_while(live).count() as u64
    }

    /// As [`super::log::Log::reaches_us`], for a need of at most the sum.
    pub(super) fn reaches_us(&self, need: u64) -> u64 {
        if need == 1 {
            return self.first_us();
        }
        let staged = self.oldest.len() as u64;
        if need <= staged {
            return self.nth_us(self.oldest.moments(), need);
        }
        let mut left = need - staged;
        for chunk in &self.chunks {
            if left <= chunk.sum() {
                return chunk.reaches_us(left);
            }
            left -= chunk.sum();
        }
        self.nth_us(self.newest.moments(), left)
    }

    /// The moment of a staged entry, counted from one.
    fn nth_us(&self, mut moments: impl Iterator<Item = u64>, number: u64) -> u64 {
        moments.nth(number as usize - 1).unwrap_or(self.last_us())
    }

    /// Rounds the oldest half up to steps and merges what falls together, and with it whatever
    /// later entries lie within the last of these steps.
    #[cold]
    pub(super) fn coarsen(&mut self, step_us: u64) {
        let half = self.len() / 2;
        let rounded_us = |at_us: u64| at_us.div_ceil(step_us).saturating_mul(step_us);
        let mut chunk = Chunk::largest();
        let Some(first) = self.take_first() else { return };
        Chunk::push(&mut chunk, Entry { at_us: rounded_us(first.at_us), ..first });
        let mut merged = Self::from_one(chunk);
        for taken in 1.. {
            let in_last_step = merged.last_us() >= self.first_us();
            if taken >= half && !in_last_step {
                break;
            }
            let Some(entry) = self.take_first() else { break };
            merged.push(rounded_us(entry.at_us), entry.cost);
        }
        merged.coarse = merged.entries;
        self.prepend(merged);
    }

    /// Takes the first entry away.
    fn take_first(&mut self) -> Option<Entry> {
        let first = self.entries().next()?;
        self.refund(first.cost);
        Some(first)
    }

    /// Puts all of another queue, which ends before this one begins, before it.
    fn prepend(&mut self, mut other: Self) {
        if self.entries == 0 {
            *self = other;
            return;
        }
        let staged = self.oldest;
        for at_us in staged.moments() {
            other.push(at_us, 1);
        }
        self.forget(staged.len() as u64, staged.len());
        other.unstage_newest();
        self.oldest = other.oldest;
        self.sum += other.sum;
        self.entries += other.entries;
        self.coarse = other.coarse;
        self.chunks_bytes += other.chunks_bytes - list_bytes(&other.chunks);
        self.chunks_bytes -= list_bytes(&self.chunks);
        for chunk in other.chunks.into_iter().rev() {
            self.chunks.push_front(chunk);
        }
        self.chunks_bytes += list_bytes(&self.chunks);
    }

    /// Reads a word of each line of the header that the next request will.
    #[inline]
    pub(super) fn prefetch(&self) -> u64 {
        self.first_us() ^ self.last_us() ^ self.newest.prefetch()
    }

    /// Reads where the entries of the newest end will stand, if the next one has no room there.
    #[inline]
    pub(super) fn prefetch_tail(&self) -> u64 {
        if !self.newest.is_full() {
            return 0;
        }
        self.chunks.back().map_or(0, |chunk| chunk.sum() ^ chunk.prefetch_tail())
    }

    /// What the queue costs in memory, with all that it holds.
    pub(super) fn heap_bytes(&self) -> usize {
        malloc_bytes(size_of::<Self>()) + self.chunks_bytes
    }

    #[cfg(test)]
    pub(super) fn assert_counts(&self) {
        assert_eq!(self.sum, self.entries().map(|entry| entry.cost).sum::<u64>());
        assert_eq!(self.len(), self.entries().count());
        assert_eq!(Some(self.first_us()), self.entries().next().map(|entry| entry.at_us));
        assert_eq!(Some(self.last_us()), self.entries().last().map(|entry| entry.at_us));
        assert!(self.chunks.iter().all(|chunk| !chunk.is_empty()));
        let chunks = self.chunks.iter().chain(&self.spare);
        let bytes = chunks.map(|chunk| chunk.heap_bytes());
        assert_eq!(self.chunks_bytes, bytes.sum::<usize>() + list_bytes(&self.chunks));
    }

    /// How many entries stand at the oldest end, in chunks and at the newest end.
    #[cfg(test)]
    pub(super) fn spread(&self) -> [usize; 3] {
        let (oldest, newest) = (self.oldest.len(), self.newest.len());
        [oldest, self.len() - oldest - newest, newest]
    }
}

/// What the list of chunks itself costs in memory.
fn list_bytes(chunks: &VecDeque<Box<Chunk>>) -> usize {
    match chunks.capacity() {
        0 => 0,
        capacity => malloc_bytes(capacity * size_of::<Box<Chunk>>()),
    }
}

impl Clone for Queue {
    fn clone(&self) -> Self {
        let chunks: VecDeque<_> = self.chunks.iter().map(|chunk| chunk.duplicate()).collect();
        let chunks_bytes = chunks.iter().map(|chunk| chunk.heap_bytes()).sum::<usize>();
        let chunks_bytes = chunks_bytes + list_bytes(&chunks);
        Self { chunks_bytes, chunks, spare: None, ..*self }
    }
}
