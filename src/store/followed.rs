//! Scripts and libraries of functions, as frames: all there are, or what is new since.

use std::collections::HashSet;

use super::frame::{FrameBuffer, What};
use crate::commands::Service;
use crate::lua::{Sha, dump_libraries};

/// What of the scripts and libraries has been written.
#[derive(Debug, Default)]
pub(super) struct Followed {
    scripts: HashSet<Sha>,
    flushes: u64,
    loads: u64,
    libraries: u64,
}

impl Followed {
    /// Everything is as it is on disk.
    pub(super) fn of(service: &Service) -> Self {
        let mut followed = Self::default();
        drop(followed.take_changes(service));
        followed
    }

    /// The frames of what has changed since the last time.
    pub(super) fn take_changes(&mut self, service: &Service) -> Vec<FrameBuffer> {
        let mut frames = Vec::new();
        let (scripts, libraries) = (service.scripts(), service.libraries());
        // Read before what they count: what comes in between is taken twice, and never missed.
        let (flushes, loads) = (scripts.generation(), scripts.loads());
        if flushes != self.flushes {
            self.scripts.clear();
            frames.push(FrameBuffer::new(What::ScriptsFlushed));
        }
        if (flushes, loads) != (self.flushes, self.loads) {
            for script in scripts.loaded() {
                if self.scripts.insert(*script.sha()) {
                    frames.push(FrameBuffer::with(What::Script, script.text()));
                }
            }
        }
        let generation = libraries.generation();
        if generation != self.libraries {
            frames.push(FrameBuffer::with(What::Libraries, &dump_libraries(libraries)));
        }
        (self.flushes, self.loads, self.libraries) = (flushes, loads, generation);
        frames
    }
}

/// The frames of all scripts and libraries there are.
pub(super) fn all(service: &Service) -> Vec<FrameBuffer> {
    let mut frames = Vec::new();
    for script in service.scripts().loaded() {
        frames.push(FrameBuffer::with(What::Script, script.text()));
    }
    let libraries = dump_libraries(service.libraries());
    frames.push(FrameBuffer::with(What::Libraries, &libraries));
    frames
}
