//! A chunk of a list: elements in one allocation, with room to grow at either end.
//!
//! An element stands between two copies of its length, so that it is reached from either side.
//! A length below 255 is one byte; a longer one is that byte, as a mark, on the outer side of
//! four more. Room is made by the share, so a push costs constant time on average, whichever
//! ends take turns; what stands in the middle is moved.
//!
//! Invariants: elements fill `start..end` of the buffer, one behind the other, `count` of them;
//! more than one of them take at most [`CHUNK_BYTES_MAX`].

use crate::size::malloc_bytes;

/// Which end of a list.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum End {
    Left,
    Right,
}

/// Bytes of a chunk, unless a single element takes more: with the allocator's word two pages.
/// Whatever moves elements in the middle moves no more than this.
pub(super) const CHUNK_BYTES_MAX: usize = (8 << 10) - 8;

/// The smallest buffer: what the allocator has for the smallest block.
const CHUNK_BYTES_MIN: usize = 24;

/// What stands for a length that does not fit a byte.
const MARK: u8 = u8::MAX;

#[derive(Clone, Debug)]
pub(super) struct Chunk {
    buffer: Box<[u8]>,
    start: u32,
    end: u32,
    count: u32,
}

/// What an element of so many bytes takes, lengths included.
fn frame_bytes(len: usize) -> usize {
    len + if len < usize::from(MARK) { 2 } else { 10 }
}

/// Writes an element and its lengths over all of `frame`.
fn write_frame(element: &[u8], frame: &mut [u8]) {
    let len = element.len();
    if len < usize::from(MARK) {
        frame[0] = len as u8;
        frame[1..=len].copy_from_slice(element);
        frame[len + 1] = len as u8;
    } else {
        let digits = u32::try_from(len).expect("an element is part of a request").to_le_bytes();
        frame[0] = MARK;
        frame[1..5].copy_from_slice(&digits);
        frame[5..5 + len].copy_from_slice(element);
        frame[5 + len..9 + len].copy_from_slice(&digits);
        frame[9 + len] = MARK;
    }
}

/// A buffer for `bytes`: all that the allocator spends on it anyway.
fn fitted(bytes: usize) -> usize {
    malloc_bytes(bytes.max(CHUNK_BYTES_MIN)) - size_of::<usize>()
}

impl Chunk {
    /// One element, and room for `bytes` in all, or for more if it needs more.
    pub(super) fn new(element: &[u8], bytes: usize) -> Self {
        let frame = frame_bytes(element.len());
        let mut chunk = Self::empty(fitted(frame.max(bytes)));
        write_frame(element, &mut chunk.buffer[..frame]);
        chunk.end = frame as u32;
        chunk.count = 1;
        chunk
    }

    fn empty(bytes: usize) -> Self {
        Self { buffer: vec![0; bytes].into_boxed_slice(), start: 0, end: 0, count: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.count as usize
    }

    pub(super) fn heap_bytes(&self) -> usize {
        malloc_bytes(self.buffer.len())
    }

    pub(super) fn elements(&self) -> Elements<'_> {
        Elements(self.held())
    }

    fn held(&self) -> &[u8] {
        &self.buffer[self.start as usize..self.end as usize]
    }

    /// The element at a place, from whichever side is nearer.
    pub(super) fn get(&self, place: usize) -> Option<&[u8]> {
        let behind = self.len().checked_sub(place + 1)?;
        if place <= behind { self.elements().nth(place) } else { self.elements().nth_back(behind) }
    }

    pub(super) fn outermost(&self, end: End) -> Option<&[u8]> {
        match end {
            End::Left => self.elements().next(),
            End::Right => self.elements().next_back(),
        }
    }

    /// Adds an element at an end. False where the chunk is full.
    #[inline]
    pub(super) fn push(&mut self, end: End, element: &[u8]) -> bool {
        let frame = frame_bytes(element.len());
        if self.room(end) < frame && !self.make_room(end, frame) {
            return false;
        }
        let at = match end {
            End::Left => {
                self.start -= frame as u32;
                self.start as usize
            }
            End::Right => {
                self.end += frame as u32;
                self.end as usize - frame
            }
        };
        write_frame(element, &mut self.buffer[at..at + frame]);
        self.count += 1;
        true
    }

    /// Forgets the outermost element, which has so many bytes.
    pub(super) fn shorten(&mut self, end: End, element_bytes: usize) {
        let frame = frame_bytes(element_bytes);
        match end {
            End::Left => self.start += frame as u32,
            End::Right => self.end -= frame as u32,
        }
        self.count -= 1;
    }

