//! Groups: neighbouring requests on one key each, carried out under one locking.
//!
//! With many keys, most of what a request costs is waiting for memory: its slot, and what its
//! value keeps on the heap. A pipeline says what comes next, so a group locks the shards of all
//! its keys at once (in ascending order, as always), looks at every key, so that the processor
//! waits for all of them together, and then answers one request after another.
//!
//! A group is small: it holds its shards for a microsecond or two, and another worker seldom
//! wants one of them meanwhile.

use smallvec::SmallVec;

use super::call::{WORDS_QUICK_MAX, Worker};
use super::host::Host;
use super::native::Native;
use super::policed::{Checked, check_words};
use super::request::{Ground, Request};
use super::session::{Outcome, Replies, Session};
use super::spec::{Flags, Handler, Keyed, Keys};
use super::twins::Declined;
use crate::engine::{BUCKETS, KeyRef, Patience, Scope, View};
use crate::protocol::{Args, Error, Reply};

/// Requests of one group.
pub(crate) const GROUP_MAX: usize = 8;

/// A group ends early once its replies are this long: they are sent before more are made.
const REPLIES_BYTES_MAX: usize = 256 << 10;

/// A request that can be answered in a group.
struct Member<'a> {
    number: u16,
    way: Way<'a>,
}

/// How it is answered.
enum Way<'a> {
    Command(Keyed, Request<'a>),
    /// EVALSHA of a script that has a native twin.
    Twin(Native<'a>),
    /// RL.CHECK: its keys are the buckets of its tenant's quotas, as many as there are.
    Check(Checked<'a>),
}

impl<'a> Member<'a> {
    fn words(&self) -> Args<'a> {
        match &self.way {
            Way::Command(_, request) => request.args,
            Way::Twin(native) => native.request,
            Way::Check(checked) => checked.words,
        }
    }

    fn keys(&self) -> &[KeyRef<'a>] {
        match &self.way {
            Way::Command(_, request) => &request.keys,
            Way::Twin(native) => &native.keys,
            Way::Check(checked) => checked.keys(),
        }
    }

    fn has_space_of(&self, other: &Self) -> bool {
        matches!(self.way, Way::Check(_)) == matches!(other.way, Way::Check(_))
    }

    /// The database, or other space, that the keys are of.
    fn space(&self, session: &Session) -> usize {
        match &self.way {
            Way::Command(..) | Way::Twin(_) => session.db,
            Way::Check(_) => BUCKETS,
        }
    }
}

/// A request that has been answered: its command, and the error if it was one.
type Answered = (u16, Option<Error>);

impl Worker {
    /// Answers the first of these requests, and those after it that can be answered with it.
    /// Returns how many were answered, and what the last one left behind.
    pub(crate) fn call_some(
        &mut self,
        session: &mut Session,
        host: &dyn Host,
        requests: &[Args<'_>],
        out: &mut Vec<u8>,
    ) -> (usize, Outcome) {
        if self.service.pause().is_on() && self.is_held(requests[0]) {
            return (0, Outcome::Held);
        }
        if !self.strain.is_calm() {
            return self.call_passed(session, host, requests, out);
        }
        self.call_first(session, host, requests, out)
    }

    /// Answers the first request, and those after it that can be answered with it.
    #[inline]
    pub(super) fn call_first(
        &mut self,
        session: &mut Session,
        host: &dyn Host,
        requests: &[Args<'_>],
        out: &mut Vec<u8>,
    ) -> (usize, Outcome) {
        self.arena.reset();
        let answered = self.call_group(session, requests, out);
        if answered.is_empty() {
            return (1, self.call(session, host, requests[0], out));
        }
        self.service.hand_out(host, self.now, Patience::UntilBusy);
        let count = answered.len();
        for (number, error) in answered {
            session.last_command = number;
            self.count(number, error.as_ref());
        }
        (count, Outcome::Reply)
    }

    #[cold]
    fn is_held(&self, request: Args<'_>) -> bool {
        let number = self.service.table().resolve(request);
        number.is_ok_and(|number| self.service.pause().holds(self.entry(number).spec, self.now))
    }

    /// Nothing is answered where fewer than two requests can be.
    fn call_group(
        &self,
        session: &Session,
        requests: &[Args<'_>],
        out: &mut Vec<u8>,
    ) -> SmallVec<[Answered; GROUP_MAX]> {
        let mut answered = SmallVec::new();
        let by_themselves = session.transaction.is_open()
            || session.replies != Replies::On
            // What it caused itself is pushed right after the reply of the cause.
            || session.tracking.is_some()
            || self.service.runtime().times_every_command()
            || self.service.monitors().any()
            || self.service.pause().is_on();
        if by_themselves {
            return answered;
        }
        let mut members: SmallVec<[Member<'_>; GROUP_MAX]> = SmallVec::new();
        for args in requests {
            match self.member(session, *args, members.last()) {
                // Keys of one space are looked at together.
                Some(member) if members.last().is_none_or(|last| last.has_space_of(&member)) => {
                    members.push(member);
                }
                Some(_) | None => break,
            }
        }
        if members.len() < 2 {
            return answered;
        }
        let keys: SmallVec<[KeyRef<'_>; GROUP_MAX]> =
            members.iter().flat_map(|member| member.keys().iter().copied()).collect();
        let space = members[0].space(session);
        let engine = self.service.engine();
        let done = engine.try_transact(Scope::Keys(&keys), space, self.now, |view| {
            view.warm(&keys);
            for member in &members {
                let mut reply = Reply::new(out, session.resp);
                let Ok(result) = self.answer(member, session, view, &mut reply) else { break };
                if let Err(error) = &result {
                    reply.error(error);
                }
                answered.push((member.number, result.err()));
                if out.len() >= REPLIES_BYTES_MAX {
                    break;
                }
            }
        });
        // Whoever must not wait is told so one by one.
        debug_assert!(done.is_ok() || answered.is_empty());
        answered
    }

    /// Answers one of a group, whose keys are locked. A twin may decline.
    #[inline]
    fn answer(
        &self,
        member: &Member<'_>,
        session: &Session,
        view: &mut View<'_>,
        reply: &mut Reply<'_>,
    ) -> Result<Result<(), Error>, Declined> {
        Ok(match &member.way {
            Way::Command(answer, request) => answer(request, Ground::Within(view), reply),
            // The script itself runs alone.
            Way::Twin(native) => return native.run(self, session, view, reply).map(Ok),
            Way::Check(checked) => {
                checked.run(self.witness(), view, reply);
                Ok(())
            }
        })
    }

    /// The request, if it may be answered in a group: it passes the gate, names one key, and is
    /// quick.
    fn member<'a>(
        &'a self,
        session: &Session,
        args: Args<'a>,
        last: Option<&Member<'a>>,
    ) -> Option<Member<'a>> {
        if let Some(member) = last.and_then(|last| self.member_like(session, args, last)) {
            return Some(member);
        }
        let number = match last {
            Some(last) if last.words().name() == args.name() => last.number,
            Some(_) | None => self.service.table().resolve(args).ok()?,
        };
        let entry = self.entry(number);
        if args.len() > WORDS_QUICK_MAX {
            return None;
        }
        let way = match entry.handler() {
            Handler::Keyed(_) if entry.spec.name == "RL.CHECK" => {
                self.gate(session, number, args).ok()?;
                let checked = check_words(self.court(), self.witness(), args).ok()?;
                return Some(Member { number, way: Way::Check(checked) });
            }
            Handler::Keyed(answer) => {
                if entry.spec.flags.has(Flags::SLOW) || entry.keys() != Keys::ONE {
                    return None;
                }
                self.gate(session, number, args).ok()?;
                Way::Command(answer, self.request(session, entry, args).ok()?)
            }
            Handler::Nested(_) if entry.spec.name == "EVALSHA" => {
                self.gate(session, number, args).ok()?;
                let last = last.and_then(|last| match &last.way {
                    Way::Twin(native) => Some(native),
                    Way::Command(..) | Way::Check(_) => None,
                });
                Way::Twin(Native::asked(self, session, args, last)?)
            }
            Handler::Nested(_) | Handler::Plain(_) | Handler::Blocking(_) | Handler::Parent => {
                return None;
            }
        };
        let member = Member { number, way };
        // A command that counts its words itself may have been asked without its key.
        (member.keys().len() == 1).then_some(member)
    }

    /// The request, if it differs from the last one in words only: a pipeline says the same
    /// command again and again. Of what the last one has passed, only memory is looked at anew.
    fn member_like<'a>(
        &'a self,
        session: &Session,
        args: Args<'a>,
        last: &Member<'a>,
    ) -> Option<Member<'a>> {
        let Way::Command(answer, like) = &last.way else { return None };
        if like.args.len() != args.len() || like.args.name() != args.name() {
            return None;
        }
        let entry = self.entry(last.number);
        if self.lacks_room(entry.spec.flags) {
            return None;
        }
        let way = Way::Command(*answer, self.request(session, entry, args).ok()?);
        Some(Member { number: last.number, way })
    }
}
