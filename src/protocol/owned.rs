//! Arguments with a buffer of their own: requests that tests make out of words.

use super::args::{Args, Span};

#[derive(Debug, Default)]
pub(crate) struct OwnedArgs {
    bytes: Vec<u8>,
    spans: Vec<Span>,
}

impl OwnedArgs {
    pub(crate) fn of(words: &[&[u8]]) -> Self {
        let mut owned = Self::default();
        for word in words {
            let start = owned.bytes.len() as u32;
            owned.bytes.extend_from_slice(word);
            owned.spans.push(Span { start, end: owned.bytes.len() as u32 });
        }
        owned
    }

    pub(crate) fn as_args(&self) -> Args<'_> {
        Args::new(&self.bytes, &self.spans)
    }
}
