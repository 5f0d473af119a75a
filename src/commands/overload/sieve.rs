//! Which of a connection's requests pass, before they are carried out.
//!
//! Only under strain, and only for commands that work on keys: what administers the server, ends
//! what was begun (EXEC, RL.COMMIT, RL.RELEASE, RL.RESET) or decides by policy is let through;
//! the last look after themselves, since only they know the rule that applies. Requests are
//! judged in their order and each once: what has passed is remembered until it is answered.

use super::lane::{Instead, Reason};
use super::strain::{Asker, Need};
use crate::commands::{
    spec::{Flags, Group, Handler, Keys},
    table::Entry,
};
use crate::protocol::Error;
use crate::time::Timestamp;

/// What is known of the requests that come next.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::commands) struct Sieve {
    /// So many of the next ones pass.
    passed: usize,
    /// The one behind them does not.
    refused: Option<Reason>,
}

/// The most that is looked ahead.
const AHEAD_MAX: usize = crate::commands::GROUP_MAX;

impl Sieve {
    /// Looks at the next `len` requests until one is refused; how many pass. `judge` tells the
    /// reason for refusing one.
    pub(in crate::commands) fn sift(
        &mut self,
        len: usize,
        judge: impl Fn(usize) -> Option<Reason>,
    ) -> usize {
        let len = len.min(AHEAD_MAX);
        while self.refused.is_none() && self.passed < len {
            match judge(self.passed) {
                Some(reason) => self.refused = Some(reason),
                None => self.passed += 1,
            }
        }
        self.passed.min(len)
    }

    /// So many of those that pass have been answered.
    pub(in crate::commands) fn answered(&mut self, requests: usize) {
        self.passed = self.passed.saturating_sub(requests);
    }

    /// Why the next one is refused, if it is; it is over then.
    pub(in crate::commands) fn take_refusal(&mut self) -> Option<Reason> {
        if self.passed > 0 { None } else { self.refused.take() }
    }
}

impl Entry {
    /// Whether requests of it may be refused under load by what is known of them beforehand.
    pub(in crate::commands) fn is_sheddable(&self) -> bool {
        let works_on_keys =
            self.spec.flags.has(Flags::WRITE) || self.spec.flags.has(Flags::READONLY);
        let runs_scripts = matches!(self.spec.handler, Handler::Nested(_));
        match self.spec.group {
            Group::String
            | Group::Hash
            | Group::List
            | Group::Set
            | Group::SortedSet
            | Group::Generic => works_on_keys,
            Group::Scripting => runs_scripts,
            // Those by policy see all; to forget and to give back makes room.
            Group::RateLimit => self.keys() == Keys::ONE && works_on_keys,
            Group::Connection
            | Group::Server
            | Group::Cluster
            | Group::Transactions
            | Group::PubSub => false,
        }
    }
}

impl Need<'_> {
    /// Why a request of the connection is refused, if it is. `is_new` is asked
    /// only at level 3.
    pub(in crate::commands) fn refuses(
        &self,
        user: &[u8],
        is_new: impl Fn() -> bool,
        now: Timestamp,
    ) -> Option<Reason> {
        let asker = Asker { user, ..Asker::default() };
        let concession = self.concede(&asker, None, now);
        // What is there already stays exact.
        if concession.given_up.is_some() && is_new() {
            return Some(Reason::NewKey);
        }
        self.sheds(concession.priority).then_some(Reason::Shed)
    }

    /// The error of a request that was refused, which is counted by it.
    pub(in crate::commands) fn refusal(&self, reason: Reason) -> Error {
        self.count(reason, Instead::Refused);
        Error::Overloaded(self.retry_after_ms())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_judged_once_and_in_order() {
        let judged = std::cell::RefCell::new(Vec::new());
        let judge = |first: usize| {
            let judged = &judged;
            move |place: usize| {
                judged.borrow_mut().push(first + place);
                (first + place == 3).then_some(Reason::Shed)
            }
        };
        let mut sieve = Sieve::default();
        assert_eq!(sieve.sift(8, judge(0)), 3);
        assert_eq!(sieve.take_refusal(), None);
        // Two of three were answered: the third is not judged again.
        sieve.answered(2);
        assert_eq!(sieve.sift(8, judge(2)), 1);
        sieve.answered(1);
        assert_eq!(sieve.sift(8, judge(3)), 0);
        assert_eq!(sieve.take_refusal(), Some(Reason::Shed));
        assert_eq!(sieve.sift(2, judge(4)), 2);
        assert_eq!(*judged.borrow(), [0, 1, 2, 3, 4, 5]);
    }
}
