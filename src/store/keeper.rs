//! The keeper of the data folder: what its thread does, whenever it is called.
//!
//! Twice a second it collects what has changed, appends it to the journal and lets it reach the
//! disk; between, it goes on with a snapshot if one is being made. A disk that is full or broken
//! costs nobody a reply: what was collected waits, the rest stays marked in the engine, and it
//! is tried again each time.
//!
//! Invariants: a frame is written whole before the next is collected; nothing older is removed
//! before a newer snapshot would outlive a loss of power.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use tracing::{error, info, warn};

use super::error::Error;
use super::folder::Folder;
use super::followed::Followed;
use super::frame::{FrameBuffer, Kind, Moment, What};
use super::making::{FRAME_BYTES, Making, Purpose};
use super::options::{JournalMode, Options};
use super::output::Output;
use super::recovery::Recovered;
use super::status::Status;
use crate::commands::Service;
use crate::engine::{Collector, Overflowed, Place, Step};
use crate::time::{Clock, Duration, Timestamp};

/// A journal says at least this often how late it is, so that a start knows where time stood.
const TIME_EVERY: Duration = Duration::from_secs(60);

/// How long a snapshot that failed is left alone, unless somebody asks for one.
const RETRY_AFTER: Duration = Duration::from_secs(60);

/// Journals that a start reads without making a snapshot: each start adds one.
const JOURNALS_MAX: usize = 8;

/// How often the end tries to get at a shard that a script has.
const TRIES_MAX: usize = 100;

/// What the keeper works on.
pub(super) struct Ground {
    pub(super) service: Arc<Service>,
    pub(super) clock: Clock,
    pub(super) folder: Folder,
    pub(super) options: Options,
    /// What the machine calls its present boot.
    pub(super) boot: String,
    pub(super) status: Status,
}

pub(super) struct Keeper {
    pub(super) ground: Ground,
    /// Real time, by which the work is paced.
    pub(super) pace: Clock,
    pub(super) journal: Option<Output>,
    /// Collected, and not written yet: what was new of scripts, and one frame of records.
    waiting: VecDeque<FrameBuffer>,
    /// The highest number that was given to a file.
    pub(super) number: u64,
    pub(super) making: Option<Making>,
    pub(super) collector: Collector,
    pub(super) followed: Followed,
    /// The journal cannot be believed alone any more, or has grown too long.
    wants_snapshot: bool,
    /// When a snapshot has failed last, by the pace.
    pub(super) failed_at: Option<Timestamp>,
    last_frame_at: Timestamp,
    /// The disk refused what was written last.
    is_failing: bool,
}

impl Keeper {
    /// Begins to keep what the engine holds, which is as the folder has it.
    pub(super) fn begin(ground: Ground, recovered: &Recovered) -> Result<Self, Error> {
        let pace = Clock::system();
        let tracks = ground.options.journal != JournalMode::Off;
        ground.service.engine().track_changes(tracks);
        let now = ground.clock.now();
        ground.status.note(|facts| {
            facts.journal = ground.options.journal.name();
            facts.journal_ok = true;
            facts.saved_ok = true;
            facts.saved_at = recovered.snapshot.map_or(now, |(_, _, at)| at);
            facts.saved_bytes = recovered.snapshot.map_or(0, |(_, bytes, _)| bytes);
            facts.journal_bytes = recovered.journal_bytes;
            facts.restored = recovered.records;
            facts.damaged_bytes = recovered.damaged_bytes;
        });
        let has_unsaved = !tracks && recovered.journals > 0;
        let mut keeper = Self {
            followed: Followed::of(&ground.service),
            ground,
            pace,
            journal: None,
            waiting: VecDeque::new(),
            number: recovered.number,
            making: None,
            collector: Collector::default(),
            wants_snapshot: recovered.damaged_bytes > 0
                || recovered.journals >= JOURNALS_MAX
                || has_unsaved,
            failed_at: None,
            last_frame_at: now,
            is_failing: false,
        };
        if tracks {
            keeper.number += 1;
            let path = keeper.ground.folder.file(Kind::Journal, keeper.number);
            let begun = keeper.begin_journal(keeper.number);
            keeper.journal = Some(begun.map_err(|source| Error::Write { path, source })?);
        }
        Ok(keeper)
    }