    /// None beside an element that is larger than a chunk: it stands alone.
    fn room(&self, end: End) -> usize {
        match end {
            _ if self.buffer.len() > CHUNK_BYTES_MAX => 0,
            End::Left => self.start as usize,
            End::Right => self.buffer.len() - self.end as usize,
        }
    }

    /// Makes room at an end by moving everything, but only where at least a quarter of the
    /// buffer is gained or the buffer grows: else so many pushes would each move everything.
    fn make_room(&mut self, end: End, bytes: usize) -> bool {
        let (size, wanted) = (self.buffer.len(), self.held().len() + bytes);
        if wanted > CHUNK_BYTES_MAX {
            return false;
        }
        if wanted <= size - size / 4 {
            // What room is left over is for both ends, which may take turns.
            let spare = (size - wanted) / 2;
            self.settle(size, if end == End::Left { spare + bytes } else { spare });
            return true;
        }
        if size >= CHUNK_BYTES_MAX {
            return false;
        }
        let grown = fitted(wanted + wanted / 2).min(CHUNK_BYTES_MAX);
        let at = if end == End::Left { grown - self.held().len() } else { 0 };
        self.settle(grown, at);
        true
    }

    /// Moves the elements to `at` of a buffer of `size` bytes.
    fn settle(&mut self, size: usize, at: usize) {
        let held = self.held().len();
        if size == self.buffer.len() {
            self.buffer.copy_within(self.start as usize..self.end as usize, at);
        } else {
            let mut buffer = vec![0; size].into_boxed_slice();
            buffer[at..at + held].copy_from_slice(self.held());
            self.buffer = buffer;
        }
        self.start = at as u32;
        self.end = (at + held) as u32;
    }

    /// Gives memory back where three quarters of the buffer are not used.
    pub(super) fn shrink(&mut self) {
        let held = self.held().len();
        if held < self.buffer.len() / 4 && self.buffer.len() > fitted(2 * held) {
            self.settle(fitted(2 * held), 0);
        }
    }

    /// Where in the buffer the element at a place begins; the end for the place behind the last.
    fn offset(&self, place: usize) -> usize {
        let mut rest = self.elements();
        for _ in 0..place {
            rest.next();
        }
        self.end as usize - rest.0.len()
    }

    /// Puts an element before the one at a place. False where the chunk is full.
    pub(super) fn insert(&mut self, place: usize, element: &[u8]) -> bool {
        let (held, frame) = (self.held().len(), frame_bytes(element.len()));
        if held + frame > CHUNK_BYTES_MAX {
            return false;
        }
        if self.room(End::Right) < frame {
            let size = self.buffer.len();
            let grown = fitted(held + frame + held / 2).min(CHUNK_BYTES_MAX);
            self.settle(if held + frame <= size { size } else { grown }, 0);
        }
        let at = self.offset(place);
        self.buffer.copy_within(at..self.end as usize, at + frame);
        write_frame(element, &mut self.buffer[at..at + frame]);
        self.end += frame as u32;
        self.count += 1;
        true
    }

    /// Writes an element over the one at a place. False where it is of another length.
    pub(super) fn overwrite(&mut self, place: usize, element: &[u8]) -> bool {
        let same = self.get(place).is_some_and(|old| old.len() == element.len());
        if same {
            let at = self.offset(place);
            write_frame(element, &mut self.buffer[at..at + frame_bytes(element.len())]);
        }
        same
    }

    pub(super) fn remove(&mut self, place: usize) {
        let (at, behind) = (self.offset(place), self.offset(place + 1));
        self.buffer.copy_within(behind..self.end as usize, at);
        self.end -= (behind - at) as u32;
        self.count -= 1;
    }

    /// Keeps only the elements of which `keep` says so.
    pub(super) fn retain(&mut self, mut keep: impl FnMut(&[u8]) -> bool) {
        let mut kept = Self::empty(self.held().len());
        for element in self.elements() {
            if keep(element) {
                kept.push(End::Right, element);
            }
        }
        kept.settle(fitted(kept.held().len()), 0);
        *self = kept;
    }

    /// Cuts the chunk in two before the element at a place; returns the second part.
    pub(super) fn split(&mut self, place: usize) -> Self {
        let at = self.offset(place);
        let bytes = &self.buffer[at..self.end as usize];
        let mut behind = Self::empty(fitted(bytes.len()));
        behind.buffer[..bytes.len()].copy_from_slice(bytes);
        behind.end = bytes.len() as u32;
        behind.count = self.count - place as u32;
        self.end = at as u32;
        self.count = place as u32;
        self.settle(fitted(self.held().len()), 0);
        behind
    }

