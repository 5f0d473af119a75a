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

/// What the libraries say, and what people say.
const WORDINGS: [(&str, &str); 4] = [
    ("invalid type: unit value", "nothing is written here"),
    ("expected a boolean", "expected true or false"),
    ("` as u128", "`"),
    ("` as i128", "`"),
];

/// More known words than these are no longer a line that anybody reads.
const KNOWN_SHOWN_MAX: usize = 10;

/// The libraries put the place into the message, which we have in front, and know no nearest word.
fn plain(message: &str, line: usize, column: usize) -> String {
    let place = format!(" at line {line} column {column}");
    let mut text = message.replacen(&place, "", 1);
    for (theirs, ours) in WORDINGS {
        text = text.replace(theirs, ours);
    }
    if text.ends_with("more than one document is not supported") {
        return "a second document begins here or below; write one".to_owned();
    }
    with_nearest(&text).unwrap_or(text)
}

/// Puts the nearest known word in front of the list of those that are known.
fn with_nearest(text: &str) -> Option<String> {
    let (before, rest) = text.split_once("unknown field `")?;
    let (word, known) = rest.split_once("`, expected ")?;
    if word == "<<" {
        return Some(format!("{before}merge keys (`<<`) are not read; write the fields out"));
    }
    let known: Vec<&str> = known.split('`').skip(1).step_by(2).collect();
    let nearest = nearest(word, known.iter().copied());
    let text = format!("{before}unknown field `{word}`, the nearest is `{nearest}`");
    if known.len() > KNOWN_SHOWN_MAX {
        return Some(text);
    }
    Some(format!("{text} (known: {})", known.join(", ")))
}

/// The known word that takes the fewest strokes to come from `word`; empty where none is known.
pub(crate) fn nearest<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> &'a str {
    known.min_by_key(|known| strsim::osa_distance(known, word)).unwrap_or_default()
}
