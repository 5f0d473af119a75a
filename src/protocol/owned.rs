//! Arguments with a buffer of their own: requests that are kept (a transaction's, a blocked
//! client's) or made out of words (a script's).

use super::args::{Args, Span};
use super::inline::split;

#[derive(Clone, Debug, Default)]
pub(crate) struct OwnedArgs {
    bytes: Vec<u8>,
    spans: Vec<Span>,
}

impl OwnedArgs {
    #[cfg(test)]
    pub(crate) fn of<T: AsRef<[u8]>>(words: impl IntoIterator<Item = T>) -> Self {
        let mut owned = Self::default();
        for word in words {
            owned.push(word.as_ref());
        }
        owned
    }

    /// The words of a line, with the quotes of inline commands; `None` where one is not closed.
    pub(crate) fn split(line: &[u8]) -> Option<Self> {
        let mut owned = Self::default();
        split(line, &mut owned.bytes, &mut owned.spans).ok()?;
        Some(owned)
    }

    /// The same words in a buffer of their own, and no larger than they are.
    pub(crate) fn copy(args: Args<'_>) -> Self {
        let bytes = args.iter().map(<[u8]>::len).sum();
        let mut owned =
            Self { bytes: Vec::with_capacity(bytes), spans: Vec::with_capacity(args.len()) };
        args.iter().for_each(|word| owned.push(word));
        owned
    }

    /// Adds a word. All words together are bounded by what a request may take.
    pub(crate) fn push(&mut self, word: &[u8]) {
        let start = self.bytes.len() as u32;
        self.bytes.extend_from_slice(word);
        self.spans.push(Span { start, end: self.bytes.len() as u32 });
    }

    /// Forgets all words, and keeps the room.
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.spans.clear();
    }

    /// What such words take in memory.
    pub(crate) fn bytes_of(args: Args<'_>) -> usize {
        args.iter().map(|word| word.len() + size_of::<Span>()).sum()
    }

    /// What the words take in memory.
    pub(crate) fn heap_bytes(&self) -> usize {
        self.bytes.capacity() + self.spans.capacity() * size_of::<Span>()
    }

    pub(crate) fn as_args(&self) -> Args<'_> {
        Args::new(&self.bytes, &self.spans)
    }
}
