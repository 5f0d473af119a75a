//! Answering under strain: requests are looked over before they are carried out.
//!
//! What passes goes the way of all requests, in groups. What is refused goes it as well, alone: it
//! passes the gate, is counted as rejected and fails a transaction that it was to be part of, as
//! any other refusal does.

use super::call::Worker;
use super::host::Host;
use super::overload::Reason;
use super::session::{Outcome, Session};
use super::spec::Flags;
use super::table::Entry;
use crate::engine::Scope;
use crate::protocol::{Args, Error};

impl Worker {
    /// Answers the first of these requests, and those after it that can be answered with it and
    /// are not refused.
    #[cold]
    pub(super) fn call_passed(
        &mut self,
        session: &mut Session,
        host: &dyn Host,
        requests: &[Args<'_>],
        out: &mut Vec<u8>,
    ) -> (usize, Outcome) {
        self.connection_tier = session.tier;
        let mut sieve = self.sieve;
        let passed = sieve.sift(requests.len(), |place| self.judge(session, requests[place]));
        self.refusal = sieve.take_refusal();
        // Who is refused is answered alone.
        let next = &requests[..passed.max(1)];
        let (answered, outcome) = self.call_first(session, host, next, out);
        self.refusal = None;
        sieve.answered(answered);
        self.sieve = sieve;
        (answered, outcome)
    }

    /// The refusal of the request that is at the gate, if it was decided on.
    #[inline]
    pub(super) fn heed_refusal(&self) -> Result<(), Error> {
        self.refusal.map_or(Ok(()), |reason| Err(self.need().refusal(reason)))
    }

    fn judge(&self, session: &Session, args: Args<'_>) -> Option<Reason> {
        // What is wrong with a request is for others to say.
        let number = self.service.table().resolve(args).ok()?;
        let entry = self.entry(number);
        if !entry.is_sheddable() || !entry.arity().allows(args.len()) {
            return None;
        }
        let first = entry.keys().places(args).next().and_then(|place| args.get(place));
        let connection = session.id.to_le_bytes();
        let is_new = || first.is_some_and(|key| self.makes_new(session, entry, key));
        self.need().refuses(first.unwrap_or(&connection), is_new, self.now)
    }

    /// Whether a command that may store a key would make this one.
    fn makes_new(&self, session: &Session, entry: &Entry, key: &[u8]) -> bool {
        let flags = entry.spec.flags;
        if !flags.has(Flags::DENYOOM) && !flags.has(Flags::MAKES_KEYS) {
            return false;
        }
        let engine = self.service.engine();
        let key = engine.key(key);
        let scope = [key];
        let is_there = engine.try_transact(Scope::Keys(&scope), session.db, self.now, |view| {
            view.look(key).is_some()
        });
        // Whoever must not wait is told so by the command itself.
        is_there.is_ok_and(|is_there| !is_there)
    }
}
