//! Writing a snapshot or a journal: whole frames, one behind the other.
//!
//! Invariant: what could not be written whole is taken back, so the next frame, or the same one
//! again, follows the last whole one.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use super::frame::{FrameBuffer, Kind, PREAMBLE_BYTES};

/// A file being written.
#[derive(Debug)]
pub(super) struct Output {
    file: File,
    place: u64,
    /// Bytes that the system may still hold back from the disk.
    unsynced_bytes: u64,
}

impl Output {
    /// Begins a file that is not there yet.
    pub(super) fn create(path: &Path, kind: Kind) -> io::Result<Self> {
        let file = OpenOptions::new().write(true).create_new(true).open(path)?;
        file.write_all_at(&kind.preamble(), 0)?;
        let place = PREAMBLE_BYTES as u64;
        Ok(Self { file, place, unsynced_bytes: place })
    }

    /// Over what is there, for tests of what fails.
    #[cfg(test)]
    pub(super) fn over(file: File) -> Self {
        Self { file, place: 0, unsynced_bytes: 0 }
    }

    pub(super) fn bytes(&self) -> u64 {
        self.place
    }

    pub(super) fn unsynced_bytes(&self) -> u64 {
        self.unsynced_bytes
    }

    pub(super) fn append(&mut self, frame: &mut FrameBuffer) -> io::Result<()> {
        let bytes = frame.seal(self.place);
        let written = self.file.write_all_at(bytes, self.place);
        if written.is_err() {
            // Where this fails too, a reader takes the rest for what it is: a torn end.
            drop(self.file.set_len(self.place));
        }
        written?;
        self.place += bytes.len() as u64;
        self.unsynced_bytes += bytes.len() as u64;
        Ok(())
    }

    /// Returns once all that was appended would outlive a loss of power.
    pub(super) fn sync(&mut self) -> io::Result<()> {
        self.file.sync_data()?;
        self.unsynced_bytes = 0;
        Ok(())
    }
}
