//! Where policies come from: a file, a folder or etcd, watched.
//!
//! One thread of its own has a *source*, which tells what it holds and what changes; the
//! *replica*, which makes of that the least that is news; and the *keeper*, which hands the news
//! to the book of policies and tells what came of it. What is compiled holds up neither clients
//! nor probes.
//!
//! Changes that come within 50 ms are taken over as one. A source that is away changes nothing:
//! what was last good stays in force, is kept on disk, and is where a start without its source
//! begins. A source that was away tells everything again, so nothing that happened meanwhile is
//! missed, and what has not changed is no news.
//!
//! Policies are never edited in memory: who writes one writes to the store (`Writer`), and the
//! change comes back by the watch.

mod disk;
#[cfg(feature = "etcd")]
mod etcd;
#[cfg(feature = "etcd")]
mod etcd_store;
mod files;
mod folder;
mod keeper;
mod last_good;
#[cfg(feature = "etcd")]
mod members;
mod options;
mod replica;
mod thread;
mod writer;

#[cfg(feature = "etcd")]
pub(crate) use etcd::watch_etcd;
pub(crate) use files::documents;
pub(crate) use options::{EtcdOptions, Options};
pub(crate) use thread::{Target, Watch, watch_path};
pub(crate) use writer::Writer;

use crate::telemetry::PolicyFault;
use replica::{Document, Item};

/// What a source tells.
#[derive(Debug)]
enum News {
    /// Everything that it holds.
    All {
        documents: Vec<Document>,
        /// Sources of documents that are there and cannot be read now: they stay as they were.
        kept: Vec<Box<str>>,
        revision: u64,
    },
    /// What has changed since.
    Some { items: Vec<Item>, revision: u64 },
    /// Something is wrong.
    Fault(Fault),
}

/// What is wrong with a source, or with a part of it.
#[derive(Clone, Debug, Eq, PartialEq)]
struct Fault {
    reason: PolicyFault,
    /// A person reads it.
    text: String,
}

impl Fault {
    fn new(reason: PolicyFault, text: impl Into<String>) -> Self {
        Self { reason, text: text.into() }
    }
}

/// Whether a fault is of the source as a whole, so that nothing can be read until it is over.
fn is_away(reason: PolicyFault) -> bool {
    match reason {
        PolicyFault::Unreachable
        | PolicyFault::Denied
        | PolicyFault::Lost
        | PolicyFault::Compacted => true,
        PolicyFault::Document
        | PolicyFault::Unreadable
        | PolicyFault::Full
        | PolicyFault::LastGood => false,
    }
}
