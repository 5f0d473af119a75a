//! A list: elements in order, cheap at both ends.

use std::collections::VecDeque;

use super::coded::{DecodeError, Pieces, put_bytes, put_len};

type Element = Box<[u8]>;

/// The inverse of a change.
#[derive(Clone, Debug)]
enum Undo {
    PopFront,
    PopBack,
    PushFront(Element),
    PushBack(Element),
}

#[derive(Clone, Debug)]
pub(crate) struct List {
    elements: VecDeque<Element>,
    undo: Option<Vec<Undo>>,
    owned_bytes: usize,
}

impl List {
    /// Nothing yet. The seed makes it unpredictable from outside how it is kept.
    pub(crate) fn new(_seed: u64) -> Self {
        Self { elements: VecDeque::new(), undo: None, owned_bytes: 0 }
    }

    pub(crate) fn len(&self) -> usize {
        self.elements.len()
    }

    pub(crate) fn push_front(&mut self, element: &[u8]) {
        self.note(|| Undo::PopFront);
        self.owned_bytes += element.len();
        self.elements.push_front(element.into());
    }

    pub(crate) fn push_back(&mut self, element: &[u8]) {
        self.note(|| Undo::PopBack);
        self.owned_bytes += element.len();
        self.elements.push_back(element.into());
    }

    pub(crate) fn pop_front(&mut self) -> Option<Box<[u8]>> {
        let element = self.elements.pop_front()?;
        self.owned_bytes -= element.len();
        self.note(|| Undo::PushFront(element.clone()));
        Some(element)
    }

    pub(crate) fn pop_back(&mut self) -> Option<Box<[u8]>> {
        let element = self.elements.pop_back()?;
        self.owned_bytes -= element.len();
        self.note(|| Undo::PushBack(element.clone()));
        Some(element)
    }

    fn note(&mut self, inverse: impl FnOnce() -> Undo) {
        if let Some(undo) = &mut self.undo {
            undo.push(inverse());
        }
    }

    /// What OBJECT ENCODING answers: Redis's name for how it would keep such a collection.
    #[expect(clippy::unused_self, reason = "it will depend on what is held")]
    pub(crate) fn encoding(&self) -> &'static str {
        "quicklist"
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        size_of::<Self>() + self.elements.capacity() * size_of::<Element>() + self.owned_bytes
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
        for inverse in self.undo.take().unwrap_or_default().into_iter().rev() {
            match inverse {
                Undo::PopFront => drop(self.pop_front()),
                Undo::PopBack => drop(self.pop_back()),
                Undo::PushFront(element) => self.push_front(&element),
                Undo::PushBack(element) => self.push_back(&element),
            }
        }
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        put_len(self.len(), out);
        for element in &self.elements {
            put_bytes(element, out);
        }
    }

    pub(crate) fn decode(bytes: &[u8], seed: u64) -> Result<Self, DecodeError> {
        let mut pieces = Pieces(bytes);
        let mut list = Self::new(seed);
        for _ in 0..pieces.len()? {
            list.push_back(pieces.bytes()?);
        }
        pieces.end().map(|()| list)
    }
}