    pub(super) fn moment(&self) -> Moment {
        Moment { at: self.ground.clock.now(), up: self.ground.clock.uptime() }
    }

    pub(super) fn head(&self) -> FrameBuffer {
        let version = env!("CARGO_PKG_VERSION");
        let mut head =
            FrameBuffer::with(What::Head, format!("{}\n{version}", self.ground.boot).as_bytes());
        head.stamp(self.moment());
        head
    }

    pub(super) fn begin_journal(&self, number: u64) -> io::Result<Output> {
        let mut journal =
            Output::create(&self.ground.folder.file(Kind::Journal, number), Kind::Journal)?;
        journal.append(&mut self.head())?;
        journal.sync()?;
        self.ground.folder.sync()?;
        Ok(journal)
    }

    /// Whether a snapshot is being made, and how urgently.
    pub(super) fn making(&self) -> Option<bool> {
        self.making.as_ref().map(|making| making.is_urgent)
    }

    /// Twice a second: what has changed goes to the disk, and a snapshot begins if one is due.
    pub(super) fn tick(&mut self) {
        self.collect();
        let since = self.ground.clock.now().since(self.last_frame_at);
        if since >= TIME_EVERY && self.waiting.is_empty() {
            self.put(FrameBuffer::new(What::Time));
        }
        self.sync();
        if self.making.is_none() && self.is_snapshot_due() {
            self.wants_snapshot = false;
            self.number += 1;
            self.begin_snapshot(Purpose::Number(self.number), None);
        }
    }

    /// Lets everything reach the disk that was changed before. Returns whether it has; where the
    /// disk takes nothing any more, nobody is to wait for it.
    pub(super) fn commit(&mut self) -> bool {
        let is_all = self.collect();
        self.sync();
        is_all || self.is_failing
    }

    fn is_snapshot_due(&self) -> bool {
        let rests = |at| self.pace.now().since(at) < RETRY_AFTER;
        if self.failed_at.is_some_and(rests) {
            return false;
        }
        let options = &self.ground.options;
        let facts = self.ground.status.facts();
        let since = self.ground.clock.now().since(facts.saved_at);
        let is_old = !options.snapshot_period.is_zero() && since >= options.snapshot_period;
        let longest = options.journal_bytes_max.as_u64().max(facts.saved_bytes);
        self.wants_snapshot
            || (is_old && (self.journal.is_none() || facts.changes_since > 0))
            || facts.journal_bytes > longest
    }

    /// Takes what has changed, as far as it can be written. Returns whether that is all there was.
    pub(super) fn collect(&mut self) -> bool {
        if self.journal.is_none() && self.making.is_none() {
            return true;
        }
        if !self.write_waiting() {
            return false;
        }
        for frame in self.followed.take_changes(&self.ground.service) {
            self.put(frame);
        }
        let before = self.collector.keys();
        let is_all = self.collect_shards();
        let keys = self.collector.keys() - before;
        self.ground.status.note(|facts| facts.changes_since += keys);
        is_all && self.waiting.is_empty()
    }

    fn collect_shards(&mut self) -> bool {
        let mut is_all = true;
        let mut frame = FrameBuffer::new(What::Records);
        let service = Arc::clone(&self.ground.service);
        for shard in 0..service.engine().shards() {
            let mut place = Place::default();
            loop {
                let step = service.engine().collect_changes(
                    &mut self.collector,
                    (shard, place),
                    frame.body(),
                );
                let is_done = match step {
                    Ok(Step::More(next)) => {
                        place = next;
                        false
                    }
                    Ok(Step::Done) => true,
                    Ok(Step::Held) | Err(Overflowed) => {
                        is_all = false;
                        self.note_overflow(step.is_err());
                        true
                    }
                };
                if frame.body_bytes() >= FRAME_BYTES {
                    let full = std::mem::replace(&mut frame, FrameBuffer::new(What::Records));
                    if !self.put(full) {
                        return false;
                    }
                }
                if is_done {
                    break;
                }
            }
        }
        if frame.body_bytes() > 0 {
            is_all &= self.put(frame);
        }
        is_all
    }

