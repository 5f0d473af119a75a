//! Replies that wait for the disk, where the journal is `always`.
//!
//! A connection that has answered asks for a turn of the journal and keeps its replies until one
//! that began thereafter is over. Turns are shared: however many have asked meanwhile, one
//! collection and one sync answer them all.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};

use parking_lot::Mutex;

/// What a connection waits for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Turn(u64);

/// Clones share their turns.
#[derive(Clone, Debug, Default)]
pub(super) struct Turns(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    asked: AtomicU64,
    done: AtomicU64,
    /// Of connections, each at most once in a turn: no more than there are connections.
    waiting: Mutex<Vec<(u64, Waker)>>,
}

impl Turns {
    pub(super) fn ask(&self) -> Turn {
        Turn(self.0.asked.fetch_add(1, Ordering::AcqRel) + 1)
    }

    pub(super) fn poll(&self, turn: Turn, cx: &mut Context<'_>) -> Poll<()> {
        if self.is_done(turn) {
            return Poll::Ready(());
        }
        let mut waiting = self.0.waiting.lock();
        // It may have been done before we came to be woken for it.
        if self.is_done(turn) {
            return Poll::Ready(());
        }
        if !waiting.iter().any(|(at, waker)| *at == turn.0 && waker.will_wake(cx.waker())) {
            waiting.push((turn.0, cx.waker().clone()));
        }
        Poll::Pending
    }

    fn is_done(&self, turn: Turn) -> bool {
        self.0.done.load(Ordering::Acquire) >= turn.0
    }

    /// The last turn that was asked for, if it is still to be done.
    pub(super) fn due(&self) -> Option<Turn> {
        let asked = self.0.asked.load(Ordering::Acquire);
        (asked > self.0.done.load(Ordering::Acquire)).then_some(Turn(asked))
    }

    /// All that was changed before the turn was asked for is on the disk.
    pub(super) fn done(&self, turn: Turn) {
        self.0.done.store(turn.0, Ordering::Release);
        let mut waiting = self.0.waiting.lock();
        let woken: Vec<Waker> =
            waiting.extract_if(.., |(at, _)| *at <= turn.0).map(|(_, waker)| waker).collect();
        drop(waiting);
        woken.into_iter().for_each(Waker::wake);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turn_ends_for_all_who_asked_before_it_began() {
        let turns = Turns::default();
        assert_eq!(turns.due(), None);
        let (first, second) = (turns.ask(), turns.ask());
        let due = turns.due().expect("it was asked for");
        let third = turns.ask();
        let mut cx = Context::from_waker(Waker::noop());
        assert!(turns.poll(first, &mut cx).is_pending());
        turns.done(due);
        assert!(turns.poll(first, &mut cx).is_ready());
        assert!(turns.poll(second, &mut cx).is_ready());
        assert!(turns.poll(third, &mut cx).is_pending());
        turns.done(turns.due().expect("the third is still to be done"));
        assert!(turns.poll(third, &mut cx).is_ready());
    }
}
