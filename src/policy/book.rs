//! Every document that is known, and what is in force of it.

use std::sync::Arc;

use bytes::Bytes;

use crate::time::Timestamp;

use super::options::Options;
use super::snapshot::Snapshot;

/// All documents: of each source the last good one, and why a newer one is refused.
#[derive(Debug)]
pub(crate) struct Book {
    options: Options,
    snapshot: Arc<Snapshot>,
}

/// What has become of a document.
#[derive(Clone, Debug)]
pub(crate) enum Change {
    /// It reads as `text` now.
    Put {
        /// The path of the file or the key in etcd.
        source: Box<str>,
        /// The name that source gives to a tenant which does not say its own.
        tenant: Option<Box<str>>,
        text: Bytes,
        revision: u64,
    },
    /// It has been removed, and its tenants with it.
    Gone { source: Box<str> },
    /// After a full reload: every source that is not in this list is gone.
    Only { sources: Vec<Box<str>> },
}

/// What a batch of changes did.
#[derive(Debug, Default)]
pub(crate) struct Applied {
    /// Whether there is a new snapshot.
    pub(crate) is_new: bool,
    /// Tenants that are new or say something else than before.
    pub(crate) changed: Vec<Box<str>>,
    pub(crate) removed: Vec<Box<str>>,
    /// Documents of this batch that are refused.
    pub(crate) refused: Vec<DocumentStatus>,
}

/// How it stands with a document.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct DocumentStatus {
    pub(crate) source: Box<str>,
    /// Of the newest text of it.
    pub(crate) revision: u64,
    /// The revision whose text is in force.
    pub(crate) in_force: Option<u64>,
    /// Why the newest text is refused.
    pub(crate) error: Option<Box<str>>,
    /// Where the reason stands, from 1; zero where there is none.
    pub(crate) line: usize,
    pub(crate) column: usize,
}

impl Book {
    pub(crate) fn new(options: &Options) -> Self {
        Self { options: *options, snapshot: Arc::default() }
    }

    /// Takes a batch of changes; compiles only the documents in it.
    pub(crate) fn apply(&mut self, changes: Vec<Change>, now: Timestamp) -> Applied {
        let _ = (changes, now, self.options);
        Applied::default()
    }

    pub(crate) fn snapshot(&self) -> Arc<Snapshot> {
        Arc::clone(&self.snapshot)
    }

    /// One for each source, in the order of their names.
    pub(crate) fn status(&self) -> Vec<DocumentStatus> {
        Vec::new()
    }

    /// The document that is in force of a tenant: its source and text.
    pub(crate) fn document(&self, tenant: &str) -> Option<(&str, &Bytes)> {
        let _ = (self, tenant);
        None
    }
}
