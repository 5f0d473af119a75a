//! A small sorted set: its entries one behind another in a single allocation.
//!
//! An entry is its score, the length of its member, and the member; they stand in order. All is
//! found by looking along them, which for so few is faster than an index, and takes no more
//! memory than the entries do.
//!
//! The two zeros are one here, as in Redis while a sorted set is small.

use std::ops::Range;

use smallvec::SmallVec;

use super::{Direction, compare};
use crate::size::malloc_bytes;

/// Redis's zset-max-listpack-entries and zset-max-listpack-value.
const ENTRIES_MAX: usize = 128;
const MEMBER_BYTES_MAX: usize = 64;

/// A score and a length.
const HEAD_BYTES: usize = 9;

#[derive(Clone, Debug, Default)]
pub(super) struct Flat {
    bytes: Vec<u8>,
    len: usize,
    /// Where the last entry begins.
    last: usize,
}

/// One of the entries.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry<'f> {
    start: usize,
    pub(super) score: f64,
    pub(super) member: &'f [u8],
}

impl Entry<'_> {
    fn end(&self) -> usize {
        self.start + HEAD_BYTES + self.member.len()
    }

    pub(super) fn place(&self) -> Place {
        Place { start: self.start, end: self.end() }
    }
}

/// Where an entry stands.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    start: usize,
    end: usize,
}

impl Flat {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Whether a new member may come in.
    pub(super) fn takes(&self, member: &[u8]) -> bool {
        self.len < ENTRIES_MAX && member.len() <= MEMBER_BYTES_MAX
    }

    pub(super) fn heap_bytes(&self) -> usize {
        match self.bytes.capacity() {
            0 => 0,
            bytes => malloc_bytes(bytes),
        }
    }

    pub(super) fn entries(&self) -> impl Iterator<Item = Entry<'_>> {
        let mut start = 0;
        std::iter::from_fn(move || {
            let entry = self.at(start)?;
            start = entry.end();
            Some(entry)
        })
    }

    fn at(&self, start: usize) -> Option<Entry<'_>> {
        let (score, rest) = self.bytes.get(start..)?.split_first_chunk()?;
        let (len, rest) = rest.split_first()?;
        let member = rest.get(..usize::from(*len))?;
        Some(Entry { start, score: f64::from_le_bytes(*score), member })
    }

    pub(super) fn last_score(&self) -> Option<f64> {
        self.at(self.last).map(|last| last.score)
    }

    /// Members of a log are moments, which begin alike: their ends are compared first.
    pub(super) fn find(&self, member: &[u8]) -> Option<Entry<'_>> {
        let end = member.last_chunk::<8>();
        let mut entries = self.entries();
        entries.find(|entry| entry.member.last_chunk::<8>() == end && entry.member == member)
    }

    /// Puts in an entry whose member is not there.
    pub(super) fn insert(&mut self, member: &[u8], score: f64) {
        let (place, end) = (self.place_of(member, score), self.bytes.len());
        let bytes = HEAD_BYTES + member.len();
        self.reserve(bytes);
        self.bytes.resize(end + bytes, 0);
        self.bytes.copy_within(place..end, place + bytes);
        let (head, rest) = self.bytes[place..].split_at_mut(HEAD_BYTES);
        head[..8].copy_from_slice(&(score + 0.0).to_le_bytes());
        head[8] = u8::try_from(member.len()).expect("a member that it takes is short");
        rest[..member.len()].copy_from_slice(member);
        self.last = if place == end { place } else { self.last + bytes };
        self.len += 1;
    }

    /// Where a new entry belongs: in a log, behind the last one.
    fn place_of(&self, member: &[u8], score: f64) -> usize {
        let before =
            |entry: &Entry<'_>| compare((entry.score, entry.member), (score, member)).is_lt();
        match self.at(self.last) {
            Some(last) if !before(&last) => {
                let behind = self.entries().find(|entry| !before(entry));
                behind.map_or(self.last, |entry| entry.start)
            }
            Some(_) | None => self.bytes.len(),
        }
    }

    /// Takes out an entry of [`Flat::find`].
    pub(super) fn remove(&mut self, place: Place) {
        self.cut(place.start..place.end, 1);
    }

    pub(super) fn rank(&self, before: impl Fn(f64, &[u8]) -> bool) -> usize {
        self.entries().take_while(|entry| before(entry.score, entry.member)).count()
    }

    pub(super) fn visit(
        &self,
        ranks: Range<usize>,
        direction: Direction,
        mut visit: impl FnMut(&[u8], f64),
    ) {
        let entries = self.entries().skip(ranks.start).take(ranks.len());
        let mut visit = |entry: Entry<'_>| visit(entry.member, entry.score);
        match direction {
            Direction::Ascending => entries.for_each(visit),
            Direction::Descending => {
                let entries: SmallVec<[Entry<'_>; 16]> = entries.collect();
                entries.into_iter().rev().for_each(&mut visit);
            }
        }
    }

    /// Takes out the entries of these ranks, which are there, and shows each.
    pub(super) fn drain(&mut self, ranks: Range<usize>, mut gone: impl FnMut(&[u8], f64)) {
        let (len, mut taken) = (ranks.len(), 0..0);
        for entry in self.entries().skip(ranks.start).take(len) {
            gone(entry.member, entry.score);
            taken =
                if taken.is_empty() { entry.start..entry.end() } else { taken.start..entry.end() };
        }
        self.cut(taken, len);
    }

    fn cut(&mut self, taken: Range<usize>, entries: usize) {
        self.last = if taken.end < self.bytes.len() { self.last - taken.len() } else { 0 };
        self.bytes.drain(taken);
        self.len -= entries;
        if self.last == 0 {
            self.last = self.entries().last().map_or(0, |entry| entry.start);
        }
        self.shrink();
    }

    pub(super) fn prefetch(&self) -> u64 {
        // Of a log both ends are asked for.
        let byte = |at| self.bytes.get(at).copied().map_or(0, u64::from);
        byte(0) ^ byte(self.last)
    }

    /// A quarter more than is needed, so that few additions move all.
    fn reserve(&mut self, more: usize) {
        let needed = self.bytes.len() + more;
        if needed > self.bytes.capacity() {
            self.bytes.reserve_exact(needed + needed / 4 - self.bytes.len());
        }
    }

    fn shrink(&mut self) {
        let len = self.bytes.len();
        if self.bytes.capacity() > 128 && len < self.bytes.capacity() / 4 {
            self.bytes.shrink_to(2 * len);
        }
    }
}
