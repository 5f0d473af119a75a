//! The start: the newest snapshot that is whole, and the journals that follow it.
//!
//! Where none is whole, all files are read from the oldest on, each for what is left of it. What
//! cannot be read is reported and passed over; data that is good is never refused for what
//! lies beside it. Only what somebody else has written, a newer Tollgate among them, stops the
//! start, before anything is changed.
//!
//! The clock goes on where it stood. On the same boot of the machine that is what was last
//! written and the time since, which no setting of the wall clock changes; after another boot it
//! is at least what was last written. A wall clock that is ahead is believed, as while running:
//! the machine was off. One that is behind never is. So no window opens before its time.

use tracing::{info, warn};

use super::error::Error;
use super::folder::Folder;
use super::frame::{Frame, Kind, What};
use super::reading::{Damage, Reading};
use crate::commands::Service;
use crate::engine::{Record, RecordError};
use crate::time::{Clock, Duration, Timestamp};

/// How often progress is told.
const TELL_EVERY: Duration = Duration::from_secs(1);

/// Records between two looks at the clock.
const LOOK_EVERY: u64 = 4_096;

/// What a start has found.
#[derive(Clone, Debug, Default)]
pub(super) struct Recovered {
    pub(super) records: u64,
    pub(super) damaged_bytes: u64,
    /// The highest number that any file has.
    pub(super) number: u64,
    /// The snapshot that was taken over, its length, and when it was made.
    pub(super) snapshot: Option<(u64, u64, Timestamp)>,
    pub(super) journal_bytes: u64,
    pub(super) journals: usize,
    /// The moment from which the clock goes on.
    pub(super) resume: Timestamp,
}

/// Reads files into an engine that nobody else uses yet.
struct Restorer<'s> {
    service: &'s Service,
    /// What the machine calls its present boot.
    boot: &'s str,
    uptime: Duration,
    pace: Clock,
    told: Timestamp,
    found: Recovered,
}

/// Takes over what the folder holds.
pub(super) fn recover(
    folder: &Folder,
    service: &Service,
    (boot, clock): (&str, &Clock),
) -> Result<Recovered, Error> {
    let (snapshots, journals) = folder.list()?;
    check_all(folder, &snapshots, &journals)?;
    let pace = Clock::system();
    let mut restorer = Restorer {
        service,
        boot,
        uptime: clock.uptime(),
        told: pace.now(),
        pace,
        found: Recovered::default(),
    };
    restorer.found.number = snapshots.iter().chain(&journals).copied().max().unwrap_or_default();
    let whole = restorer.restore_whole(folder, &snapshots)?;
    let mut files: Vec<(u64, Kind)> =
        journals.into_iter().map(|number| (number, Kind::Journal)).collect();
    if whole.is_none() {
        files.extend(snapshots.into_iter().map(|number| (number, Kind::Snapshot)));
        // A snapshot before the journal of its number, of which it knows nothing.
        files.sort_unstable_by_key(|(number, kind)| (*number, *kind == Kind::Journal));
    }
    for (number, kind) in files.into_iter().filter(|(number, _)| Some(*number) >= whole) {
        let (_, bytes) = restorer.restore(folder, kind, number)?;
        if kind == Kind::Journal {
            restorer.found.journals += 1;
            restorer.found.journal_bytes += bytes;
        }
    }
    Ok(restorer.found)
}

/// Refuses what others have written, before anything is taken over.
fn check_all(folder: &Folder, snapshots: &[u64], journals: &[u64]) -> Result<(), Error> {
    for (kind, numbers) in [(Kind::Snapshot, snapshots), (Kind::Journal, journals)] {
        for number in numbers {
            Reading::open(&folder.file(kind, *number), kind)?;
        }
    }
    Ok(())
}

