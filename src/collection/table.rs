//! What a large collection is kept in: elements side by side, and an index over them by hash.
//!
//! The place of an element is its number. What is removed is replaced by the last one, so there
//! are no holes, and any number below the length picks an element, each as likely as another.
//! A scan goes from the last place to the first: an element only ever moves to a lower place, so
//! one that is there throughout cannot move behind a scan that has not met it yet.
//!
//! Invariants: the index has each place once, under the tag of its element; a field stands there
//! once; `owned_bytes` is the sum of what the elements own.

use std::hash::BuildHasher;

use foldhash::fast::FixedState;
use hashbrown::HashTable;

use super::inverses::Inverses;
use crate::size::{allocated_bytes, malloc_bytes};

/// A field and its value, in one allocation.
#[derive(Clone, Debug)]
pub(super) struct Element {
    bytes: Box<[u8]>,
    field_len: u32,
    tag: u32,
}

impl Element {
    fn new(field: &[u8], value: &[u8], tag: u32) -> Self {
        let field_len = u32::try_from(field.len()).expect("a request's word is shorter");
        Self { bytes: [field, value].concat().into_boxed_slice(), field_len, tag }
    }

    pub(super) fn parts(&self) -> (&[u8], &[u8]) {
        self.bytes.split_at(self.field_len as usize)
    }

    fn owned_bytes(&self) -> usize {
        allocated_bytes(self.bytes.len())
    }
}

/// The inverse of a change.
#[derive(Clone, Debug)]
enum Inverse {
    /// The last element was added.
    TakeOff,
    /// This stood in the place, and the last element was moved there.
    PutBack(u32, Element),
    /// This stood in the place.
    Restore(u32, Element),
}

#[derive(Clone, Debug)]
pub(super) struct Table {
    elements: Vec<Element>,
    index: HashTable<u32>,
    hasher: FixedState,
    owned_bytes: usize,
    inverses: Inverses<Inverse>,
}

impl Table {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            elements: Vec::new(),
            index: HashTable::new(),
            hasher: FixedState::with_seed(seed),
            owned_bytes: 0,
            inverses: Inverses::default(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.elements.len()
    }

    pub(super) fn elements(&self) -> &[Element] {
        &self.elements
    }

    /// Those that a scan meets next, some `count` of them, and where it goes on: the number of
    /// places it has not met. Zero begins, and zero ends.
    pub(super) fn scan(&self, cursor: u64, count: usize) -> (&[Element], u64) {
        let len = self.len();
        let end =
            if cursor == 0 { len } else { usize::try_from(cursor).map_or(len, |end| end.min(len)) };
        let start = end.saturating_sub(count);
        (&self.elements[start..end], start as u64)
    }

    /// The place of a field.
    pub(super) fn find(&self, field: &[u8]) -> Option<usize> {
        let tag = self.tag(field);
        let is_it = |place: &u32| {
            let element = &self.elements[*place as usize];
            element.tag == tag && element.parts().0 == field
        };
        self.index.find(spread(tag), is_it).map(|place| *place as usize)
    }

    pub(super) fn value(&self, place: usize) -> &[u8] {
        self.elements[place].parts().1
    }

    /// Adds an element whose field is not there yet.
    pub(super) fn push(&mut self, field: &[u8], value: &[u8]) {
        let element = Element::new(field, value, self.tag(field));
        self.put(self.len() as u32, element);
        self.inverses.note(|| (Inverse::TakeOff, 0));
    }

    /// Changes the value of the element in a place.
    pub(super) fn replace(&mut self, place: usize, value: &[u8]) {
        let element = &mut self.elements[place];
        let (field, old) = element.parts();
        if old.len() == value.len() && !self.inverses.are_noted() {
            let field_len = field.len();
            element.bytes[field_len..].copy_from_slice(value);
            return;
        }
        let new = Element::new(field, value, element.tag);
        let old = self.exchange(place, new);
        let bytes = old.owned_bytes();
        self.inverses.note(|| (Inverse::Restore(place as u32, old), bytes));
    }

    /// Takes out the element in a place; the last one moves there.
    pub(super) fn remove(&mut self, place: usize) {
        let element = self.take_out(place);
        let bytes = element.owned_bytes();
        self.inverses.note(|| (Inverse::PutBack(place as u32, element), bytes));
        self.give_back();
    }

    pub(super) fn heap_bytes(&self) -> usize {
        malloc_bytes(size_of::<Self>())
            + allocated_bytes(self.elements.capacity() * size_of::<Element>())
            + allocated_bytes(self.index.allocation_size())
            + self.owned_bytes
    }

