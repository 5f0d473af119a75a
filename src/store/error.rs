//! Why what outlives the process cannot be used; the text is for the person who started it.

use std::io;
use std::path::PathBuf;

#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error(
        "the data folder {folder} belongs to another running server{holder}; give each its own \
         with --data-dir"
    )]
    Locked { folder: PathBuf, holder: String },
    #[error("cannot use {path} as a data folder")]
    Folder { path: PathBuf, source: io::Error },
    #[error(
        "the data folder {folder} holds files of a Redis ({found}), which are not read: name \
         another folder with --data-dir"
    )]
    RedisFiles { folder: PathBuf, found: String },
    #[error("{path} is {found}; nothing was changed: take it away, or name another folder")]
    Foreign { path: PathBuf, found: String },
    #[error(
        "{path} was written by a newer Tollgate (format {version}, this one reads up to {known}); \
         nothing was changed: run that version, or name another folder",
        known = super::frame::VERSION
    )]
    Newer { path: PathBuf, version: u8 },
    #[error("cannot read {path}")]
    Read { path: PathBuf, source: io::Error },
    #[error("cannot write {path}")]
    Write { path: PathBuf, source: io::Error },
    #[error("cannot start a thread: {0}")]
    Thread(io::Error),
}

impl Error {
    /// Whether something else has to be named, rather than something be mended.
    pub(crate) fn is_bad_input(&self) -> bool {
        match self {
            Self::RedisFiles { .. } | Self::Foreign { .. } | Self::Newer { .. } => true,
            Self::Locked { .. }
            | Self::Folder { .. }
            | Self::Read { .. }
            | Self::Write { .. }
            | Self::Thread(_) => false,
        }
    }
}
