//! The policies in force, and the book they come from.
//!
//! Requests read the snapshot, which is swapped as a whole and waits for nobody. Who brings
//! documents, and who asks how it stands with them, shares the book behind a lock; compiling is
//! done under it, so nothing on the way of a check may ask there.

use std::sync::Arc;

use arc_swap::{ArcSwap, Guard};
use bytes::Bytes;
use parking_lot::Mutex;

use crate::policy::{Applied, Book, Change, DocumentStatus, Options, Snapshot};
use crate::time::Timestamp;

#[derive(Debug)]
pub(crate) struct Policies {
    book: Mutex<Book>,
    snapshot: ArcSwap<Snapshot>,
}

impl Policies {
    pub(crate) fn new(options: &Options) -> Self {
        let book = Book::new(options);
        Self { snapshot: ArcSwap::new(book.snapshot()), book: Mutex::new(book) }
    }

    /// Takes a batch of changes, and puts in force what comes of it.
    pub(crate) fn apply(&self, changes: Vec<Change>, now: Timestamp) -> Applied {
        let mut book = self.book.lock();
        let applied = book.apply(changes, now);
        // Still locked, so that no older snapshot comes after a newer one.
        self.snapshot.store(book.snapshot());
        applied
    }

    /// What is in force: for as long as a batch is answered, not longer.
    pub(crate) fn snapshot(&self) -> Guard<Arc<Snapshot>> {
        self.snapshot.load()
    }

    /// How it stands with every document, in the order of their sources.
    pub(crate) fn status(&self) -> Vec<DocumentStatus> {
        self.book.lock().status()
    }

    /// The file or key that a tenant in force comes from.
    pub(crate) fn source(&self, tenant: &str) -> Option<Box<str>> {
        self.snapshot.load().tenant(tenant.as_bytes()).map(|tenant| tenant.source.clone())
    }

    /// The document in force of a tenant: its source and text.
    pub(crate) fn document(&self, tenant: &str) -> Option<(Box<str>, Bytes)> {
        let book = self.book.lock();
        book.document(tenant).map(|(source, text)| (source.into(), text.clone()))
    }
}