    pub(super) fn begin_undo(&mut self) -> bool {
        self.inverses.begin()
    }

    pub(super) fn undo_bytes(&self) -> usize {
        self.inverses.bytes()
    }

    pub(super) fn forget_undo(&mut self) {
        self.inverses.forget();
    }

    pub(super) fn roll_back(&mut self) {
        for inverse in self.inverses.take() {
            match inverse {
                Inverse::TakeOff => drop(self.take_out(self.len() - 1)),
                Inverse::PutBack(place, element) => self.put(place, element),
                Inverse::Restore(place, element) => drop(self.exchange(place as usize, element)),
            }
        }
        self.give_back();
    }

    /// Puts an element in a place, at most one past the last; what stood there becomes the last.
    fn put(&mut self, place: u32, element: Element) {
        let last = u32::try_from(self.len()).expect("memory ends long before 2^32 elements");
        let tag = element.tag;
        self.owned_bytes += element.owned_bytes();
        self.elements.push(element);
        if place != last {
            let moved = self.elements[place as usize].tag;
            *self.number(moved, place) = last;
            self.elements.swap(place as usize, last as usize);
        }
        let elements = &self.elements;
        let hash = |place: &u32| spread(elements[*place as usize].tag);
        self.index.insert_unique(spread(tag), place, hash);
    }

    /// The inverse of [`Table::put`]: the last element moves to the place.
    fn take_out(&mut self, place: usize) -> Element {
        let tag = self.elements[place].tag;
        if let Ok(found) = self.index.find_entry(spread(tag), |other| *other == place as u32) {
            found.remove();
        }
        let element = self.elements.swap_remove(place);
        self.owned_bytes -= element.owned_bytes();
        if let Some(moved) = self.elements.get(place) {
            let (tag, last) = (moved.tag, self.len() as u32);
            *self.number(tag, last) = place as u32;
        }
        element
    }

    fn exchange(&mut self, place: usize, element: Element) -> Element {
        self.owned_bytes += element.owned_bytes();
        let old = std::mem::replace(&mut self.elements[place], element);
        self.owned_bytes -= old.owned_bytes();
        old
    }

    /// The number of a place as it stands in the index.
    fn number(&mut self, tag: u32, place: u32) -> &mut u32 {
        let number = self.index.find_mut(spread(tag), |other| *other == place);
        number.expect("the index has every place under its element's tag")
    }

    /// Gives memory back once it is three quarters empty.
    fn give_back(&mut self) {
        const LEN_MIN: usize = 16;
        if self.elements.capacity() > 4 * self.len().max(LEN_MIN) {
            self.elements.shrink_to(2 * self.elements.len());
            let elements = &self.elements;
            let hash = |place: &u32| spread(elements[*place as usize].tag);
            self.index.shrink_to(2 * elements.len(), hash);
        }
    }

    fn tag(&self, field: &[u8]) -> u32 {
        self.hasher.hash_one(field) as u32
    }
}

/// Spreads the 32 bits of a tag: the index takes some from the top, and others from the bottom.
fn spread(tag: u32) -> u64 {
    (u64::from(tag) << 32) | u64::from(tag)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the elements own is counted through every change and its inverse.
    #[test]
    fn owned_bytes_are_those_of_the_elements() {
        let mut table = Table::new(7);
        let counted =
            |table: &Table| -> usize { table.elements.iter().map(Element::owned_bytes).sum() };
        for number in 0..100_usize {
            table.push(format!("field {number}").as_bytes(), &vec![b'v'; number]);
        }
        let before = table.owned_bytes;
        assert_eq!(before, counted(&table));
        assert!(table.begin_undo());
        for place in [99, 0, 50, 0, 95] {
            table.remove(place);
            assert_eq!(table.owned_bytes, counted(&table));
            table.replace(place / 2, b"another value, which is longer than some of those before");
            assert_eq!(table.owned_bytes, counted(&table));
        }
        table.roll_back();
        assert_eq!((table.owned_bytes, counted(&table)), (before, before));
    }

    #[test]
    fn index_names_every_place_after_any_change() {
        let mut table = Table::new(7);
        for number in 0..50_u8 {
            table.push(&[number], b"");
        }
        for place in [49, 0, 20, 20, 3] {
            table.remove(place);
            for (place, element) in table.elements.iter().enumerate() {
                assert_eq!(table.find(element.parts().0), Some(place));
            }
            assert_eq!(table.index.len(), table.len());
        }
    }
}
