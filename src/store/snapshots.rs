//! What the keeper does about snapshots: begins them, goes on with them, puts them in force.
//!
//! Invariant: a snapshot has its name only when it is whole and on the disk; the journal that
//! goes on from it is there before, and what it replaces is removed after.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use tracing::{error, info, warn};

use super::folder;
use super::followed;
use super::frame::{Kind, Moment};
use super::keeper::Keeper;
use super::making::{Making, Purpose};
use super::options::JournalMode;
use crate::commands::{SaveAnswer, SaveOrder, SaveRefusal};
use crate::engine::Collector;

impl Keeper {
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

    pub(super) fn begin_snapshot(&mut self, purpose: Purpose, answer: Option<SaveAnswer>) {
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
        // A backup is waited for, but by nobody who hurries.
        let is_urgent = answer.is_some() && matches!(making.purpose, Purpose::Number(_));
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
            // All of it was walked over: what has changed since comes behind, and then the end.
            Ok(true) if self.collect() => self.finish(),
            Ok(_) => {}
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
    pub(super) fn abandon(&mut self, why: &str) {
        if let Some(mut making) = self.making.take() {
            for answer in making.answers.drain(..) {
                answer(Err(SaveRefusal::Failed(why.to_owned())));
            }
            self.track_no_longer();
            self.ground.status.note(|facts| facts.saving_since = None);
        }
    }
}
