//! What a set of whole numbers is kept in: the numbers in order, four bytes each while they fit.
//!
//! A search halves what is left, so it needs no index. [`Digits`] is a number's text, on the
//! stack.
//!
//! Invariant: each number is there once, and they ascend.

use std::ops::Deref;

use super::packed::{give_back, make_room};
use crate::size::allocated_bytes;

/// The digits of the smallest number, with its sign.
const DIGITS_MAX: usize = 20;

/// The text of a whole number.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Digits {
    bytes: [u8; DIGITS_MAX],
    len: u8,
}

impl Digits {
    pub(crate) fn new(number: i64) -> Self {
        let mut buffer = itoa::Buffer::new();
        let text = buffer.format(number).as_bytes();
        let mut bytes = [0; DIGITS_MAX];
        bytes[..text.len()].copy_from_slice(text);
        Self { bytes, len: text.len() as u8 }
    }
}

impl Deref for Digits {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

impl AsRef<[u8]> for Digits {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

#[derive(Clone, Debug)]
pub(super) enum Integers {
    Narrow(Vec<i32>),
    Wide(Vec<i64>),
}

impl Integers {
    pub(super) const EMPTY: Self = Self::Narrow(Vec::new());

    pub(super) fn len(&self) -> usize {
        match self {
            Self::Narrow(numbers) => numbers.len(),
            Self::Wide(numbers) => numbers.len(),
        }
    }

    /// The number in a place.
    pub(super) fn at(&self, place: usize) -> Option<i64> {
        match self {
            Self::Narrow(numbers) => numbers.get(place).copied().map(i64::from),
            Self::Wide(numbers) => numbers.get(place).copied(),
        }
    }

    /// Where the number stands.
    pub(super) fn find(&self, number: i64) -> Option<usize> {
        match self {
            Self::Narrow(numbers) => numbers.binary_search(&i32::try_from(number).ok()?).ok(),
            Self::Wide(numbers) => numbers.binary_search(&number).ok(),
        }
    }

    /// Returns whether the number is new.
    pub(super) fn insert(&mut self, number: i64) -> bool {
        match (&mut *self, i32::try_from(number)) {
            (Self::Narrow(numbers), Ok(number)) => insert(numbers, number),
            (Self::Narrow(numbers), Err(_)) => {
                let mut wide: Vec<i64> = numbers.iter().copied().map(i64::from).collect();
                let inserted = insert(&mut wide, number);
                *self = Self::Wide(wide);
                inserted
            }
            (Self::Wide(numbers), _) => insert(numbers, number),
        }
    }

    pub(super) fn remove(&mut self, place: usize) {
        match self {
            Self::Narrow(numbers) => remove(numbers, place),
            Self::Wide(numbers) => remove(numbers, place),
        }
    }

    pub(super) fn heap_bytes(&self) -> usize {
        match self {
            Self::Narrow(numbers) => allocated_bytes(size_of::<i32>() * numbers.capacity()),
            Self::Wide(numbers) => allocated_bytes(size_of::<i64>() * numbers.capacity()),
        }
    }

    /// A first number, so that it is near when the rest is asked for.
    pub(super) fn prefetch(&self) -> u64 {
        self.at(0).unwrap_or(0) as u64
    }
}

fn insert<T: Ord>(numbers: &mut Vec<T>, number: T) -> bool {
    let Err(place) = numbers.binary_search(&number) else { return false };
    make_room(numbers, 1);
    numbers.insert(place, number);
    true
}

fn remove<T>(numbers: &mut Vec<T>, place: usize) {
    numbers.remove(place);
    give_back(numbers);
}