    /// Whether both together leave half a chunk free: joined any earlier, they would soon be
    /// parted again.
    pub(super) fn can_join(&self, next: &Self) -> bool {
        self.held().len() + next.held().len() <= CHUNK_BYTES_MAX / 2
    }

    /// Takes over the elements of the next chunk.
    pub(super) fn join(&mut self, next: &Self) {
        let (held, bytes) = (self.held().len(), next.held());
        self.settle(fitted(held + bytes.len()), 0);
        self.buffer[held..held + bytes.len()].copy_from_slice(bytes);
        self.end += bytes.len() as u32;
        self.count += next.count;
    }
}

/// The elements of a chunk, or what is left of them.
#[derive(Clone, Debug)]
pub(super) struct Elements<'c>(&'c [u8]);

/// Why the length of an element is there.
const WHOLE: &str = "a chunk holds whole elements";

impl<'c> Iterator for Elements<'c> {
    type Item = &'c [u8];

    #[inline]
    fn next(&mut self) -> Option<&'c [u8]> {
        let (&first, mut rest) = self.0.split_first()?;
        let (mut len, mut edge) = (usize::from(first), 1);
        if first == MARK {
            let (digits, behind) = rest.split_first_chunk::<4>().expect(WHOLE);
            (len, edge, rest) = (u32::from_le_bytes(*digits) as usize, 5, behind);
        }
        let (element, rest) = rest.split_at(len);
        self.0 = &rest[edge..];
        Some(element)
    }
}

impl DoubleEndedIterator for Elements<'_> {
    #[inline]
    fn next_back(&mut self) -> Option<Self::Item> {
        let (&last, mut rest) = self.0.split_last()?;
        let (mut len, mut edge) = (usize::from(last), 1);
        if last == MARK {
            let (before, digits) = rest.split_last_chunk::<4>().expect(WHOLE);
            (len, edge, rest) = (u32::from_le_bytes(*digits) as usize, 5, before);
        }
        let (rest, element) = rest.split_at(rest.len() - len);
        self.0 = &rest[..rest.len() - edge];
        Some(element)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_of_any_length_are_reached_from_either_side() {
        let elements = [0, 1, 254, 255, 256, 3].map(|len| vec![b'e'; len]);
        let mut chunk = Chunk::new(&elements[0], 0);
        assert!(elements[1..].iter().all(|element| chunk.push(End::Right, element)));
        assert!(chunk.elements().eq(elements.iter().map(Vec::as_slice)));
        assert!(chunk.elements().rev().eq(elements.iter().rev().map(Vec::as_slice)));
        for (place, element) in elements.iter().enumerate() {
            assert_eq!(chunk.get(place), Some(element.as_slice()), "{place}");
        }
        assert_eq!(chunk.get(elements.len()), None);
    }

    #[test]
    fn chunk_filled_from_one_end_is_filled_to_the_last_byte() {
        for end in [End::Left, End::Right] {
            let mut chunk = Chunk::new(b"123456", 0);
            while chunk.push(end, b"123456") {}
            assert_eq!(chunk.held().len(), CHUNK_BYTES_MAX, "{end:?}");
            assert_eq!(chunk.heap_bytes(), 8 << 10, "{end:?}");
        }
    }

    /// Else a queue would move a whole chunk with each push.
    #[test]
    fn pushes_at_both_ends_move_little_on_average() {
        let mut chunk = Chunk::new(b"123456", 0);
        for _ in 0..600 {
            chunk.push(End::Right, b"123456");
        }
        let mut moves = 0;
        for _ in 0..1_000 {
            for (push, pop) in [(End::Left, End::Right), (End::Right, End::Left)] {
                chunk.shorten(pop, 6);
                moves += u32::from(chunk.room(push) < 8);
                assert!(chunk.push(push, b"123456"));
            }
            chunk.shorten(End::Left, 6);
            moves += u32::from(chunk.room(End::Right) < 8);
            assert!(chunk.push(End::Right, b"123456"));
        }
        assert!(moves < 12, "{moves} moves of everything");
    }

    #[test]
    fn element_larger_than_a_chunk_stands_alone() {
        let mut chunk = Chunk::new(&vec![b'e'; 2 * CHUNK_BYTES_MAX], 0);
        assert!(!chunk.push(End::Left, b""));
        assert!(!chunk.push(End::Right, b""));
        assert!(!chunk.insert(0, b""));
    }
}
