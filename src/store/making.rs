//! A snapshot in the making: a walk over every shard, in short steps between the other work.
//!
//! What the walk has passed may change, and what it has not come to may move before it. So what
//! is collected of changes meanwhile goes into the snapshot, too, where it was collected; read
//! from front to end, the last word on each key is the right one. No copy of anything is kept:
//! the extra memory is one frame.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::frame::{FrameBuffer, Kind, Moment, What};
use super::output::Output;
use crate::commands::{SaveAnswer, Service};
use crate::engine::{Place, Step};
use crate::time::Timestamp;

/// A frame is written once its body is this long.
pub(super) const FRAME_BYTES: usize = 256 << 10;

/// Steps of the walk in one go: some milliseconds.
const SLICE_STEPS: usize = 16;

/// Bytes that are given to the disk at once, so that the end of a large snapshot is not one long
/// wait for it.
const SYNC_BYTES: u64 = 32 << 20;

/// What a snapshot is made for.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Purpose {
    /// It begins a new journal.
    Number(u64),
    /// A file of its own, which must not be there yet.
    Backup(PathBuf),
}

/// A snapshot that is being written.
pub(super) struct Making {
    pub(super) purpose: Purpose,
    /// By the server's clock, and by the one that paces.
    pub(super) began: (Timestamp, Timestamp),
    /// Without rests: somebody waits for it.
    pub(super) is_urgent: bool,
    pub(super) answers: Vec<SaveAnswer>,
    path: PathBuf,
    output: Output,
    next: (usize, Place),
    /// A change could not be written into it.
    failed: Option<io::Error>,
}

impl Making {
    pub(super) fn begin(
        path: PathBuf,
        purpose: Purpose,
        began: (Timestamp, Timestamp),
    ) -> io::Result<Self> {
        // What a crash has left there: nobody else writes under this name.
        drop(fs::remove_file(&path));
        let output = Output::create(&path, Kind::Snapshot)?;
        let (next, answers) = ((0, Place::default()), Vec::new());
        Ok(Self { purpose, began, is_urgent: false, answers, path, output, next, failed: None })
    }

    pub(super) fn bytes(&self) -> u64 {
        self.output.bytes()
    }

    /// A frame that belongs to it, whoever else gets it too.
    pub(super) fn put(&mut self, frame: &mut FrameBuffer) {
        if self.failed.is_none() {
            self.failed = self.output.append(frame).err();
        }
    }

    /// Goes on for a bounded while. Returns whether the walk has seen everything.
    pub(super) fn walk(&mut self, service: &Service, moment: Moment) -> io::Result<bool> {
        let engine = service.engine();
        let mut frame = FrameBuffer::new(What::Records);
        for _ in 0..SLICE_STEPS {
            let (shard, _) = self.next;
            if shard == engine.shards() {
                break;
            }
            match engine.walk_shard(self.next, moment.at, frame.body()) {
                Step::More(place) => self.next = (shard, place),
                Step::Done => self.next = (shard + 1, Place::default()),
                // A script has it; it is its turn again in the next slice.
                Step::Held => break,
            }
            if frame.body_bytes() >= FRAME_BYTES {
                frame.stamp(moment);
                self.put(&mut frame);
                frame = FrameBuffer::new(What::Records);
            }
        }
        if frame.body_bytes() > 0 {
            frame.stamp(moment);
            self.put(&mut frame);
        }
        self.failed.take().map_or(Ok(()), Err)?;
        if self.output.unsynced_bytes() >= SYNC_BYTES {
            self.output.sync()?;
        }
        Ok(self.next.0 == engine.shards())
    }

    /// Writes the end, and puts the file where it belongs. Its folder is still to be synced.
    pub(super) fn finish(&mut self, moment: Moment, to: &Path) -> io::Result<()> {
        let mut end = FrameBuffer::new(What::End);
        end.stamp(moment);
        self.put(&mut end);
        self.failed.take().map_or(Ok(()), Err)?;
        self.output.sync()?;
        match self.purpose {
            Purpose::Number(_) => fs::rename(&self.path, to),
            // Unlike a rename, a link never takes another file's place.
            Purpose::Backup(_) => fs::hard_link(&self.path, to),
        }
    }
}

impl Drop for Making {
    /// What was not put where it belongs, or was put there under a second name, goes.
    fn drop(&mut self) {
        drop(fs::remove_file(&self.path));
    }
}
