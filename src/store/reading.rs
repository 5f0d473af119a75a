//! Reading a snapshot or a journal: frame by frame, past what is broken.
//!
//! A file is read once, from front to end, through one buffer that grows to its longest frame. A
//! frame that cannot be read is damage: what is skipped reaches to the next whole frame, or to
//! the end of the file, where it is the mark of a write that a crash has cut short.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use memchr::memmem;

use super::error::Error;
use super::frame::{Frame, HEADER_BYTES, Header, Kind, MAGIC, MARKER, PREAMBLE_BYTES, VERSION};

/// What is read from the disk at once.
const READ_BYTES: usize = 256 << 10;

/// A stretch of a file that no frame is in.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Damage {
    pub(super) at: u64,
    pub(super) bytes: u64,
    /// It reaches to the end of the file.
    pub(super) is_tail: bool,
}

/// A file being read.
#[derive(Debug)]
pub(super) struct Reading {
    path: PathBuf,
    file: BufReader<File>,
    length: u64,
    at: u64,
    payload: Vec<u8>,
    damage: Vec<Damage>,
}

impl Reading {
    /// Opens a file that should be of this kind.
    pub(super) fn open(path: &Path, kind: Kind) -> Result<Self, Error> {
        let (reading, found) = Self::open_any(path)?;
        match found {
            Some(found) if found != kind => {
                let found = format!("a {} under the name of a {}", found.name(), kind.name());
                Err(Error::Foreign { path: path.to_owned(), found })
            }
            Some(_) | None => Ok(reading),
        }
    }

    /// Opens a file and reads its preamble. One that ends before its preamble does is damaged
    /// from the first byte, and of no kind.
    pub(super) fn open_any(path: &Path) -> Result<(Self, Option<Kind>), Error> {
        let failed = |source| Error::Read { path: path.to_owned(), source };
        let foreign = |found: &str| Error::Foreign { path: path.to_owned(), found: found.into() };
        let mut file = File::open(path).map_err(failed)?;
        let length = file.metadata().map_err(failed)?.len();
        let mut preamble = Vec::new();
        let taken = (&mut file).take(PREAMBLE_BYTES as u64).read_to_end(&mut preamble);
        taken.map_err(failed)?;
        let known = preamble.len().min(MAGIC.len());
        if preamble[..known] != MAGIC[..known] {
            let is_dump = preamble.starts_with(b"REDIS");
            return Err(foreign(if is_dump { "a dump of Redis" } else { "no file of Tollgate" }));
        }
        let mut reading = Self {
            path: path.to_owned(),
            file: BufReader::with_capacity(READ_BYTES, file),
            length,
            at: preamble.len() as u64,
            payload: Vec::new(),
            damage: Vec::new(),
        };
        let &[_, _, _, _, _, _, _, _, tag, version] = preamble.as_slice() else {
            if length > 0 {
                reading.damage.push(Damage { at: 0, bytes: length, is_tail: true });
            }
            return Ok((reading, None));
        };
        if version > VERSION {
            return Err(Error::Newer { path: reading.path, version });
        }
        match Kind::of_tag(tag) {
            Some(kind) => Ok((reading, Some(kind))),
            None => Err(foreign("a file of Tollgate of an unknown kind")),
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// What could not be read until here.
    pub(super) fn damage(&self) -> &[Damage] {
        &self.damage
    }

    /// Bytes of the file.
    pub(super) fn length(&self) -> u64 {
        self.length
    }

    /// The next whole frame and its place; nothing at the end.
    pub(super) fn next(&mut self) -> Result<Option<(u64, Frame<'_>)>, Error> {
        let failed = |source| Error::Read { path: self.path.clone(), source };
        let found = match find(&mut self.file, self.at, self.length, &mut self.payload) {
            Ok(found) => found,
            Err(source) => return Err(failed(source)),
        };
        let place = found.as_ref().map_or(self.length, |(place, _)| *place);
        if place > self.at {
            let is_tail = found.is_none();
            self.damage.push(Damage { at: self.at, bytes: place - self.at, is_tail });
        }
        let Some((place, header)) = found else {
            self.at = self.length;
            return Ok(None);
        };
        self.at = place + HEADER_BYTES as u64 + header.length;
        let frame = header.open(&self.payload, place);
        Ok(frame.map(|frame| (place, frame)))
    }
}

/// The first whole frame from `at` on; its payload is read.
fn find(
    file: &mut BufReader<File>,
    at: u64,
    length: u64,
    payload: &mut Vec<u8>,
) -> io::Result<Option<(u64, Header)>> {
    let mut place = at;
    loop {
        if let Some(header) = try_at(file, (place, length), payload)? {
            return Ok(Some((place, header)));
        }
        let Some(next) = next_marker(file, place + 1, length)? else { return Ok(None) };
        file.seek(SeekFrom::Start(next))?;
        place = next;
    }
}

/// The header of a whole frame at this place, where the file stands; its payload is read.
fn try_at(
    file: &mut BufReader<File>,
    (place, length): (u64, u64),
    payload: &mut Vec<u8>,
) -> io::Result<Option<Header>> {
    let left = length.saturating_sub(place);
    let mut head = [0; HEADER_BYTES];
    if left < HEADER_BYTES as u64 {
        return Ok(None);
    }
    file.read_exact(&mut head)?;
    let Some(header) = Header::read(&head, place) else { return Ok(None) };
    if header.length > left - HEADER_BYTES as u64 {
        return Ok(None);
    }
    payload.clear();
    // No more than the file has.
    file.take(header.length).read_to_end(payload)?;
    Ok(header.open(payload, place).is_some().then_some(header))
}

/// Where a frame might begin, from a place on.
fn next_marker(file: &mut BufReader<File>, from: u64, length: u64) -> io::Result<Option<u64>> {
    let (mut window, mut begins) = (Vec::new(), from);
    file.seek(SeekFrom::Start(from.min(length)))?;
    loop {
        let read = file.take(READ_BYTES as u64).read_to_end(&mut window)?;
        if let Some(at) = memmem::find(&window, &MARKER) {
            return Ok(Some(begins + at as u64));
        }
        if read == 0 {
            return Ok(None);
        }
        // A marker may lie across two windows.
        let kept = window.len().min(MARKER.len() - 1);
        begins += (window.len() - kept) as u64;
        window.drain(..window.len() - kept);
    }
}