impl Restorer<'_> {
    /// Takes over the newest snapshot that is whole, and says which; where none is, everything
    /// there is has to be read, in order.
    fn restore_whole(&mut self, folder: &Folder, snapshots: &[u64]) -> Result<Option<u64>, Error> {
        for number in snapshots.iter().rev() {
            let before = self.found.clone();
            let (is_whole, _) = self.restore(folder, Kind::Snapshot, *number)?;
            if is_whole {
                return Ok(Some(*number));
            }
            warn!(number, "a snapshot is not whole, reading what was before it");
            self.forget();
            let damaged_bytes = self.found.damaged_bytes;
            self.found = Recovered { damaged_bytes, ..before };
        }
        Ok(None)
    }

    fn forget(&self) {
        self.service.engine().forget_all(Timestamp::EPOCH);
        self.service.scripts().flush();
        self.service.libraries().flush();
    }

    /// Takes over a file. Returns whether nothing is missing of it, and its length.
    fn restore(&mut self, folder: &Folder, kind: Kind, number: u64) -> Result<(bool, u64), Error> {
        let mut reading = Reading::open(&folder.file(kind, number), kind)?;
        let length = reading.length();
        let (mut ended, mut same_boot) = (false, false);
        while let Some((place, frame)) = reading.next()? {
            let Frame { what, moment, body } = frame;
            let elapsed = if same_boot || (what == What::Head && self.is_this_boot(body)) {
                same_boot = true;
                self.uptime.as_micros().saturating_sub(moment.up.as_micros())
            } else {
                0
            };
            let resume = moment.at + Duration::from_micros(elapsed);
            self.found.resume = self.found.resume.max(resume);
            if what == What::Head && kind == Kind::Snapshot {
                self.found.snapshot = Some((number, length, moment.at));
            }
            ended = what == What::End;
            if let Err(error) = self.take_over(what, body, moment.at) {
                let kind = kind.name();
                warn!(kind, number, place, %error, "a frame was not taken over whole");
                ended = false;
            }
        }
        self.report(&reading);
        Ok((ended && reading.damage().is_empty(), length))
    }

    fn is_this_boot(&self, body: &[u8]) -> bool {
        let boot = body.split(|byte| *byte == b'\n').next();
        boot == Some(self.boot.as_bytes()) && !self.boot.is_empty()
    }

    fn take_over(&mut self, what: What, body: &[u8], at: Timestamp) -> Result<(), String> {
        let service = self.service;
        match what {
            What::Head | What::End | What::Time => Ok(()),
            What::Records => self.records(body, at).map_err(|error| error.to_string()),
            What::Script => service.scripts().restore(body).map_err(|error| error.to_string()),
            What::ScriptsFlushed => {
                service.scripts().flush();
                Ok(())
            }
            What::Libraries => service.restore_libraries(body).map_err(|error| error.to_string()),
        }
    }

    fn records(&mut self, body: &[u8], at: Timestamp) -> Result<(), RecordError> {
        let (mut rest, mut first_error) = (body, None);
        while let Some(record) = Record::next(&mut rest)? {
            // The next ones can be read whatever this one is.
            if let Err(error) = self.service.engine().restore(&record, at) {
                first_error.get_or_insert(error);
            }
            self.found.records += 1;
            if self.found.records.is_multiple_of(LOOK_EVERY) {
                self.tell();
            }
        }
        first_error.map_or(Ok(()), Err)
    }

    fn tell(&mut self) {
        let now = self.pace.now();
        if now.since(self.told) >= TELL_EVERY {
            self.told = now;
            info!(records = self.found.records, "restoring");
        }
    }

    fn report(&mut self, reading: &Reading) {
        for Damage { at, bytes, is_tail } in reading.damage() {
            self.found.damaged_bytes += bytes;
            let path = reading.path().display();
            if *is_tail {
                warn!(%path, at, bytes, "the end of a file is torn, what was before it is good");
            } else {
                warn!(%path, at, bytes, "a stretch of a file is broken, it was passed over");
            }
        }
    }
}
