//! A list: elements in order, in chunks of about 8 KiB.
//!
//! Pushing and popping at the ends takes constant time; a place in the middle is found by
//! counting chunks, from the nearer end, and then elements within one. A small list is one chunk
//! of little more than its elements' bytes.
//!
//! Invariants: no chunk is empty; `len` and `buffer_bytes` are the sums over the chunks.

mod chunk;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;

pub(crate) use chunk::End;

use super::coded::{DecodeError, Pieces, put_bytes, put_len};
use super::inverses::Inverses;
use crate::size::{allocated_bytes, malloc_bytes};
use chunk::Chunk;

type Element = Box<[u8]>;

/// Room of a chunk that is added to others: less than a whole one, or a list of large elements
/// with small ones between them would waste most of its memory.
const ADDED_CHUNK_BYTES: usize = 504;

/// Places for chunks that are kept free without asking whether they are too many.
const SPARE_CHUNKS: usize = 16;

/// The inverse of a change.
#[derive(Clone, Debug)]
enum Inverse {
    Pop(End),
    Push(End, Element),
    Set(usize, Element),
    Insert(usize, Element),
    Remove(usize),
}

#[derive(Clone, Debug)]
pub(crate) struct List {
    chunks: VecDeque<Chunk>,
    len: usize,
    buffer_bytes: usize,
    undo: Inverses<Inverse>,
}

