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
use super::spec::{Flags, Handler, KeyList, Keyed, Keys};
use super::twins::Declined;
use crate::engine::{BUCKETS, KeyRef, Patience};
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

/// How it is answered. Members are copied about, so what is large stands in the worker's arena.
enum Way<'a> {
    Command(Keyed, Args<'a>, KeyRef<'a>),
    /// EVALSHA of a script that has a native twin.
    Twin(&'a Native<'a>),
    /// RL.CHECK: its keys are the buckets of its tenant's quotas, as many as there are.
    Check(&'a Checked<'a>),
}

// Nothing in the arena is dropped.
const _: () = assert!(!std::mem::needs_drop::<Checked<'_>>());

impl<'a> Member<'a> {
    fn words(&self) -> Args<'a> {
        match &self.way {
            Way::Command(_, words, _) => *words,
            Way::Twin(native) => native.request,
            Way::Check(checked) => checked.words,
        }
    }

    fn keys(&self) -> &[KeyRef<'a>] {
        match &self.way {
            Way::Command(.., key) => std::slice::from_ref(key),
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

/// Requests of one command in a row that have been answered, and the errors among the answers.
struct Answered {
    number: u16,
    calls: u32,
    errors: Vec<Error>,
}

/// All of a group; nearly always one command's.
type AllAnswered = SmallVec<[Answered; 1]>;

fn note(all: &mut AllAnswered, number: u16, result: Result<(), Error>) {
    match all.last_mut() {
        Some(last) if last.number == number => {
            last.calls += 1;
            last.errors.extend(result.err());
        }
        Some(_) | None => {
            let errors = result.err().into_iter().collect();
            all.push(Answered { number, calls: 1, errors });
        }
    }
}

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
        let mut count = 0;
        for Answered { number, calls, errors } in answered {
            session.last_command = number;
            self.count(number, calls, &errors);
            count += calls as usize;
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
    ) -> AllAnswered {
        let mut answered = AllAnswered::new();
        if self.answers_one_by_one(session) {
            return answered;
        }
        let members = self.members(session, requests);
        if members.len() < 2 {
            return answered;
        }
        let mut keys: SmallVec<[KeyRef<'_>; GROUP_MAX]> = SmallVec::new();
        for key in members.iter().flat_map(Member::keys) {
            keys.push(*key);
        }
        let space = members[0].space(session);
        let engine = self.service.engine();
        let done = engine.try_transact_group(&mut keys, space, self.now, |view, keys| {
            let mut last = None;
            for (at, member) in members.iter().enumerate() {
                let mut reply = Reply::new(out, session.resp);
                let result = match &member.way {
                    Way::Command(answer, words, _) => {
                        // Each of its group has one key, too.
                        let said = (member.number, *words);
                        let request = self.next_request(session, said, keys[at], &mut last);
                        answer(request, Ground::Within(view), &mut reply)
                    }
                    // A twin may decline: the script itself runs alone.
                    Way::Twin(native) => match native.run(self, session, view, &mut reply) {
                        Ok(()) => Ok(()),
                        Err(Declined) => break,
                    },
                    Way::Check(checked) => {
                        checked.run(self.witness(), view, &mut reply);
                        Ok(())
                    }
                };
                if let Err(error) = &result {
                    reply.error(error);
                }
                note(&mut answered, member.number, result);
                if out.len() >= REPLIES_BYTES_MAX {
                    break;
                }
            }
        });
        // Whoever must not wait is told so one by one.
        debug_assert!(done.is_ok() || answered.is_empty());
        answered
    }

    fn answers_one_by_one(&self, session: &Session) -> bool {
        session.transaction.is_open()
            || session.replies != Replies::On
            // What it caused itself is pushed right after the reply of the cause.
            || session.tracking.is_some()
            || self.service.runtime().times_every_command()
            || self.service.monitors().any()
            || self.service.pause().is_on()
    }

    /// The first of these requests, as many as can be answered together.
    #[inline]
    fn members<'a>(
        &'a self,
        session: &Session,
        requests: &[Args<'a>],
    ) -> SmallVec<[Member<'a>; GROUP_MAX]> {
        let mut members: SmallVec<[Member<'a>; GROUP_MAX]> = SmallVec::new();
        for args in requests {
            match self.member(session, *args, members.last()) {
                // Keys of one space are looked at together.
                Some(member) if members.last().is_none_or(|last| last.has_space_of(&member)) => {
                    members.push(member);
                }
                Some(_) | None => break,
            }
        }
        members
    }

    /// The request of a member, made of the one before it where both are of one command: they
    /// differ in words and key. Which shards it would lock by itself is asked by nobody.
    #[inline]
    fn next_request<'a, 'l>(
        &'a self,
        session: &Session,
        (number, words): (u16, Args<'a>),
        key: KeyRef<'a>,
        last: &'l mut Option<(u16, Request<'a>)>,
    ) -> &'l Request<'a> {
        match last {
            Some((of, request)) if *of == number => {
                request.args = words;
                request.keys[0] = key;
            }
            Some(_) | None => {
                let keys = KeyList::from_buf([key]);
                let request = self.request_on(session, self.entry(number), words, keys);
                *last = Some((number, request));
            }
        }
        let (_, request) = last.as_ref().expect("it was there, or has just been put there");
        request
    }

    /// The request, if it may be answered in a group: it passes the gate, names one key, and is
    /// quick.
    fn member<'a>(
        &'a self,
        session: &Session,
        args: Args<'a>,
        last: Option<&Member<'a>>,
    ) -> Option<Member<'a>> {
        if let Some(member) = last.and_then(|last| self.member_like(args, last)) {
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
                Way::Check(self.arena.alloc(checked))
            }
            Handler::Keyed(answer) => {
                if entry.spec.flags.has(Flags::SLOW) || entry.keys() != Keys::ONE {
                    return None;
                }
                self.gate(session, number, args).ok()?;
                // A command that counts its words itself may have been asked without its key.
                Way::Command(answer, args, self.key(args.get(1)?).ok()?)
            }
            Handler::Nested(_) if entry.spec.name == "EVALSHA" => {
                self.gate(session, number, args).ok()?;
                let last = last.and_then(|last| match &last.way {
                    Way::Twin(native) => Some(*native),
                    Way::Command(..) | Way::Check(_) => None,
                });
                let native = Native::asked(self, session, args, last)?;
                // One key is kept without an allocation, so that there is nothing to drop.
                (native.keys.len() == 1).then(|| Way::Twin(self.arena.alloc(native)))?
            }
            Handler::Nested(_) | Handler::Plain(_) | Handler::Blocking(_) | Handler::Parent => {
                return None;
            }
        };
        Some(Member { number, way })
    }

    /// The request, if it differs from the last one in words only: a pipeline says the same
    /// command again and again. Of what the last one has passed, only memory is looked at anew.
    #[inline]
    fn member_like<'a>(&'a self, args: Args<'a>, last: &Member<'a>) -> Option<Member<'a>> {
        let Way::Command(answer, like, _) = &last.way else { return None };
        if like.len() != args.len() || like.name() != args.name() {
            return None;
        }
        let entry = self.entry(last.number);
        if self.lacks_room(entry.spec.flags) {
            return None;
        }
        let way = Way::Command(*answer, args, self.key(args.get(1)?).ok()?);
        Some(Member { number: last.number, way })
    }
}
