//! What outlives the process, as commands see it: how it stands, what can be asked for, and the
//! scripts that a start brings back.

use std::sync::Arc;

use super::service::Service;
use crate::lua::{Interpreter, RestorePolicy};
use crate::protocol::Error;
use crate::time::{Duration, Timestamp};

/// How it stands with snapshots and the journal.
#[derive(Clone, Debug, Default)]
pub(crate) struct StoreFacts {
    /// `off`, `everysec` or `always`.
    pub(crate) journal: &'static str,
    /// Bytes of the journals that follow the last snapshot.
    pub(crate) journal_bytes: u64,
    pub(crate) journal_written_bytes: u64,
    /// The disk takes what is written.
    pub(crate) journal_ok: bool,
    pub(crate) syncs: u64,
    pub(crate) sync_time: Duration,
    pub(crate) last_sync_time: Duration,
    /// Times that something could not be written or synced.
    pub(crate) failures: u64,
    /// Times that the journal could not follow, so that a snapshot had to begin anew.
    pub(crate) overflows: u64,
    /// When the snapshot that is being made was begun.
    pub(crate) saving_since: Option<Timestamp>,
    /// When the last one was whole; the start, where there was none yet.
    pub(crate) saved_at: Timestamp,
    pub(crate) saved_took: Option<Duration>,
    pub(crate) saved_bytes: u64,
    pub(crate) saved_ok: bool,
    pub(crate) saves: u64,
    /// Records written to the journal since.
    pub(crate) changes_since: u64,
    /// What the start has brought back, and how long that took.
    pub(crate) restored: u64,
    pub(crate) restore_time: Duration,
    /// Bytes that it could not read.
    pub(crate) damaged_bytes: u64,
}

/// A snapshot to be made.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum SaveOrder {
    /// As fast as can be; the answer comes when it is whole.
    Now,
    /// Beside the work; the answer comes at once.
    Background,
    /// A file of its own under this name in the folder of backups; the answer comes when it is
    /// whole.
    Backup(String),
}

/// Whether a stop makes a snapshot. What is journaled is written in any case.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) enum LastSave {
    /// Where there is no journal.
    #[default]
    AsSet,
    Snapshot,
    None,
}

/// Why nothing is saved. Clients read it.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub(crate) enum SaveRefusal {
    #[error("nothing was saved: this server keeps everything in memory")]
    NoFolder,
    #[error("Background save already in progress")]
    Saving,
    #[error("nothing was saved: {0}")]
    Failed(String),
}

/// What is told of an order, once, on whichever thread.
pub(crate) type SaveAnswer = Box<dyn FnOnce(Result<(), SaveRefusal>) + Send>;

impl Service {
    /// Takes back the libraries of functions that FUNCTION DUMP gave, in place of all there are.
    pub(crate) fn restore_libraries(&self, payload: &[u8]) -> Result<(), Error> {
        let setup = self.runtime().scripts.setup(0, Arc::default());
        let mut interpreter = Interpreter::new(&setup);
        interpreter.restore_libraries(self.libraries(), payload, RestorePolicy::Flush)
    }
}
