//! What a small collection is kept in: fields and values one after another in one allocation.
//!
//! An entry is two bytes that tell the lengths of field and value, then the two. A search looks
//! at one entry after another, which for a few hundred short ones is as fast as hashing, and
//! needs no more memory than what is kept. Entries stand in the order in which they came.
//!
//! Invariants: a field stands there once; no field or value is longer than [`PART_BYTES_MAX`],
//! and there are at most as many entries as the collection allows itself.

use std::ops::Range;

use crate::size::{allocated_bytes, malloc_bytes};

/// The longest field or value: the default of Redis's settings that end in `listpack-value`.
pub(super) const PART_BYTES_MAX: usize = 64;

/// The lengths of field and value.
const HEAD_BYTES: usize = 2;

const _: () = assert!(PART_BYTES_MAX <= u8::MAX as usize);

#[derive(Clone, Debug)]
pub(super) struct Packed {
    bytes: Vec<u8>,
    len: u32,
    len_max: u32,
}

/// An entry, and where it ends.
struct Entry<'p> {
    field: &'p [u8],
    value: &'p [u8],
    end: usize,
}

impl Packed {
    pub(super) fn new(len_max: u32) -> Self {
        Self { bytes: Vec::new(), len: 0, len_max }
    }

    pub(super) fn len(&self) -> usize {
        self.len as usize
    }

    /// Whether parts of these lengths can stand here.
    pub(super) fn takes(field: &[u8], value: &[u8]) -> bool {
        field.len().max(value.len()) <= PART_BYTES_MAX
    }

    /// Whether there is room for no more entries.
    pub(super) fn is_full(&self) -> bool {
        self.len == self.len_max
    }

    /// Where the entry of a field begins.
    pub(super) fn find(&self, field: &[u8]) -> Option<usize> {
        let mut at = 0;
        while let Some(entry) = self.entry(at) {
            // Fields of one hash tend to begin alike and to differ at the end.
            if entry.field.last() == field.last() && entry.field == field {
                return Some(at);
            }
            at = entry.end;
        }
        None
    }

    pub(super) fn value(&self, at: usize) -> &[u8] {
        self.entry(at).map_or(&[], |entry| entry.value)
    }

    /// How many entries stand before the one that begins here.
    pub(super) fn place(&self, at: usize) -> usize {
        let mut entries = self.iter();
        let mut place = 0;
        while entries.at < at && entries.next().is_some() {
            place += 1;
        }
        place
    }

    /// Where the entry begins that has so many before it.
    pub(super) fn offset(&self, place: usize) -> usize {
        let mut entries = self.iter();
        entries.by_ref().take(place).for_each(drop);
        entries.at
    }

    /// Adds an entry that fits, and whose field is not there yet.
    pub(super) fn push(&mut self, field: &[u8], value: &[u8]) {
        debug_assert!(Self::takes(field, value) && !self.is_full(), "the caller has asked");
        make_room(&mut self.bytes, HEAD_BYTES + field.len() + value.len());
        self.bytes.extend_from_slice(&[field.len() as u8, value.len() as u8]);
        self.bytes.extend_from_slice(field);
        self.bytes.extend_from_slice(value);
        self.len += 1;
    }

    /// Changes the value of the entry that begins here.
    pub(super) fn replace(&mut self, at: usize, value: &[u8]) {
        let Some(entry) = self.entry(at) else { return };
        let range = entry.end - entry.value.len()..entry.end;
        self.bytes[at + 1] = value.len() as u8;
        self.splice(range, value);
    }

    /// Takes out the entry that begins here; those behind it move up.
    pub(super) fn remove(&mut self, at: usize) {
        let Some(entry) = self.entry(at) else { return };
        let range = at..entry.end;
        self.splice(range, &[]);
        self.len -= 1;
    }

    pub(super) fn iter(&self) -> Entries<'_> {
        Entries { packed: self, at: 0, left: self.len() }
    }

    pub(super) fn heap_bytes(&self) -> usize {
        allocated_bytes(self.bytes.capacity())
    }

    /// A first byte, so that it is near when the rest is asked for.
    pub(super) fn prefetch(&self) -> u64 {
        self.bytes.first().copied().map_or(0, u64::from)
    }

    fn entry(&self, at: usize) -> Option<Entry<'_>> {
        let [field_len, value_len, rest @ ..] = self.bytes.get(at..)? else { return None };
        let (field, rest) = rest.split_at_checked(usize::from(*field_len))?;
        let value = rest.get(..usize::from(*value_len))?;
        Some(Entry { field, value, end: at + HEAD_BYTES + field.len() + value.len() })
    }

    fn splice(&mut self, range: Range<usize>, new: &[u8]) {
        if range.len() == new.len() {
            self.bytes[range].copy_from_slice(new);
            return;
        }
        let behind = range.end..self.bytes.len();
        let len = self.bytes.len() - range.len() + new.len();
        if len > self.bytes.len() {
            make_room(&mut self.bytes, new.len() - range.len());
            self.bytes.resize(len, 0);
        }
        self.bytes.copy_within(behind, range.start + new.len());
        self.bytes[range.start..range.start + new.len()].copy_from_slice(new);
        self.bytes.truncate(len);
        give_back(&mut self.bytes);
    }
}

/// Entries from some place on.
#[derive(Clone, Debug)]
pub(super) struct Entries<'p> {
    packed: &'p Packed,
    at: usize,
    left: usize,
}

impl<'p> Iterator for Entries<'p> {
    type Item = (&'p [u8], &'p [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let entry = self.packed.entry(self.at)?;
        self.at = entry.end;
        self.left -= 1;
        Some((entry.field, entry.value))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

/// Makes room for `more` elements, and for an eighth of all besides, so that what grows by small
/// steps is not copied at each; never less than what the allocator spends on them anyway.
pub(super) fn make_room<T>(elements: &mut Vec<T>, more: usize) {
    let len = elements.len() + more;
    if len > elements.capacity() {
        let bytes = (len + len / 8) * size_of::<T>();
        let usable = malloc_bytes(bytes) - size_of::<usize>();
        elements.reserve_exact(usable / size_of::<T>() - elements.len());
    }
}

/// Gives back what is more than half empty and more than a few elements.
pub(super) fn give_back<T>(elements: &mut Vec<T>) {
    const SPARE_BYTES: usize = 64;
    let spare = SPARE_BYTES / size_of::<T>();
    if elements.capacity() > 2 * elements.len() + spare {
        elements.shrink_to(elements.len());
    }
}
