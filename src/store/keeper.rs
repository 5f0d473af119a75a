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
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tracing::{error, info, warn};

use super::error::Error;
use super::folder::{self, Folder};
use super::followed::{self, Followed};
use super::frame::{FrameBuffer, Kind, Moment, What};
use super::making::{FRAME_BYTES, Making, Purpose};
use super::options::{JournalMode, Options};
use super::output::Output;
use super::recovery::Recovered;
use super::status::Status;
use crate::commands::{SaveAnswer, SaveOrder, SaveRefusal, Service};
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
    ground: Ground,
    /// Real time, by which the work is paced.
    pace: Clock,
    journal: Option<Output>,
    /// Collected, and not written yet: what was new of scripts, and one frame of records.
    waiting: VecDeque<FrameBuffer>,
    /// The highest number that was given to a file.
    number: u64,
    making: Option<Making>,
    collector: Collector,
    followed: Followed,
    /// The journal cannot be believed alone any more, or has grown too long.
    wants_snapshot: bool,
    /// When a snapshot has failed last, by the pace.
    failed_at: Option<Timestamp>,
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

    fn moment(&self) -> Moment {
        Moment { at: self.ground.clock.now(), up: self.ground.clock.uptime() }
    }

    fn head(&self) -> FrameBuffer {
        let version = env!("CARGO_PKG_VERSION");
        let mut head =
            FrameBuffer::with(What::Head, format!("{}\n{version}", self.ground.boot).as_bytes());
        head.stamp(self.moment());
        head
    }

    fn begin_journal(&self, number: u64) -> io::Result<Output> {
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
    fn collect(&mut self) -> bool {
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
    pub(super) fn sync(&mut self) {
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

    /// Somebody asks for a snapshot.
    pub(super) fn order(&mut self, order: SaveOrder, answer: SaveAnswer) {
        if let Some(making) = &mut self.making {
            if order != SaveOrder::Now || !matches!(making.purpose, Purpose::Number(_)) {
                return answer(Err(SaveRefusal::Saving));
            }
            // It may have begun before what the caller has seen; what came since is in it, too.
            making.is_urgent = true;
            return making.answers.push(answer);
        }
        match order {
            SaveOrder::Background => {
                answer(Ok(()));
                self.number += 1;
                self.begin_snapshot(Purpose::Number(self.number), None);
            }
            SaveOrder::Now => {
                self.number += 1;
                self.begin_snapshot(Purpose::Number(self.number), Some(answer));
            }
            SaveOrder::Backup(name) => match self.backup_path(&name) {
                Ok(path) => self.begin_snapshot(Purpose::Backup(path), Some(answer)),
                Err(error) => answer(Err(SaveRefusal::Failed(error.to_string()))),
            },
        }
    }

    fn backup_path(&self, name: &str) -> io::Result<PathBuf> {
        let own = self.ground.folder.backups();
        let folder = self.ground.options.backups().map_or(own, Path::to_owned);
        match fs::create_dir(&folder) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            Ok(()) | Err(_) => {}
        }
        let path = folder.join(name);
        if path.exists() {
            return Err(io::Error::other(format!("there is a file {} already", path.display())));
        }
        Ok(path)
    }

    fn begin_snapshot(&mut self, purpose: Purpose, answer: Option<SaveAnswer>) {
        let began = (self.ground.clock.now(), self.pace.now());
        let path = match &purpose {
            Purpose::Number(number) => self.ground.folder.unfinished(&number.to_string()),
            // In the folder that it will stay in: a link does not reach into another.
            Purpose::Backup(path) => path.with_extension("unfinished"),
        };
        let making = match Making::begin(path, purpose, began) {
            Ok(making) => making,
            Err(error) => return self.snapshot_failed(&error, answer),
        };
        if self.journal.is_none() {
            self.ground.service.engine().track_changes(true);
            self.collector = Collector::default();
            drop(self.followed.take_changes(&self.ground.service));
        }
        self.ground.status.note(|facts| facts.saving_since = Some(began.0));
        let is_urgent = answer.is_some();
        let making = self.making.insert(making);
        (making.is_urgent, making.answers) = (is_urgent, answer.into_iter().collect());
        let mut head = self.head();
        let moment = self.moment();
        let all = followed::all(&self.ground.service);
        if let Some(making) = &mut self.making {
            making.put(&mut head);
            for mut frame in all {
                frame.stamp(moment);
                making.put(&mut frame);
            }
        }
    }

    /// Goes on with the snapshot, if one is being made.
    pub(super) fn go_on(&mut self) {
        let moment = self.moment();
        let Some(making) = &mut self.making else { return };
        match making.walk(&self.ground.service, moment) {
            Ok(false) => {}
            // All of it was walked over: what has changed since comes behind, and then the end.
            Ok(true) if self.collect() => self.finish(),
            Ok(true) => {}
            Err(error) => self.end_failed(&error),
        }
    }

    fn finish(&mut self) {
        let moment = self.moment();
        let Some(mut making) = self.making.take() else { return };
        let done = match making.purpose.clone() {
            Purpose::Number(number) => self.finish_numbered(&mut making, number, moment),
            Purpose::Backup(path) => making
                .finish(moment, &path)
                .and_then(|()| folder::sync(path.parent().unwrap_or(Path::new(".")))),
        };
        self.track_no_longer();
        if let Err(error) = done {
            self.making = Some(making);
            return self.end_failed(&error);
        }
        let took = self.pace.now().since(making.began.1);
        let bytes = making.bytes();
        let is_numbered = matches!(making.purpose, Purpose::Number(_));
        self.ground.status.note(|facts| {
            facts.saving_since = None;
            facts.saved_took = Some(took);
            facts.saved_ok = true;
            facts.saves += 1;
            if is_numbered {
                (facts.saved_at, facts.saved_bytes) = (moment.at, bytes);
                (facts.journal_bytes, facts.changes_since) = (0, 0);
            }
        });
        if is_numbered {
            self.failed_at = None;
        }
        info!(bytes, took_ms = took.as_millis(), "a snapshot is whole");
        making.answers.drain(..).for_each(|answer| answer(Ok(())));
    }

    /// All that the old journal says is in the snapshot. The new one is there before the
    /// snapshot has its name.
    fn finish_numbered(
        &mut self,
        making: &mut Making,
        number: u64,
        moment: Moment,
    ) -> io::Result<()> {
        let journals = self.ground.options.journal != JournalMode::Off;
        let journal = journals.then(|| self.begin_journal(number)).transpose()?;
        let file = self.ground.folder.file(Kind::Snapshot, number);
        making.finish(moment, &file)?;
        self.ground.folder.sync()?;
        self.journal = journal;
        self.remove_older();
        Ok(())
    }

    /// Removes what the snapshots that are kept make superfluous.
    fn remove_older(&self) {
        let folder = &self.ground.folder;
        let Ok((snapshots, journals)) = folder.list() else { return };
        let kept = self.ground.options.snapshots_kept.get();
        // Until there are so many, everything can be read from the first journal on.
        let Some(oldest) = snapshots.iter().rev().nth(kept - 1) else { return };
        let older = |numbers: Vec<u64>, kind| {
            let older = numbers.into_iter().filter(|number| number < oldest);
            older.map(move |number| (kind, number)).collect::<Vec<_>>()
        };
        let mut files = older(snapshots.clone(), Kind::Snapshot);
        files.extend(older(journals, Kind::Journal));
        for (kind, number) in files {
            if let Err(error) = folder.remove(kind, number) {
                warn!(kind = kind.name(), number, %error, "an old file could not be removed");
            }
        }
    }

    fn track_no_longer(&self) {
        if self.ground.options.journal == JournalMode::Off {
            self.ground.service.engine().track_changes(false);
        }
    }

    fn end_failed(&mut self, error: &io::Error) {
        let making = self.making.take();
        self.track_no_longer();
        let mut answers = making.map(|mut making| std::mem::take(&mut making.answers));
        let answer = answers.as_mut().and_then(Vec::pop);
        let text = error.to_string();
        for other in answers.into_iter().flatten() {
            other(Err(SaveRefusal::Failed(text.clone())));
        }
        self.snapshot_failed(error, answer);
    }

    fn snapshot_failed(&mut self, error: &io::Error, answer: Option<SaveAnswer>) {
        self.failed_at = Some(self.pace.now());
        self.ground.status.note(|facts| {
            facts.failures += 1;
            facts.saving_since = None;
            facts.saved_ok = false;
        });
        error!(%error, "a snapshot could not be made, the one before and the journal stay");
        if let Some(answer) = answer {
            answer(Err(SaveRefusal::Failed(error.to_string())));
        }
    }

    /// Gives up the snapshot that is being made, if one is.
    fn abandon(&mut self, why: &str) {
        if let Some(mut making) = self.making.take() {
            for answer in making.answers.drain(..) {
                answer(Err(SaveRefusal::Failed(why.to_owned())));
            }
            self.track_no_longer();
            self.ground.status.note(|facts| facts.saving_since = None);
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
