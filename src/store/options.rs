//! The settings of what outlives the process.
//!
//! Defaults stand in `config/tollgate.yaml` and nowhere else.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::size::Bytes;
use crate::time::Duration;

/// The section `store`.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Options {
    /// The data folder; empty keeps everything in memory.
    pub(crate) path: PathBuf,
    /// What becomes of changes between two snapshots.
    pub(crate) journal: JournalMode,
    /// How often a snapshot is made if anything has changed; zero for never.
    pub(crate) snapshot_period: Duration,
    /// A journal of this length, and as long as the last snapshot, is ended by a new one.
    pub(crate) journal_bytes_max: Bytes,
    /// Snapshots that are kept with what followed them.
    pub(crate) snapshots_kept: NonZeroUsize,
    /// The folder of backups; empty is one in the data folder.
    pub(crate) backup_path: PathBuf,
}

/// When changes are on the disk.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum JournalMode {
    /// Never, between two snapshots.
    Off,
    /// Within a second.
    Everysec,
    /// Before their replies are sent.
    Always,
}

impl JournalMode {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Everysec => "everysec",
            Self::Always => "always",
        }
    }
}

impl Options {
    /// The data folder, where there is one.
    pub(crate) fn folder(&self) -> Option<&Path> {
        given(&self.path)
    }

    pub(super) fn backups(&self) -> Option<&Path> {
        given(&self.backup_path)
    }
}

/// A setting that is a path, or empty for none.
fn given(path: &Path) -> Option<&Path> {
    Some(path).filter(|path| !path.as_os_str().is_empty())
}
