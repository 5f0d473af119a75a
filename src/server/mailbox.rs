//! What others have for a connection: pushes, in the order in which they came.
//!
//! Anyone puts them in; the connection alone takes them out, between two replies. What waits is
//! bounded by what it would take on the wire: a reader that is slower than what it asked to be
//! told is ended, and keeps nobody else waiting.

use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

use crate::commands::Push;

#[derive(Debug, Default)]
pub(super) struct Mailbox {
    waiting: Mutex<Waiting>,
    any: AtomicBool,
}

#[derive(Debug, Default)]
struct Waiting {
    pushes: Vec<Push>,
    bytes: usize,
}

/// More waits than may.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Full {
    pub(super) bytes: usize,
}

impl Mailbox {
    /// A single push may be larger than the bound, which is for what piles up.
    pub(super) fn put(&self, push: Push, bytes_max: usize) -> Result<(), Full> {
        let mut waiting = self.waiting.lock();
        if waiting.bytes > bytes_max {
            return Err(Full { bytes: waiting.bytes });
        }
        waiting.bytes += push.bytes();
        waiting.pushes.push(push);
        self.any.store(true, Ordering::Release);
        Ok(())
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        !self.any.load(Ordering::Acquire)
    }

    pub(super) fn take(&self) -> Vec<Push> {
        let mut waiting = self.waiting.lock();
        self.any.store(false, Ordering::Release);
        std::mem::take(&mut *waiting).pushes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_piles_up_is_bounded_and_what_is_taken_makes_room() {
        let mailbox = Mailbox::default();
        assert!(mailbox.is_empty());
        let mut count = 0;
        while mailbox.put(Push::RedirectionBroken(7), 1_000).is_ok() {
            count += 1;
        }
        assert!((2..1_000).contains(&count), "{count}");
        assert_eq!(mailbox.take().len(), count);
        assert!(mailbox.is_empty());
        assert_eq!(mailbox.put(Push::RedirectionBroken(7), 1_000), Ok(()));
    }
}
