//! What a file holds, and where it is broken: for a person who looks, not for a start.

use std::collections::BTreeMap;
use std::path::Path;

use super::error::Error;
use super::frame::{Frame, Kind, What};
use super::reading::Reading;
use crate::engine::{BUCKETS, Record};
use crate::time::{Duration, Timestamp};

/// What is found in a snapshot or a journal.
#[derive(Debug, Default)]
pub(crate) struct Inspection {
    /// `snapshot`, `journal`, or nothing where the file ends before it says so.
    pub(crate) kind: Option<&'static str>,
    pub(crate) bytes: u64,
    pub(crate) frames: u64,
    /// The version of the program that wrote it.
    pub(crate) version: String,
    /// The server's time of the first and the last frame.
    pub(crate) from: Option<Timestamp>,
    pub(crate) to: Option<Timestamp>,
    /// The writer has said that nothing comes behind.
    pub(crate) is_ended: bool,
    /// Records that store a key, by where it is (a database, or the buckets of policies) and what.
    pub(crate) stored: BTreeMap<(String, &'static str), u64>,
    pub(crate) removed: u64,
    pub(crate) flushed: u64,
    pub(crate) scripts: u64,
    pub(crate) library_dumps: u64,
    /// Records that cannot be read though their frame is whole.
    pub(crate) unreadable: u64,
    /// Place and length of what is in no frame, and whether it reaches to the end.
    pub(crate) damage: Vec<(u64, u64, bool)>,
}

/// Looks a file over. `tell` is called with how far it has come.
pub(crate) fn inspect(path: &Path, mut tell: impl FnMut(u64, u64)) -> Result<Inspection, Error> {
    let (mut reading, kind) = Reading::open_any(path)?;
    let bytes = reading.length();
    let kind = kind.map(Kind::name);
    let mut found = Inspection { kind, bytes, ..Inspection::default() };
    while let Some((place, frame)) = reading.next()? {
        found.add(&frame);
        tell(place, bytes);
    }
    let damage = reading.damage().iter();
    found.damage = damage.map(|part| (part.at, part.bytes, part.is_tail)).collect();
    Ok(found)
}

impl Inspection {
    /// How long the writer wrote.
    pub(crate) fn span(&self) -> Duration {
        match (self.from, self.to) {
            (Some(from), Some(to)) => to.since(from),
            (None, _) | (_, None) => Duration::ZERO,
        }
    }

    /// Whether a start could take all of it over. A journal need not be ended: its server may
    /// still run.
    pub(crate) fn is_whole(&self) -> bool {
        let ends = self.kind != Some("snapshot") || self.is_ended;
        self.damage.is_empty() && self.unreadable == 0 && ends && self.kind.is_some()
    }

    fn add(&mut self, frame: &Frame<'_>) {
        self.frames += 1;
        self.from.get_or_insert(frame.moment.at);
        self.to = self.to.max(Some(frame.moment.at));
        self.is_ended = frame.what == What::End;
        match frame.what {
            What::Head => {
                let text = String::from_utf8_lossy(frame.body);
                text.lines().nth(1).unwrap_or_default().clone_into(&mut self.version);
            }
            What::Records => self.add_records(frame.body),
            What::Script => self.scripts += 1,
            What::Libraries => self.library_dumps += 1,
            What::ScriptsFlushed | What::End | What::Time => {}
        }
    }

    fn add_records(&mut self, mut body: &[u8]) {
        loop {
            match Record::next(&mut body) {
                Ok(Some(record)) => self.add_record(&record),
                Ok(None) => return,
                Err(_) => {
                    self.unreadable += 1;
                    return;
                }
            }
        }
    }

    fn add_record(&mut self, record: &Record<'_>) {
        match record {
            Record::Removed { .. } => self.removed += 1,
            Record::Flushed { .. } => self.flushed += 1,
            Record::Stored { db, .. } => {
                let is_bucket = usize::from(*db) == BUCKETS;
                let place = if is_bucket { "policies".to_owned() } else { format!("db{db}") };
                match record.type_name() {
                    Some(name) => *self.stored.entry((place, name)).or_default() += 1,
                    None => self.unreadable += 1,
                }
            }
        }
    }
}
