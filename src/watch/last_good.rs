//! The last good documents on disk: what a start goes by while their source is away.
//!
//! The file is text: a line with its name and version; for each document a line with its revision
//! and lengths, its source and its text; and a line with their number. Written as a whole
//! (`disk`), so one that does not end as it should is not ours, and is refused as a whole.
//!
//! Reading is bounded by what the replica would hold.

use std::io;
use std::path::Path;

use bytes::Bytes;
use memchr::memchr;

use super::disk;
use super::replica::{DOCUMENTS_BYTES_MAX, DOCUMENTS_MAX};

const HEAD: &str = "tollgate policies 1";

/// Lines around a document: three numbers of at most twenty digits, words and line ends.
const AROUND_BYTES_MAX: usize = 80;

/// Bytes of the whole file.
const FILE_BYTES_MAX: usize = DOCUMENTS_BYTES_MAX + DOCUMENTS_MAX * AROUND_BYTES_MAX;

/// A document as it was when it was last in force.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Kept {
    pub(super) source: Box<str>,
    pub(super) revision: u64,
    pub(super) text: Bytes,
}

#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error("it is not a file of last good policies, or damaged: see byte {byte}")]
    Malformed { byte: usize },
}

pub(super) fn write(path: &Path, kept: &[Kept]) -> io::Result<()> {
    let texts: usize = kept.iter().map(|kept| kept.source.len() + kept.text.len()).sum();
    let mut bytes = Vec::with_capacity(texts + (kept.len() + 2) * AROUND_BYTES_MAX);
    bytes.extend_from_slice(format!("{HEAD}\n").as_bytes());
    for Kept { source, revision, text } in kept {
        let head = format!("document {revision} {} {}\n{source}\n", source.len(), text.len());
        bytes.extend_from_slice(head.as_bytes());
        bytes.extend_from_slice(text);
        bytes.push(b'\n');
    }
    bytes.extend_from_slice(format!("end {}\n", kept.len()).as_bytes());
    disk::replace(path, &bytes)
}

/// What was kept; nothing where there is no such file.
pub(super) fn read(path: &Path) -> Result<Vec<Kept>, Error> {
    match disk::read(path, FILE_BYTES_MAX) {
        Ok(bytes) => parse(bytes.into()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error.into()),
    }
}

fn parse(bytes: Bytes) -> Result<Vec<Kept>, Error> {
    let mut cursor = Cursor { bytes, at: 0 };
    let malformed = |cursor: &Cursor| Error::Malformed { byte: cursor.at };
    let mut kept = Vec::new();
    if cursor.line().as_deref() != Some(HEAD) {
        return Err(Error::Malformed { byte: 0 });
    }
    loop {
        let line = cursor.line().ok_or_else(|| malformed(&cursor))?;
        let words: Vec<&str> = line.split(' ').collect();
        match *words {
            ["document", revision, source_bytes, text_bytes] => {
                let document = cursor.document(revision, (source_bytes, text_bytes));
                kept.push(document.ok_or_else(|| malformed(&cursor))?);
            }
            ["end", count] if count == kept.len().to_string() && cursor.is_at_end() => {
                return Ok(kept);
            }
            _ => return Err(malformed(&cursor)),
        }
    }
}

struct Cursor {
    bytes: Bytes,
    at: usize,
}

impl Cursor {
    fn is_at_end(&self) -> bool {
        self.at == self.bytes.len()
    }

    /// The next line without its end.
    fn line(&mut self) -> Option<String> {
        let length = memchr(b'\n', &self.bytes[self.at..])?;
        let line = self.take(length)?;
        self.at += 1;
        String::from_utf8(line.into()).ok()
    }

    fn document(&mut self, revision: &str, lengths: (&str, &str)) -> Option<Kept> {
        let source = self.lengthy(lengths.0.parse().ok()?)?;
        let text = self.lengthy(lengths.1.parse().ok()?)?;
        let source = String::from_utf8(source.into()).ok()?.into_boxed_str();
        Some(Kept { source, revision: revision.parse().ok()?, text })
    }

    /// So many bytes, and the line end behind them.
    fn lengthy(&mut self, length: usize) -> Option<Bytes> {
        let bytes = self.take(length)?;
        (self.take(1)?[0] == b'\n').then_some(bytes)
    }

    fn take(&mut self, length: usize) -> Option<Bytes> {
        let end = self.at.checked_add(length).filter(|end| *end <= self.bytes.len())?;
        let taken = self.bytes.slice(self.at..end);
        self.at = end;
        Some(taken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept() -> Vec<Kept> {
        let document = |source: &str, revision, text: &'static str| Kept {
            source: source.into(),
            revision,
            text: Bytes::from_static(text.as_bytes()),
        };
        vec![
            document("/policies/a", 7, "name: a\nrules: []\n"),
            document("/policies/b c", u64::MAX, ""),
            document("é", 0, "end 3\n\ndocument 1 2 3\n"),
        ]
    }

    #[test]
    fn what_was_written_is_read_back() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("last");
        assert_eq!(read(&path).expect("nothing is there"), []);
        write(&path, &kept()).expect("it can be written");
        assert_eq!(read(&path).expect("it is whole"), kept());
        write(&path, &[]).expect("it can be written");
        assert_eq!(read(&path).expect("it is whole"), []);
    }

    #[test]
    fn no_beginning_of_the_file_is_taken_for_the_whole() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("last");
        write(&path, &kept()).expect("it can be written");
        let whole = std::fs::read(&path).expect("it is there");
        for length in 0..whole.len() {
            let parsed = parse(Bytes::copy_from_slice(&whole[..length]));
            assert!(matches!(parsed, Err(Error::Malformed { .. })), "{length} bytes");
        }
        let longer = [&whole[..], b"x"].concat();
        assert!(parse(longer.into()).is_err());
    }

    #[test]
    fn lengths_that_lead_past_the_end_are_refused() {
        for lengths in ["1 99", "99 1", "18446744073709551615 1", "-1 1", "1 x"] {
            let text = format!("{HEAD}\ndocument 1 {lengths}\na\nb\nend 1\n");
            assert!(parse(text.into()).is_err(), "{lengths}");
        }
    }
}
