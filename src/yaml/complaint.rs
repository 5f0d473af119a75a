//! What is wrong with a document and where, and the nearest right word.
//!
//! Lines and columns count from 1.

use std::fmt;

/// Why a document is refused: the place, and what would be right there.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Complaint {
    pub(crate) line: usize,
    pub(crate) column: usize,
    pub(crate) text: String,
}

impl Complaint {
    /// A complaint about the byte at an offset.
    pub(crate) fn at_byte(document: &[u8], at: usize, text: String) -> Self {
        let before = &document[..at];
        let line = memchr::memchr_iter(b'\n', before).count() + 1;
        let column = at - memchr::memrchr(b'\n', before).map_or(0, |newline| newline + 1) + 1;
        Self { line, column, text }
    }
}

impl fmt::Display for Complaint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.line, self.column, self.text)
    }
}

impl From<serde_yaml::Error> for Complaint {
    fn from(err: serde_yaml::Error) -> Self {
        let (line, column) = err.location().map_or((1, 1), |at| (at.line(), at.column()));
        Self { line, column, text: plain(&err.to_string(), line, column) }
    }
}

impl From<serde_json::Error> for Complaint {
    fn from(err: serde_json::Error) -> Self {
        let (line, column) = (err.line(), err.column());
        Self { line, column, text: plain(&err.to_string(), line, column) }
    }
}

/// The libraries end a message with the place, which we have in front, and know no nearest word.
fn plain(message: &str, line: usize, column: usize) -> String {
    let place = format!(" at line {line} column {column}");
    let text = message.strip_suffix(&place).unwrap_or(message);
    if text.contains("more than one document") {
        return "a second document begins here or below; write one".to_owned();
    }
    let text = text.replace("invalid type: unit value", "nothing is written here");
    with_nearest(&text).unwrap_or(text)
}

/// Puts the nearest known word in front of the list of those that are known.
fn with_nearest(text: &str) -> Option<String> {
    let (before, rest) = text.split_once("unknown field `")?;
    let (word, known) = rest.split_once("`, expected ")?;
    let known: Vec<&str> = known.split('`').skip(1).step_by(2).collect();
    let nearest = nearest(word, known.iter().copied());
    let known = known.join(", ");
    Some(format!("{before}unknown field `{word}`, the nearest is `{nearest}` (known: {known})"))
}

/// The known word that takes the fewest strokes to come from `word`; empty where none is known.
pub(crate) fn nearest<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> &'a str {
    known.min_by_key(|known| strsim::osa_distance(known, word)).unwrap_or_default()
}
