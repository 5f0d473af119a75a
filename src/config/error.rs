//! Why settings are refused.

use std::io;
use std::path::PathBuf;

use crate::size::Bytes;

/// Why settings are refused. Every text names the place, the offending word, and what is right.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("read settings from {}", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("{} has more than {max}; settings have less", path.display())]
    TooLarge { path: PathBuf, max: Bytes },
    #[error("{}:{line}:{column}: {complaint}", path.display())]
    InFile { path: PathBuf, line: usize, column: usize, complaint: String },
    #[error("{name}: {complaint}")]
    InEnvironment { name: String, complaint: String },
    #[error("{name}: {complaint}")]
    InFlag { name: String, complaint: String },
    #[error("{0}")]
    Relation(String),
}
