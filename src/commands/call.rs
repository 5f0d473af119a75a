//! One call: from a request's words to its reply, through one gate.
//!
//! Every command passes the same checks in the same order (known, arity, authentication, memory,
//! key length), is counted in one place, and gets at state only through [`Ground::transact`].
//! A [`Worker`] belongs to one thread and answers whole batches: it reads the clock when a batch
//! begins and ends, and again after a command that may take long.

use std::cell::{RefCell, RefMut};
use std::sync::Arc;

use bumpalo::Bump;

use super::host::Host;
use super::last_quota::LastQuota;
use super::monitor::Origin;
use super::overload::{self, Need, Sieve, Strain};
use super::policed::{Court, Witness};
use super::request::{Ground, Request};
use super::runner::Runner;
use super::running::Slot;
use super::service::Service;
use super::session::{Outcome, Replies, Session};
use super::spec::{Flags, KeyList, Keys};
use super::table::Entry;
use super::tally::{Runs, Tally};
use super::transaction;
use crate::engine::{KeyRef, Patience, Stats};
use crate::load::Tier;
use crate::lua::{Interpreter, Recent, Script};
use crate::policy::Snapshot;
use crate::prefilter::Lane;
use crate::protocol::{Args, Error, Reply};
use crate::time::{Clock, Timestamp};

/// After so many requests of one batch the clock is read again.
const CLOCK_EVERY: u32 = 256;

/// A request with more words than this is timed by itself.
pub(super) const WORDS_QUICK_MAX: usize = 1_000;

/// What a handler without keys leaves behind.
pub(crate) type Answer = Result<Outcome, Error>;

/// What a handler without keys works with.
pub(crate) struct Call<'c, 'h> {
    pub(crate) service: &'c Service,
    pub(crate) session: &'c mut Session,
    pub(crate) host: &'h dyn Host,
    pub(crate) args: Args<'c>,
    pub(crate) now: Timestamp,
    /// Of the engine, where its shards are locked already and must not be locked again.
    pub(super) stats: Option<Stats>,
    /// EXEC carries it out, not its client's own request.
    pub(super) is_within: bool,
    /// Set by a handler after which the engine may have to tell of other changes than before.
    pub(super) settles: bool,
}

impl Call<'_, '_> {
    /// What the engine has counted and holds. A command that asks has `Keys::All`.
    pub(super) fn stats(&self) -> Stats {
        self.stats.unwrap_or_else(|| self.service.engine().stats())
    }
}

/// Answers the requests of one thread's connections.
pub(crate) struct Worker {
    pub(super) service: Arc<Service>,
    tally: Arc<Tally>,
    slot: Arc<Slot>,
    runs_scripts: bool,
    interpreter: RefCell<Interpreter>,
    last_quota: LastQuota,
    recent: RefCell<Recent>,
    clock: Clock,
    pub(super) now: Timestamp,
    batch: Batch,
    /// The policies in force for the batch.
    policies: Arc<Snapshot>,
    /// What the checks of one group are made of; cleared before the next.
    pub(super) arena: Bump,
    lane: Arc<Lane>,
    /// How hard pressed the server is for the batch, and what of its requests is known for that.
    pub(super) strain: Strain,
    pub(super) sieve: Sieve,
    /// Why the next request is refused.
    pub(super) refusal: Option<overload::Reason>,
    /// Under strain, of the connection that asks.
    pub(super) connection_tier: Option<Tier>,
    overload_lane: Arc<overload::Lane>,
}

/// The batch being answered: when it began, and which commands share its time.
#[derive(Default)]
struct Batch {
    began: Timestamp,
    calls: u32,
    /// When its first stretch began: it is cut where the clock is read again.
    entered: Timestamp,
    /// In order, repeats joined.
    runs: Runs,
}

