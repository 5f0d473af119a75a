//! The format of snapshots and journals: a preamble, then frames.
//!
//! ```text
//! preamble  "TOLLGATE"  kind 'S' or 'J'  version
//! frame     marker(4)  length(8)  sum of the payload(8)  sum of all this(4)  payload
//! payload   what(1)  at_us(8)  up_us(8)  body
//! ```
//!
//! Numbers are little-endian. `at` is the server's clock and `up` the time since the machine
//! started, when the frame was made. Sums are XXH3, seeded with the frame's place in its file: a
//! frame that was moved, or that a client has stored as a value, is none. A broken frame is
//! skipped up to the next whole one, for records say what is so and need no other before them.

use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::time::{Duration, Timestamp};

pub(super) const MAGIC: &[u8; 8] = b"TOLLGATE";

/// The version that is written; this and all before it are read.
pub(super) const VERSION: u8 = 1;

pub(super) const PREAMBLE_BYTES: usize = 10;
pub(super) const HEADER_BYTES: usize = 24;

/// Unlikely in text, and not in UTF-8 at all.
pub(super) const MARKER: [u8; 4] = [0xF5, b'T', b'G', 0xF6];

/// Of the payload before its body.
const MOMENT_BYTES: usize = 17;

/// What a file is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Kind {
    Snapshot,
    Journal,
}

impl Kind {
    pub(super) const ALL: [Self; 2] = [Self::Snapshot, Self::Journal];

    const fn tag(self) -> u8 {
        match self {
            Self::Snapshot => b'S',
            Self::Journal => b'J',
        }
    }

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Snapshot => "snapshot",
            Self::Journal => "journal",
        }
    }

    pub(super) fn preamble(self) -> [u8; PREAMBLE_BYTES] {
        let mut preamble = [0; PREAMBLE_BYTES];
        preamble.split_at_mut(MAGIC.len()).0.copy_from_slice(MAGIC);
        preamble[MAGIC.len()] = self.tag();
        preamble[MAGIC.len() + 1] = VERSION;
        preamble
    }

    pub(super) fn of_tag(tag: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.tag() == tag)
    }
}

/// What a frame's body is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum What {
    /// Who writes the file: the boot of the machine, then the program's version as text.
    Head,
    /// Records of the engine.
    Records,
    /// The text of a script that was loaded.
    Script,
    /// All scripts are forgotten.
    ScriptsFlushed,
    /// All libraries of functions there are, as FUNCTION DUMP writes them.
    Libraries,
    /// Nothing comes behind: a snapshot is whole, a journal's server has stopped in order.
    End,
    /// Nothing happened, but time has passed.
    Time,
}

impl What {
    const ALL: [Self; 7] = [
        Self::Head,
        Self::Records,
        Self::Script,
        Self::ScriptsFlushed,
        Self::Libraries,
        Self::End,
        Self::Time,
    ];

    /// Never used again for another.
    const fn tag(self) -> u8 {
        match self {
            Self::Head => 1,
            Self::Records => 2,
            Self::Script => 3,
            Self::ScriptsFlushed => 4,
            Self::Libraries => 5,
            Self::End => 6,
            Self::Time => 7,
        }
    }
}

/// When a frame was made, by both clocks.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Moment {
    pub(super) at: Timestamp,
    pub(super) up: Duration,
}

/// A frame in the making; [`FrameBuffer::seal`] makes it fit for its place.
#[derive(Debug)]
pub(super) struct FrameBuffer(Vec<u8>);

impl FrameBuffer {
    pub(super) fn new(what: What) -> Self {
        let mut bytes = vec![0; HEADER_BYTES + MOMENT_BYTES];
        bytes[HEADER_BYTES] = what.tag();
        Self(bytes)
    }

    pub(super) fn with(what: What, body: &[u8]) -> Self {
        let mut frame = Self::new(what);
        frame.body().extend_from_slice(body);
        frame
    }

    /// Says when it was made: not before anything that is in it.
    pub(super) fn stamp(&mut self, moment: Moment) {
        let (at, up) = (moment.at.as_micros(), moment.up.as_micros());
        self.0[HEADER_BYTES + 1..HEADER_BYTES + 9].copy_from_slice(&at.to_le_bytes());
        self.0[HEADER_BYTES + 9..HEADER_BYTES + 17].copy_from_slice(&up.to_le_bytes());
    }

