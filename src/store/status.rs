//! How it stands with what outlives the process: written by the thread of the store, read by
//! INFO, LASTSAVE and the metrics.

use std::sync::Arc;

use parking_lot::Mutex;

use crate::commands::{LastSave, StoreFacts};

/// Clones share what they tell.
#[derive(Clone, Debug, Default)]
pub(super) struct Status(Arc<Mutex<StoreFacts>>, Arc<Mutex<LastSave>>);

impl Status {
    pub(super) fn facts(&self) -> StoreFacts {
        self.0.lock().clone()
    }

    /// What a stop was asked to do.
    pub(super) fn last(&self) -> LastSave {
        *self.1.lock()
    }

    pub(super) fn set_last(&self, last: LastSave) {
        *self.1.lock() = last;
    }

    pub(super) fn note<R>(&self, change: impl FnOnce(&mut StoreFacts) -> R) -> R {
        change(&mut self.0.lock())
    }
}
