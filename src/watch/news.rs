//! What a source tells the keeper: documents, and what is wrong.

use super::replica::{Document, Item};
use crate::telemetry::PolicyFault;

/// What a source tells.
#[derive(Debug)]
pub(super) enum News {
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
pub(super) struct Fault {
    pub(super) reason: PolicyFault,
    /// A person reads it.
    pub(super) text: String,
}

impl Fault {
    pub(super) fn new(reason: PolicyFault, text: impl Into<String>) -> Self {
        Self { reason, text: text.into() }
    }
}

/// Whether a fault is of the source as a whole, so that nothing can be read until it is over.
pub(super) fn is_away(reason: PolicyFault) -> bool {
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
