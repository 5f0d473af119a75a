//! A hash: fields and their values, in no promised order.
//!
//! While it is small and its words are short, fields stand in the order in which they came.

use super::coded::{DecodeError, Pieces, put_bytes, put_len};
use super::fields::Fields;
use crate::size::malloc_bytes;

/// Fields of the largest hash that is packed: Redis's default of hash-max-listpack-entries.
const PACKED_MAX: u32 = 512;

#[derive(Clone, Debug)]
pub(crate) struct Hash(Fields);

impl Hash {
    /// Nothing yet. The seed makes it unpredictable from outside how it is kept.
    pub(crate) fn new(seed: u64) -> Self {
        Self(Fields::new(seed, PACKED_MAX))
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn get(&self, field: &[u8]) -> Option<&[u8]> {
        self.0.find(field).map(|at| self.0.value(at))
    }

    /// Returns whether the field is new.
    pub(crate) fn set(&mut self, field: &[u8], value: &[u8]) -> bool {
        let found = self.0.find(field);
        match found {
            Some(at) => self.0.replace(at, value),
            None => self.0.push(field, value),
        }
        found.is_none()
    }

    /// Sets a field to what is made of its value; nothing is changed where that fails.
    pub(crate) fn update<T: AsRef<[u8]>, E>(
        &mut self,
        field: &[u8],
        make: impl FnOnce(Option<&[u8]>) -> Result<T, E>,
    ) -> Result<T, E> {
        let found = self.0.find(field);
        let made = make(found.map(|at| self.0.value(at)))?;
        match found {
            Some(at) => self.0.replace(at, made.as_ref()),
            None => self.0.push(field, made.as_ref()),
        }
        Ok(made)
    }

    /// Returns whether the field was there.
    pub(crate) fn remove(&mut self, field: &[u8]) -> bool {
        let found = self.0.find(field);
        if let Some(at) = found {
            self.0.remove(at);
        }
        found.is_some()
    }

    /// Fields and values.
    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = (&[u8], &[u8])> + Clone {
        self.0.iter()
    }

    /// Those that a scan meets next, some `count` of them, and where it goes on. Zero begins, and
    /// zero ends; a field that is there throughout is met.
    pub(crate) fn scan(
        &self,
        cursor: u64,
        count: usize,
    ) -> (impl Iterator<Item = (&[u8], &[u8])> + Clone, u64) {
        self.0.scan(cursor, count)
    }

    /// What OBJECT ENCODING answers: Redis's name for how it would keep such a collection.
    pub(crate) fn encoding(&self) -> &'static str {
        if self.0.is_packed() { "listpack" } else { "hashtable" }
    }

    /// Its own block and all that it owns.
    pub(crate) fn heap_bytes(&self) -> usize {
        malloc_bytes(size_of::<Self>()) + self.0.heap_bytes()
    }

    /// Reads some of what the next request will; the result means nothing.
    pub(crate) fn prefetch(&self) -> u64 {
        self.0.prefetch()
    }

    /// From here on every change can be taken back. False where that is so already.
    pub(crate) fn begin_undo(&mut self) -> bool {
        self.0.begin_undo()
    }

    /// What is kept to take changes back.
    pub(crate) fn undo_bytes(&self) -> usize {
        self.0.undo_bytes()
    }

    pub(crate) fn forget_undo(&mut self) {
        self.0.forget_undo();
    }

    pub(crate) fn roll_back(&mut self) {
        self.0.roll_back();
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        put_len(self.len(), out);
        for (field, value) in self.iter() {
            put_bytes(field, out);
            put_bytes(value, out);
        }
    }

    pub(crate) fn decode(bytes: &[u8], seed: u64) -> Result<Self, DecodeError> {
        let mut pieces = Pieces(bytes);
        let mut hash = Self::new(seed);
        for _ in 0..pieces.len()? {
            if !hash.set(pieces.bytes()?, pieces.bytes()?) {
                return Err(DecodeError);
            }
        }
        pieces.end().map(|()| hash)
    }
}