    /// To be appended to.
    pub(super) fn body(&mut self) -> &mut Vec<u8> {
        &mut self.0
    }

    pub(super) fn body_bytes(&self) -> usize {
        self.0.len() - HEADER_BYTES - MOMENT_BYTES
    }

    /// The whole frame, as it is written at this place.
    pub(super) fn seal(&mut self, place: u64) -> &[u8] {
        let payload = &self.0[HEADER_BYTES..];
        let (length, sum) = (payload.len() as u64, xxh3_64_with_seed(payload, place));
        self.0[..4].copy_from_slice(&MARKER);
        self.0[4..12].copy_from_slice(&length.to_le_bytes());
        self.0[12..20].copy_from_slice(&sum.to_le_bytes());
        let own = header_sum(&self.0[..20], place);
        self.0[20..24].copy_from_slice(&own);
        &self.0
    }
}

/// A frame as it was read.
#[derive(Debug)]
pub(super) struct Frame<'b> {
    pub(super) what: What,
    pub(super) moment: Moment,
    pub(super) body: &'b [u8],
}

/// What a header says of its payload.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Header {
    pub(super) length: u64,
    sum: u64,
}

impl Header {
    /// Nothing where this is no header of a frame at this place.
    pub(super) fn read(bytes: &[u8; HEADER_BYTES], place: u64) -> Option<Self> {
        let (head, own) = bytes.split_at(20);
        if head[..4] != MARKER || own != header_sum(head, place) {
            return None;
        }
        let number = |at: usize| {
            head[at..at + 8].iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte))
        };
        Some(Self { length: number(4), sum: number(12) })
    }

    /// Nothing where the payload is not the one that was written at this place.
    pub(super) fn open<'b>(&self, payload: &'b [u8], place: u64) -> Option<Frame<'b>> {
        if xxh3_64_with_seed(payload, place) != self.sum {
            return None;
        }
        let (what, rest) = payload.split_first()?;
        let what = What::ALL.into_iter().find(|one| one.tag() == *what)?;
        let (at_us, rest) = rest.split_first_chunk()?;
        let (up_us, body) = rest.split_first_chunk()?;
        let moment = Moment {
            at: Timestamp::from_micros(u64::from_le_bytes(*at_us)),
            up: Duration::from_micros(u64::from_le_bytes(*up_us)),
        };
        Some(Frame { what, moment, body })
    }
}

fn header_sum(head: &[u8], place: u64) -> [u8; 4] {
    (xxh3_64_with_seed(head, place) as u32).to_le_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sealed(place: u64) -> Vec<u8> {
        let moment = Moment { at: Timestamp::from_millis(7), up: Duration::from_secs(3) };
        let mut frame = FrameBuffer::with(What::Script, b"return 1");
        frame.stamp(moment);
        frame.seal(place).to_vec()
    }

    fn header(frame: &[u8], place: u64) -> Option<Header> {
        Header::read(frame.first_chunk()?, place)
    }

    #[test]
    fn frame_is_read_at_its_place_and_nowhere_else() {
        let frame = sealed(10);
        let found = header(&frame, 10).expect("it is its place");
        assert_eq!(found.length, (frame.len() - HEADER_BYTES) as u64);
        let opened = found.open(&frame[HEADER_BYTES..], 10).expect("it is whole");
        assert_eq!((opened.what, opened.body), (What::Script, &b"return 1"[..]));
        assert_eq!(
            (opened.moment.at, opened.moment.up.as_millis()),
            (Timestamp::from_millis(7), 3_000)
        );
        assert_eq!(header(&frame, 11), None);
        assert!(found.open(&frame[HEADER_BYTES..], 11).is_none());
    }

    #[test]
    fn any_bit_that_is_changed_is_noticed() {
        let frame = sealed(10);
        for bit in 0..frame.len() * 8 {
            let mut changed = frame.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            let opened = header(&changed, 10)
                .and_then(|header| header.open(&changed[HEADER_BYTES..], 10).map(|_| ()));
            assert_eq!(opened, None, "bit {bit}");
        }
    }
}