    /// Deleted keys were forgotten before they were written: only a snapshot knows them gone.
    fn note_overflow(&mut self, overflowed: bool) {
        if !overflowed {
            return;
        }
        warn!("more keys were deleted than the disk could follow, making a snapshot");
        self.ground.status.note(|facts| facts.overflows += 1);
        self.wants_snapshot = true;
        self.abandon("more keys were deleted than could be followed");
    }

    /// Hands a frame to whoever is being written. Returns whether all of it is.
    fn put(&mut self, mut frame: FrameBuffer) -> bool {
        let moment = self.moment();
        frame.stamp(moment);
        if let Some(making) = &mut self.making {
            making.put(&mut frame);
        }
        if self.journal.is_none() {
            return true;
        }
        self.last_frame_at = moment.at;
        self.waiting.push_back(frame);
        self.write_waiting()
    }

    fn write_waiting(&mut self) -> bool {
        let Some(journal) = &mut self.journal else { return true };
        while let Some(frame) = self.waiting.front_mut() {
            let before = journal.bytes();
            if let Err(error) = journal.append(frame) {
                self.note_failure(&error);
                return false;
            }
            self.waiting.pop_front();
            let bytes = journal.bytes() - before;
            self.ground.status.note(|facts| {
                facts.journal_bytes += bytes;
                facts.journal_written_bytes += bytes;
            });
        }
        true
    }

    fn note_failure(&mut self, error: &io::Error) {
        let was_failing = std::mem::replace(&mut self.is_failing, true);
        self.ground.status.note(|facts| {
            facts.failures += 1;
            facts.journal_ok = false;
        });
        if !was_failing {
            error!(%error, "the journal cannot be written: a crash would lose what is counted now");
        }
    }

    /// Lets the journal reach the disk.
    fn sync(&mut self) {
        let Some(journal) = self.journal.as_mut().filter(|journal| journal.unsynced_bytes() > 0)
        else {
            return self.note_recovery();
        };
        let began = self.pace.now();
        if let Err(error) = journal.sync() {
            // What the system has thrown away it does not say: only a snapshot has it for sure.
            self.wants_snapshot = true;
            return self.note_failure(&error);
        }
        let took = self.pace.now().since(began);
        self.ground.status.note(|facts| {
            facts.syncs += 1;
            facts.sync_time = Duration::from_micros(facts.sync_time.as_micros() + took.as_micros());
            facts.last_sync_time = took;
        });
        self.note_recovery();
    }

    fn note_recovery(&mut self) {
        if self.is_failing && self.waiting.is_empty() {
            self.is_failing = false;
            self.ground.status.note(|facts| facts.journal_ok = true);
            info!("the journal is written again");
        }
    }

    /// The last thing: nobody changes anything any more. Returns whether all is on the disk.
    pub(super) fn end(mut self, snapshot: bool) -> bool {
        self.abandon("the server stops");
        if snapshot {
            self.number += 1;
            self.begin_snapshot(Purpose::Number(self.number), None);
            let mut tries = TRIES_MAX;
            while self.making.is_some() && tries > 0 {
                let before = self.making.as_ref().map(Making::bytes);
                self.go_on();
                let goes_on = self.making.as_ref().map(Making::bytes) != before;
                tries -= usize::from(!goes_on);
            }
            self.abandon("a script does not end");
        }
        if self.journal.is_none() {
            return !snapshot || self.ground.status.facts().saves > 0;
        }
        let is_all = (0..TRIES_MAX).any(|_| self.collect() || self.is_failing);
        let is_all = is_all && self.put(FrameBuffer::new(What::End));
        self.sync();
        is_all && !self.is_failing
    }
}
