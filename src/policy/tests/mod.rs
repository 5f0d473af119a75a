//! Tests of the room as a whole: documents, matching, the book.
//!
//! The moment is always [`NOW`]; nothing here reads a clock.

mod book;
mod documents;
mod matching;
mod warnings;

use super::{Book, Change, Options, Unmatched};
use crate::size::Bytes;
use crate::time::Timestamp;

/// The first of January 2026.
const NOW: Timestamp = Timestamp::from_millis(1_767_225_600_000);

const OPTIONS: Options =
    Options { unmatched: Unmatched::Allow, document_bytes_max: Bytes::new(1 << 20) };

fn put(source: &str, text: &str, revision: u64) -> Change {
    let text = bytes::Bytes::copy_from_slice(text.as_bytes());
    Change::Put { source: source.into(), tenant: Some(source.into()), text, revision }
}

/// A book in which one document is in force.
fn book(text: &str) -> Book {
    let mut book = Book::new(&OPTIONS);
    let applied = book.apply(vec![put("source", text, 1)], NOW);
    assert!(applied.refused.is_empty(), "{:?}", applied.refused);
    book
}
