//! An order to write a policy: what commands hand to the outside, and what comes back.
//!
//! Policies are never edited in memory. An order goes to the store that they come from, and what
//! was written comes back by the watch; only then is it in force.

use bytes::Bytes;

/// A document to be written, or removed.
#[derive(Debug)]
pub(crate) struct PolicyOrder {
    pub(crate) tenant: Box<str>,
    /// Where the tenant's document is now; where there is none, its place is chosen by its name.
    pub(crate) source: Option<Box<str>>,
    /// `None` removes it.
    pub(crate) text: Option<Bytes>,
    /// What the store must hold for anything to be written; none where that does not matter.
    pub(crate) instead_of: Option<Bytes>,
}

/// Why nothing was written. Clients read it.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub(crate) enum PolicyRefusal {
    #[error("too many policies wait to be written")]
    Busy,
    #[error("there is no policy store: start the server with --policies FOLDER or --etcd URL")]
    NoStore,
    #[error("policies come from one file, edit that: {0}")]
    OneFile(String),
    #[error("the store holds another document by now")]
    Changed,
    #[error("a file cannot be named after this tenant")]
    Name,
    #[error("{0}")]
    Failed(String),
}

/// What is told of an order, once, on whichever thread.
pub(crate) type PolicyAnswer = Box<dyn FnOnce(Result<(), PolicyRefusal>) + Send>;
