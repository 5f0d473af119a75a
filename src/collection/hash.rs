//! A hash: fields and their values, in no promised order.

use foldhash::fast::FixedState;
use hashbrown::HashMap;

use super::coded::{DecodeError, Pieces, put_bytes, put_len};

type Field = Box<[u8]>;

#[derive(Clone, Debug)]
pub(crate) struct Hash {
    fields: HashMap<Field, Box<[u8]>, FixedState>,
    /// Inverses of the latest changes: a field, and what it held.
    undo: Option<Vec<(Field, Option<Box<[u8]>>)>>,
    owned_bytes: usize,
}

impl Hash {
    /// Nothing yet. The seed makes it unpredictable from outside how it is kept.
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            fields: HashMap::with_hasher(FixedState::with_seed(seed)),
            undo: None,
            owned_bytes: 0,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.fields.len()
    }

    pub(crate) fn get(&self, field: &[u8]) -> Option<&[u8]> {
        self.fields.get(field).map(|value| &**value)
    }

    /// Returns what the field held before.
    pub(crate) fn set(&mut self, field: &[u8], value: &[u8]) -> Option<Box<[u8]>> {
        let old = self.fields.insert(field.into(), value.into());
        self.owned_bytes += value.len() + if old.is_none() { field.len() } else { 0 };
        self.owned_bytes -= old.as_ref().map_or(0, |old| old.len());
        if let Some(undo) = &mut self.undo {
            undo.push((field.into(), old.clone()));
        }
        old
    }

    pub(crate) fn remove(&mut self, field: &[u8]) -> Option<Box<[u8]>> {
        let old = self.fields.remove(field)?;
        self.owned_bytes -= old.len() + field.len();
        if let Some(undo) = &mut self.undo {
            undo.push((field.into(), Some(old.clone())));
        }
        Some(old)
    }

    /// What OBJECT ENCODING answers: Redis's name for how it would keep such a collection.
    #[expect(clippy::unused_self, reason = "it will depend on what is held")]
    pub(crate) fn encoding(&self) -> &'static str {
        "hashtable"
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        size_of::<Self>() + self.fields.allocation_size() + self.owned_bytes
    }

    /// From here on every change can be taken back. False where that is so already.
    pub(crate) fn begin_undo(&mut self) -> bool {
        let begins = self.undo.is_none();
        self.undo.get_or_insert_default();
        begins
    }

    pub(crate) fn forget_undo(&mut self) {
        self.undo = None;
    }

    pub(crate) fn roll_back(&mut self) {
        for (field, old) in self.undo.take().unwrap_or_default().into_iter().rev() {
            match old {
                Some(value) => drop(self.set(&field, &value)),
                None => drop(self.remove(&field)),
            }
        }
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        put_len(self.len(), out);
        for (field, value) in &self.fields {
            put_bytes(field, out);
            put_bytes(value, out);
        }
    }

    pub(crate) fn decode(bytes: &[u8], seed: u64) -> Result<Self, DecodeError> {
        let mut pieces = Pieces(bytes);
        let mut hash = Self::new(seed);
        for _ in 0..pieces.len()? {
            if hash.set(pieces.bytes()?, pieces.bytes()?).is_some() {
                return Err(DecodeError);
            }
        }
        pieces.end().map(|()| hash)
    }
}