impl List {
    /// Nothing yet. A list is kept in the order it has: there is nothing that a seed could hide.
    pub(crate) fn new(_seed: u64) -> Self {
        Self { chunks: VecDeque::new(), len: 0, buffer_bytes: 0, undo: Inverses::default() }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn push(&mut self, end: End, element: &[u8]) {
        self.undo.note(|| (Inverse::Pop(end), 0));
        self.len += 1;
        self.put_outermost(end, element);
    }

    /// Takes the outermost element away and shows it to `take`.
    pub(crate) fn pop<R>(&mut self, end: End, take: impl FnOnce(&[u8]) -> R) -> Option<R> {
        let at = if end == End::Left { 0 } else { self.chunks.len().checked_sub(1)? };
        let chunk = self.chunks.get_mut(at)?;
        let element = chunk.outermost(end)?;
        self.undo.note(|| (Inverse::Push(end, element.into()), allocated_bytes(element.len())));
        let (result, bytes) = (take(element), element.len());
        chunk.shorten(end, bytes);
        self.len -= 1;
        if chunk.len() == 0 {
            self.remove_chunk(at);
        } else if self.chunks.len() == 1 {
            self.alter(at, Chunk::shrink);
        }
        Some(result)
    }

    pub(crate) fn outermost(&self, end: End) -> Option<&[u8]> {
        match end {
            End::Left => self.chunks.front()?.outermost(end),
            End::Right => self.chunks.back()?.outermost(end),
        }
    }

    pub(crate) fn get(&self, place: usize) -> Option<&[u8]> {
        let (at, place) = self.find(place)?;
        self.chunks[at].get(place)
    }

    /// The elements, from either side.
    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = &[u8]> {
        self.chunks.iter().flat_map(Chunk::elements)
    }

    /// The elements from a place on.
    pub(crate) fn iter_from(&self, place: usize) -> impl Iterator<Item = &[u8]> {
        let (at, place) = self.find(place).unwrap_or((self.chunks.len(), 0));
        self.chunks.range(at..).flat_map(Chunk::elements).skip(place)
    }

    /// Puts an element in the place of another. False where there is no such place.
    pub(crate) fn set(&mut self, place: usize, element: &[u8]) -> bool {
        let Some((at, within)) = self.find(place) else { return false };
        self.undo.note(|| {
            let old = self.chunks[at].get(within).unwrap_or_default();
            (Inverse::Set(place, old.into()), allocated_bytes(old.len()))
        });
        if !self.chunks[at].overwrite(within, element) {
            self.cut(place);
            self.put(place, element);
        }
        true
    }

    /// Puts an element before the one at a place, or at the end where that is the place.
    pub(crate) fn insert(&mut self, place: usize, element: &[u8]) {
        debug_assert!(place <= self.len, "a place of the list, or the one behind it");
        self.undo.note(|| (Inverse::Remove(place), 0));
        self.put(place, element);
    }

    /// Keeps only `count` elements from a place on.
    pub(crate) fn trim(&mut self, first: usize, count: usize) {
        let first = first.min(self.len);
        let behind = (self.len - first).saturating_sub(count);
        self.shorten(End::Left, first);
        self.shorten(End::Right, behind);
    }

    /// Takes away so many elements at an end.
    fn shorten(&mut self, end: End, mut count: usize) {
        while count > 0 {
            let at = if end == End::Left { 0 } else { self.chunks.len().saturating_sub(1) };
            let whole = self.chunks.get(at).map_or(0, Chunk::len);
            if !self.undo.are_noted() && whole <= count {
                self.len -= whole;
                count -= whole;
                self.remove_chunk(at);
            } else {
                self.pop(end, |_| {});
                count -= 1;
            }
        }
    }

    /// Removes up to `max` elements that equal this one, those nearest to `from` first. Returns
    /// how many.
    pub(crate) fn remove_equal(&mut self, element: &[u8], from: End, max: usize) -> usize {
        let chunks = self.chunks.len();
        let mut removed = 0;
        for step in 0..chunks {
            if removed == max {
                break;
            }
            let at = if from == End::Left { step } else { chunks - 1 - step };
            let equal = self.chunks[at].elements().filter(|held| *held == element).count();
            let count = equal.min(max - removed);
            if count > 0 {
                let skip = if from == End::Left { 0 } else { equal - count };
                let gone = skip..skip + count;
                self.note_equal(at, element, gone.clone());
                let mut number = 0..;
                self.alter(at, |chunk| {
                    let mut is_gone = || number.next().is_some_and(|number| gone.contains(&number));
                    chunk.retain(|held| held != element || !is_gone());
                });
                removed += count;
            }
        }
        self.len -= removed;
        if removed > 0 {
            self.tidy();
        }
        removed
    }

    /// Notes that of the elements of a chunk that equal this one, those of these numbers go: the
    /// last first, so that no place moves before it is used.
    fn note_equal(&mut self, at: usize, element: &[u8], gone: std::ops::Range<usize>) {
        if !self.undo.are_noted() {
            return;
        }
        let before: usize = self.chunks.range(..at).map(Chunk::len).sum();
        let places = self.chunks[at].elements().enumerate().filter(|(_, held)| *held == element);
        let places: Vec<usize> =
            places.skip(gone.start).take(gone.len()).map(|(place, _)| before + place).collect();
        for place in places.into_iter().rev() {
            let bytes = allocated_bytes(element.len());
            self.undo.note(|| (Inverse::Insert(place, element.into()), bytes));
        }
    }

    /// Drops empty chunks, and joins small ones.
    fn tidy(&mut self) {
        let mut at = 0;
        while at < self.chunks.len() {
            if self.chunks[at].len() == 0 {
                self.remove_chunk(at);
            } else if !self.join(at) {
                at += 1;
            }
        }
    }

    fn put_outermost(&mut self, end: End, element: &[u8]) {
        let Some(last) = self.chunks.len().checked_sub(1) else {
            self.chunks.reserve_exact(1);
            self.add_chunk(0, Chunk::new(element, 0));
            return;
        };
        let (at, beyond) = if end == End::Left { (0, 0) } else { (last, last + 1) };
        if !self.alter(at, |chunk| chunk.push(end, element)) {
            self.add_chunk(beyond, Chunk::new(element, ADDED_CHUNK_BYTES));
        }
    }

    /// Puts an element before the one at a place, or at the end.
    fn put(&mut self, place: usize, element: &[u8]) {
        let found = self.find(place);
        self.len += 1;
        let Some((at, within)) = found else {
            self.put_outermost(End::Right, element);
            return;
        };
        if self.alter(at, |chunk| chunk.insert(within, element)) {
            return;
        }
        let behind = self.alter(at, |chunk| chunk.split(within));
        self.add_chunk(at + 1, behind);
        self.put_between(at, element);
        self.join(at + 2);
        self.join(at + 1);
        self.tidy_at(at);
    }

    /// Puts an element behind all of a chunk.
    fn put_between(&mut self, at: usize, element: &[u8]) {
        let is_put = self.alter(at, |chunk| chunk.insert(chunk.len(), element))
            || self.alter(at + 1, |chunk| chunk.insert(0, element));
        if !is_put {
            self.add_chunk(at + 1, Chunk::new(element, 0));
        }
    }

    /// Takes out the element at a place, if there is one.
    fn cut(&mut self, place: usize) {
        let Some((at, within)) = self.find(place) else { return };
        self.alter(at, |chunk| {
            chunk.remove(within);
            chunk.shrink();
        });
        self.len -= 1;
        self.join(at);
        self.tidy_at(at);
    }

    /// Joins a chunk with the one before it where both are small, and drops it if it is empty.
    fn tidy_at(&mut self, at: usize) {
        if self.chunks.get(at).is_some_and(|chunk| chunk.len() == 0) {
            self.remove_chunk(at);
        } else if let Some(before) = at.checked_sub(1) {
            self.join(before);
        }
    }

    /// Joins a chunk with the next one, where both are small.
    fn join(&mut self, at: usize) -> bool {
        let (Some(chunk), Some(next)) = (self.chunks.get(at), self.chunks.get(at + 1)) else {
            return false;
        };
        let joined = chunk.can_join(next);
        if joined && let Some(next) = self.remove_chunk(at + 1) {
            self.alter(at, |chunk| chunk.join(&next));
        }
        joined
    }

    fn add_chunk(&mut self, at: usize, chunk: Chunk) {
        self.buffer_bytes += chunk.heap_bytes();
        self.chunks.insert(at, chunk);
    }

    fn remove_chunk(&mut self, at: usize) -> Option<Chunk> {
        let chunk = self.chunks.remove(at)?;
        self.buffer_bytes -= chunk.heap_bytes();
        if self.chunks.capacity() > SPARE_CHUNKS.max(4 * self.chunks.len()) {
            self.chunks.shrink_to(2 * self.chunks.len());
        }
        Some(chunk)
    }

    /// Changes a chunk, and counts what that does to its buffer.
    fn alter<R>(&mut self, at: usize, change: impl FnOnce(&mut Chunk) -> R) -> R {
        let chunk = &mut self.chunks[at];
        let before = chunk.heap_bytes();
        let result = change(chunk);
        self.buffer_bytes = self.buffer_bytes + chunk.heap_bytes() - before;
        result
    }

    /// The chunk that holds a place, and the place within it. Counted from the nearer end.
    fn find(&self, place: usize) -> Option<(usize, usize)> {
        let mut behind = self.len.checked_sub(place + 1)?;
        if place <= behind {
            let mut place = place;
            for (at, chunk) in self.chunks.iter().enumerate() {
                if place < chunk.len() {
                    return Some((at, place));
                }
                place -= chunk.len();
            }
        } else {
            for (at, chunk) in self.chunks.iter().enumerate().rev() {
                if behind < chunk.len() {
                    return Some((at, chunk.len() - 1 - behind));
                }
                behind -= chunk.len();
            }
        }
        None
    }

    /// What OBJECT ENCODING answers: Redis 7.0 has one way to keep lists.
    #[expect(clippy::unused_self, reason = "as with other collections, it is asked of one")]
    pub(crate) fn encoding(&self) -> &'static str {
        "quicklist"
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        let places = self.chunks.capacity() * size_of::<Chunk>();
        let places = if places == 0 { 0 } else { malloc_bytes(places) };
        malloc_bytes(size_of::<Self>()) + places + self.buffer_bytes
    }

    /// From here on every change can be taken back. False where that is so already.
    pub(crate) fn begin_undo(&mut self) -> bool {
        self.undo.begin()
    }

    /// What is kept to take changes back.
    pub(crate) fn undo_bytes(&self) -> usize {
        self.undo.bytes()
    }

    pub(crate) fn forget_undo(&mut self) {
        self.undo.forget();
    }

    pub(crate) fn roll_back(&mut self) {
        for inverse in self.undo.take() {
            match inverse {
                Inverse::Pop(end) => drop(self.pop(end, |_| {})),
                Inverse::Push(end, element) => self.push(end, &element),
                Inverse::Set(place, element) => drop(self.set(place, &element)),
                Inverse::Insert(place, element) => self.put(place, &element),
                Inverse::Remove(place) => self.cut(place),
            }
        }
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        put_len(self.len(), out);
        for element in self.iter() {
            put_bytes(element, out);
        }
    }

    pub(crate) fn decode(bytes: &[u8], seed: u64) -> Result<Self, DecodeError> {
        let mut pieces = Pieces(bytes);
        let mut list = Self::new(seed);
        for _ in 0..pieces.len()? {
            list.push(End::Right, pieces.bytes()?);
        }
        pieces.end().map(|()| list)
    }
}