impl Worker {
    pub(crate) fn new(service: Arc<Service>, clock: Clock) -> Self {
        let tally = service.new_tally();
        let (slot, worker) = service.running().new_slot();
        let now = clock.now();
        let setup = service.runtime().scripts.setup(worker, Arc::clone(slot.killed()));
        let interpreter = RefCell::new(Interpreter::new(&setup));
        let runs_scripts = true;
        let policies = Arc::clone(&service.policies().snapshot());
        let lane = service.prefilter().new_lane();
        let overload_lane = service.overload().new_lane();
        Self {
            service,
            tally,
            slot,
            runs_scripts,
            interpreter,
            last_quota: LastQuota::default(),
            recent: RefCell::default(),
            clock,
            now,
            batch: Batch::default(),
            policies,
            arena: Bump::new(),
            lane,
            strain: Strain::default(),
            sieve: Sieve::default(),
            refusal: None,
            connection_tier: None,
            overload_lane,
        }
    }

    /// Where the rules are looked up that hold for this batch.
    pub(super) fn court(&self) -> Court<'_> {
        let (snapshot, engine) = (&*self.policies, self.service.engine());
        let key_bytes_max = self.service.runtime().key_bytes_max();
        Court { snapshot, engine, arena: &self.arena, now: self.now, key_bytes_max }
    }

    pub(super) fn witness(&self) -> Witness<'_> {
        Witness { service: &self.service, lane: &self.lane, need: self.need() }
    }

    pub(super) fn need(&self) -> Need<'_> {
        let overload = self.service.overload();
        let (strain, connection_tier) = (self.strain, self.connection_tier);
        Need { strain, overload, lane: &self.overload_lane, connection_tier }
    }

    /// The moment that the requests of the batch are at.
    pub(crate) fn now(&self) -> Timestamp {
        self.now
    }

    /// For the worker that must not be held up: what runs scripts is answered BUSY.
    pub(crate) fn refuse_scripts(&mut self) {
        self.runs_scripts = false;
    }

    pub(super) fn runs_scripts(&self) -> bool {
        self.runs_scripts
    }

    pub(crate) fn begin(&mut self) -> Timestamp {
        self.now = self.clock.now();
        self.service.refresh(&mut self.policies);
        self.strain = self.service.overload().strain();
        self.sieve = Sieve::default();
        self.batch.entered = self.now;
        self.batch.began = self.now;
        self.batch.calls = 0;
        self.batch.runs.clear();
        self.now
    }

    /// Shares the time of the batch among its commands, and tells others of what it has changed.
    pub(crate) fn end(&mut self, host: &dyn Host) {
        self.service.broadcast(host);
        self.settle(self.clock.now());
        self.overload_lane.was_busy(self.now.since(self.batch.entered));
    }

    fn settle(&mut self, now: Timestamp) {
        self.tally.share(&mut self.batch.runs, now.since(self.batch.began));
        self.now = now;
        self.batch.began = now;
    }

    /// Counts calls that were answered in a group, and how those of them failed that did.
    pub(super) fn count(&mut self, number: u16, calls: u32, errors: &[Error]) {
        let settled = self.batch.calls / CLOCK_EVERY;
        self.batch.calls += calls;
        if self.batch.calls / CLOCK_EVERY > settled {
            self.settle(self.clock.now());
        }
        self.batch.runs.count(number, calls);
        for error in errors {
            self.batch.runs.fail();
            self.tally.error(error);
        }
    }

    /// Answers one request into `out`.
    pub(crate) fn call(
        &mut self,
        session: &mut Session,
        host: &dyn Host,
        args: Args<'_>,
        out: &mut Vec<u8>,
    ) -> Outcome {
        self.batch.calls += 1;
        if self.batch.calls.is_multiple_of(CLOCK_EVERY) {
            self.settle(self.clock.now());
        }
        if session.replies == Replies::SkipNext {
            session.replies = Replies::SkipThis;
        }
        let mark = out.len();
        let mut reply = Reply::new(out, session.resp);
        let outcome = self.dispatch(session, host, args, &mut reply);
        self.service.hand_out(host, self.now, Patience::UntilBusy);
        if session.caching
            && !session.transaction.is_open()
            && !self.is_of_client(session.last_command)
        {
            session.caching = false;
        }
        match session.replies {
            Replies::On | Replies::SkipNext => return outcome,
            Replies::SkipThis => session.replies = Replies::On,
            Replies::Off => {}
        }
        match outcome {
            Outcome::Pushed => return outcome,
            Outcome::Block => session.waits_silently = true,
            Outcome::Held | Outcome::Close | Outcome::Reply | Outcome::Silent => out.truncate(mark),
        }
        if outcome == Outcome::Reply { Outcome::Silent } else { outcome }
    }

    fn is_of_client(&self, number: u16) -> bool {
        self.service.table().entry(number).is_some_and(|entry| entry.spec.name == "CLIENT")
    }

    fn dispatch(
        &mut self,
        session: &mut Session,
        host: &dyn Host,
        args: Args<'_>,
        reply: &mut Reply<'_>,
    ) -> Outcome {
        let number = match self.service.table().resolve(args) {
            Ok(number) => number,
            Err(error) => {
                session.transaction.fail();
                return self.refuse(&error, reply);
            }
        };
        session.last_command = number;
        let gate = self.gate(session, number, args);
        if let Err(error) = gate.and_then(|()| self.heed_refusal()) {
            self.tally.command(number).rejected();
            let entry = (self.entry(number), self.now);
            let error = transaction::reject(&self.service, session, entry, error);
            return self.refuse(&error, reply);
        }
        if session.transaction.is_open() && !self.entry(number).spec.flags.has(Flags::AT_ONCE) {
            return match session.transaction.queue(number, args) {
                Ok(()) => {
                    session.changed = true;
                    reply.simple("QUEUED");
                    Outcome::Reply
                }
                Err(error) => self.refuse(&error, reply),
            };
        }
        match self.carry_out(session, host, (number, args), reply) {
            Ok(outcome) => outcome,
            Err(error) => self.refuse(&error, reply),
        }
    }

    /// Carries out a request that has passed the gate, and counts it.
    fn carry_out(
        &mut self,
        session: &mut Session,
        host: &dyn Host,
        (number, args): (u16, Args<'_>),
        reply: &mut Reply<'_>,
    ) -> Answer {
        let alone = self.is_timed_alone(number, args);
        if alone {
            self.settle(self.clock.now());
        }
        self.batch.runs.count(number, 1);
        let is_exec = self.entry(number).spec.flags.has(Flags::SKIP_SLOWLOG);
        let monitored = self.service.monitors().any() && !self.entry(number).is_administrative();
        if monitored && !is_exec {
            self.show(session, host, args);
        }
        let mut runner = Runner::new(self, session, host);
        let result = runner.run((number, args), Ground::Lock(self.service.engine()), reply);
        let mut inner = runner.finish();
        if result.is_err() {
            self.batch.runs.fail();
        }
        if monitored && is_exec {
            self.show(session, host, args);
        }
        if alone {
            let began = self.batch.began;
            self.settle(self.clock.now());
            self.tally.share(&mut inner, self.now.since(began));
            let span = (began, self.now);
            if let (Ok(Outcome::Block), Some(wait)) = (&result, session.wait()) {
                wait.note(args, span);
            } else if !self.entry(number).spec.flags.has(Flags::SKIP_SLOWLOG) {
                self.service.note_duration(session, host, args, span);
            }
        }
        result
    }

    #[cold]
    fn show(&self, session: &Session, host: &dyn Host, args: Args<'_>) {
        self.service.monitors().show(host, (session, Origin::Client), args, self.clock.now());
    }

    /// Whether the time of such a request is no part of its batch's, which is shared.
    pub(super) fn is_timed_alone(&self, number: u16, args: Args<'_>) -> bool {
        self.entry(number).spec.flags.has(Flags::SLOW)
            || args.len() > WORDS_QUICK_MAX
            || self.service.runtime().times_every_command()
    }

    pub(super) fn entry(&self, number: u16) -> &Entry {
        self.service.table().entry(number).expect("the table made this number")
    }

    pub(super) fn count_error(&self, error: &Error) {
        self.tally.error(error);
    }

    /// Counts a command that a script may not give.
    pub(super) fn count_rejection(&self, number: u16, error: &Error) {
        self.tally.command(number).rejected();
        self.tally.error(error);
    }

    /// One script runs at a time, and none from within another.
    pub(super) fn interpreter(&self) -> RefMut<'_, Interpreter> {
        self.interpreter.borrow_mut()
    }

    /// The script of a name as a client sent it.
    pub(super) fn script(&self, name: &[u8]) -> Option<Arc<Script>> {
        self.service.scripts().named(name, &mut self.recent.borrow_mut())
    }

    /// Of the script that it runs.
    pub(super) fn slot(&self) -> &Slot {
        &self.slot
    }

    pub(super) fn clock(&self) -> &Clock {
        &self.clock
    }

    pub(super) fn request<'a>(
        &'a self,
        session: &Session,
        entry: &Entry,
        args: Args<'a>,
    ) -> Result<Request<'a>, Error> {
        let keys = entry.keys();
        let key = |bytes: &'a [u8]| self.key(bytes);
        let list = match args.get(1) {
            // Nearly always: without asking where keys stand.
            Some(bytes) if keys == Keys::ONE => KeyList::from_buf([key(bytes)?]),
            _ => keys
                .places(args)
                .map(|place| key(args.get(place).unwrap_or_default()))
                .collect::<Result<_, _>>()?,
        };
        Ok(self.request_on(session, entry, args, list))
    }

    /// The key of these bytes, if one may be so long.
    #[inline]
    pub(super) fn key<'a>(&'a self, bytes: &'a [u8]) -> Result<KeyRef<'a>, Error> {
        self.service.check_key_length(bytes)?;
        Ok(self.service.engine().key(bytes))
    }

    pub(super) fn request_on<'a>(
        &'a self,
        session: &Session,
        entry: &Entry,
        args: Args<'a>,
        keys: KeyList<'a>,
    ) -> Request<'a> {
        Request {
            service: &self.service,
            last_quota: &self.last_quota,
            args,
            keys,
            db: session.db,
            now: self.now,
            everything: entry.sees_all(args),
            touches: !session.no_touch || entry.spec.name == "TOUCH",
            connection: session.id,
            tracks: session.tracks() && entry.spec.flags.has(Flags::READONLY),
            lane: &self.lane,
            need: self.need(),
        }
    }

    /// What every command passes before it is carried out.
    pub(super) fn gate(&self, session: &Session, number: u16, args: Args<'_>) -> Result<(), Error> {
        let entry = self.entry(number);
        let flags = entry.spec.flags;
        if !entry.arity().allows(args.len()) {
            return Err(Error::wrong_arity(&entry.name));
        }
        if !self.service.lets_in(session) && !flags.has(Flags::NO_AUTH) {
            return Err(Error::NoAuth);
        }
        self.permit(session, entry)?;
        if session.monitors && (flags.has(Flags::WRITE) || flags.has(Flags::READONLY)) {
            return Err(Error::text("Replica can't interact with the keyspace"));
        }
        if session.is_restricted() && !flags.has(Flags::SUBSCRIBER) {
            return Err(Error::Subscriber(entry.name.clone()));
        }
        let mut flags = flags;
        if session.transaction.is_open() {
            if entry.flags.has(Flags::NO_MULTI) {
                return Err(Error::NotInTransaction);
            }
            if !flags.has(Flags::AT_ONCE) {
                // The queue takes memory, too.
                flags = flags | Flags::DENYOOM;
            }
        }
        if self.lacks_room(flags) {
            return Err(Error::OutOfMemory);
        }
        if self.service.engine().long().is_any() && !entry.flags.has(Flags::ALLOW_BUSY) {
            return Err(self.service.running().busy());
        }
        Ok(())
    }

    /// Where operators have a password, what is theirs is for those alone who have given it.
    #[inline]
    pub(super) fn permit(&self, session: &Session, entry: &Entry) -> Result<(), Error> {
        let is_theirs = self.service.runtime().has_operator_password();
        if is_theirs && !session.is_operator && entry.is_administrative() {
            return Err(Error::NoPermission(session.user(), entry.name.clone()));
        }
        Ok(())
    }

    /// Whether a command with these flags is refused at the memory bound. For one that grows
    /// memory, room is made first.
    pub(super) fn lacks_room(&self, flags: Flags) -> bool {
        let engine = self.service.engine();
        let grows = flags.has(Flags::DENYOOM) || flags.has(Flags::MAKES_KEYS);
        grows && engine.is_full() && !engine.make_room(self.now) && flags.has(Flags::DENYOOM)
    }

    fn refuse(&self, error: &Error, reply: &mut Reply<'_>) -> Outcome {
        self.tally.error(error);
        reply.error(error);
        Outcome::Reply
    }
}
