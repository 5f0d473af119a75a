//! The source that is a file or folder: reads it again whenever it has changed.
//!
//! The system tells of changes (`notify`); it does not do so for network folders, and watches
//! what a name meant when it was asked, not the name. So the path is looked over now and then as
//! well, by names and times alone, and watched anew where it has become another folder.
//!
//! An editor may write a file in pieces. Nothing is read before it has been still for
//! `SETTLE`, but never later than `SETTLE_MAX` after the first change.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use notify::event::{AccessKind, AccessMode, EventKind};
use notify::{RecommendedWatcher, RecursiveMode, Watcher};
use tokio::sync::{Notify, mpsc};
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};

use super::disk::folder_of;
use super::files::{self, Listing};
use super::keeper::COALESCE;
use super::thread::Source;
use super::writer::FolderStore;
use super::{Fault, News};
use crate::telemetry::PolicyFault;
use crate::time::Duration;

const SETTLE: Duration = Duration::from_millis(50);

/// A change is in force within a second, however busy the writer: half of it at most is waiting.
const SETTLE_MAX: Duration = Duration::from_millis(400);

/// A round is the wait for a change and the pause after it, so it may take twice as long. What is
/// left of the second is for reading and compiling; from etcd only the last part applies.
const _: () =
    assert!(2 * SETTLE_MAX.as_micros() + COALESCE.as_micros() < Duration::from_secs(1).as_micros());

const SETTLE_ROUNDS: u64 = SETTLE_MAX.as_micros() / SETTLE.as_micros();

/// What is watched, and how it is read.
#[derive(Debug)]
pub(super) struct Folder {
    pub(super) path: PathBuf,
    pub(super) poll_period: Duration,
    pub(super) document_bytes_max: usize,
}

impl Source for Folder {
    type Store = FolderStore;

    fn tenant(source: &str) -> Option<Box<str>> {
        files::tenant(Path::new(source))
    }

    fn store(&self) -> FolderStore {
        FolderStore(self.path.clone())
    }

    async fn follow(self, news: mpsc::Sender<News>) {
        let changed = Arc::new(Notify::new());
        let mut watched = Watched::default();
        let mut poll = interval(self.poll_period.as_std());
        poll.set_missed_tick_behavior(MissedTickBehavior::Delay);
        for revision in 1.. {
            let mut faults = Vec::new();
            // Watched before it is read, so that no change falls between the two.
            if let Err(error) = watched.renew(&self.path, &changed) {
                let text = format!("watch {}: {error}", self.path.display());
                faults.push(Fault::new(PolicyFault::Unreadable, text));
            }
            let listing = files::list(&self.path);
            let told = match &listing {
                Ok(listing) => self.read(listing, revision, &mut faults),
                Err(error) => {
                    let text = format!("read {}: {error}", self.path.display());
                    News::Fault(Fault::new(PolicyFault::Unreachable, text))
                }
            };
            for told in faults.into_iter().map(News::Fault).chain([told]) {
                if news.send(told).await.is_err() {
                    return;
                }
            }
            loop {
                tokio::select! {
                    () = changed.notified() => {
                        settle(&changed).await;
                        break;
                    }
                    _ = poll.tick() => {
                        if has_changed(&listing, &self.path) {
                            break;
                        }
                    }
                }
            }
        }
    }
}

impl Folder {
    fn read(&self, listing: &Listing, revision: u64, faults: &mut Vec<Fault>) -> News {
        let reading = files::read(listing, self.document_bytes_max, revision);
        let mut kept = Vec::new();
        for (source, why) in reading.unreadable {
            faults.push(Fault::new(PolicyFault::Unreadable, format!("read {source}: {why}")));
            kept.push(source);
        }
        News::All { documents: reading.documents, kept, revision }
    }
}

/// Waits until nothing has changed for a while.
async fn settle(changed: &Notify) {
    for _ in 0..SETTLE_ROUNDS {
        if timeout(SETTLE.as_std(), changed.notified()).await.is_err() {
            return;
        }
        // One round lasts as long as another, so that their number bounds the time.
        sleep(SETTLE.as_std()).await;
    }
}

fn has_changed(before: &io::Result<Listing>, path: &Path) -> bool {
    match (before, files::list(path)) {
        (Ok(before), Ok(now)) => *before != now,
        (Err(_), Ok(_)) | (Ok(_), Err(_)) => true,
        (Err(_), Err(_)) => false,
    }
}

/// What the system tells us of.
#[derive(Debug, Default)]
struct Watched {
    watcher: Option<RecommendedWatcher>,
    places: Vec<(PathBuf, Option<(u64, u64)>)>,
}

impl Watched {
    /// Watches the path, where it leads, and the folders that they stand in: a file that is
    /// replaced is a change of its folder.
    fn renew(&mut self, path: &Path, changed: &Arc<Notify>) -> notify::Result<()> {
        let real = fs::canonicalize(path).unwrap_or_else(|_is_away| path.to_owned());
        let mut places = vec![folder_of(path), folder_of(&real), real];
        places.dedup();
        let places: Vec<_> = places
            .into_iter()
            .map(|place| {
                let metadata = fs::metadata(&place).ok();
                (place, metadata.map(|metadata| (metadata.dev(), metadata.ino())))
            })
            .collect();
        if self.watcher.is_some() && self.places == places {
            return Ok(());
        }
        self.watcher = None;
        let bell = Arc::clone(changed);
        let mut watcher = notify::recommended_watcher(move |event: notify::Result<_>| {
            // An error means that something was not told.
            if event.is_err() || event.is_ok_and(|event: notify::Event| matters(event.kind)) {
                bell.notify_one();
            }
        })?;
        for (place, identity) in places.iter().filter(|(_, identity)| identity.is_some()) {
            let is_last = places.last().is_some_and(|(last, _)| last == place);
            let mode = if is_last { RecursiveMode::Recursive } else { RecursiveMode::NonRecursive };
            debug_assert!(identity.is_some());
            watcher.watch(place, mode)?;
        }
        (self.watcher, self.places) = (Some(watcher), places);
        Ok(())
    }
}

/// To read a file is no change of it; to have written it is.
fn matters(kind: EventKind) -> bool {
    match kind {
        EventKind::Access(access) => access == AccessKind::Close(AccessMode::Write),
        EventKind::Any
        | EventKind::Create(_)
        | EventKind::Modify(_)
        | EventKind::Remove(_)
        | EventKind::Other => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reading_a_file_does_not_make_it_read_again() {
        assert!(!matters(EventKind::Access(AccessKind::Open(AccessMode::Any))));
        assert!(!matters(EventKind::Access(AccessKind::Close(AccessMode::Read))));
        assert!(matters(EventKind::Access(AccessKind::Close(AccessMode::Write))));
    }
}
