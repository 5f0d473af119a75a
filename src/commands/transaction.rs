//! MULTI, EXEC, DISCARD, WATCH, UNWATCH: several requests carried out at one moment.
//!
//! After MULTI, requests that pass the gate are queued as they came. EXEC locks the shards of all
//! their keys and of the watched ones (every shard, where a command sees more than its keys) and
//! carries them out in one transaction of the engine: nothing comes between, and time stands
//! still. A watched key remembers how often it had changed; EXEC compares.
//!
//! What is queued and watched is bounded. Watching has to end in the engine, too, so whoever
//! forgets a session calls [`Service::forget`](super::Service::forget) first.

use std::collections::BTreeMap;

use smallvec::SmallVec;

use super::call::{Answer, Call};
use super::monitor::Origin;
use super::request::Ground;
use super::runner::Runner;
use super::service::Service;
use super::session::{Outcome, Session};
use super::spec::{Arity, Flags, Group, Handler, Keys, Spec};
use super::table::Entry;
use crate::engine::{KeyRef, Scope, View};
use crate::protocol::{Args, Error, OwnedArgs, Reply};
use crate::time::Timestamp;

/// Requests of one transaction: more would hold up everyone else for too long.
const REQUESTS_MAX: usize = 1 << 16;

/// What those requests may take: one value of the largest common size, and more small requests
/// than there may be. The buffer that they grow in may have room for twice as much.
const REQUESTS_BYTES_MAX: usize = 64 << 20;

/// Room for requests that a connection keeps from one transaction to the next: a few usual ones.
const KEPT_BYTES_MAX: usize = 1 << 10;

/// Keys of a transaction that take no memory beside what is queued.
const KEYS_USUAL: usize = 8;

/// Keys that one connection may watch.
const WATCHED_MAX: usize = 1 << 14;

const QUICK: Flags =
    Flags::NOSCRIPT.and(Flags::LOADING).and(Flags::STALE).and(Flags::FAST).and(Flags::ALLOW_BUSY);

const fn spec(name: &'static str, flags: Flags, summary: &'static str, handler: Handler) -> Spec {
    let row = Spec::of(Group::Transactions, name, Arity::exactly(1), Keys::None, flags);
    Spec { since: "2.2.0", summary, handler, ..row }
}

const EXEC: Flags = Flags::NOSCRIPT
    .and(Flags::LOADING)
    .and(Flags::STALE)
    .and(Flags::SKIP_SLOWLOG)
    .and(Flags::SLOW)
    .and(Flags::AT_ONCE);

pub(super) const SPECS: &[Spec] = &[
    Spec {
        since: "2.0.0",
        complexity: "O(n) in the requests that were queued",
        ..spec(
            "DISCARD",
            QUICK.and(Flags::AT_ONCE),
            "Forget the requests since MULTI.",
            Handler::Plain(discard),
        )
    },
    Spec {
        since: "1.2.0",
        complexity: "What the requests take together",
        ..spec("EXEC", EXEC, "Carry out the requests since MULTI.", Handler::Nested(exec))
    },
    Spec {
        since: "1.2.0",
        ..spec(
            "MULTI",
            QUICK.and(Flags::AT_ONCE),
            "Queue what follows, for EXEC.",
            Handler::Plain(multi),
        )
    },
    Spec {
        complexity: "O(n) in the keys that were watched",
        ..spec("UNWATCH", QUICK, "Forget the watched keys.", Handler::Plain(unwatch))
    },
    Spec {
        arity: Arity::at_least(2),
        keys: Keys::REST,
        complexity: "O(n) in the keys",
        ..spec(
            "WATCH",
            QUICK.and(Flags::AT_ONCE),
            "Let the next EXEC do nothing if one of the keys changes.",
            Handler::Plain(watch),
        )
    },
];

/// What one connection has queued, and which keys it watches.
#[derive(Debug, Default)]
pub(crate) struct Transaction {
    /// Since MULTI.
    open: Option<Progress>,
    requests: Queue,
    watched: Watches,
}

#[derive(Clone, Copy, Debug, Default)]
struct Progress {
    requests: usize,
    bytes: usize,
    /// A request was refused: EXEC will do nothing.
    failed: bool,
}

/// Requests that have passed the gate, in one buffer.
#[derive(Debug, Default)]
struct Queue {
    words: OwnedArgs,
    requests: Vec<Queued>,
}

/// One of them: its command, and which of the words are its own.
#[derive(Clone, Copy, Debug)]
struct Queued {
    number: u16,
    first: usize,
    count: usize,
}

impl Queue {
    fn push(&mut self, number: u16, args: Args<'_>) {
        let first = self.words.as_args().len();
        args.iter().for_each(|word| self.words.push(word));
        self.requests.push(Queued { number, first, count: args.len() });
    }

    fn len(&self) -> usize {
        self.requests.len()
    }

    fn iter(&self) -> impl Iterator<Item = (u16, Args<'_>)> {
        self.requests.iter().map(|request| (request.number, self.words_of(request)))
    }

    fn words_of(&self, request: &Queued) -> Args<'_> {
        self.words.as_args().skip(request.first).first(request.count)
    }

    /// Forgets the requests, and keeps room for the next ones, if that is little.
    fn emptied(mut self) -> Self {
        let heap_bytes = self.words.heap_bytes() + self.requests.capacity() * size_of::<Queued>();
        if heap_bytes > KEPT_BYTES_MAX {
            return Self::default();
        }
        self.words.clear();
        self.requests.clear();
        self
    }
}

/// A database, and a key that is watched in it.
pub(super) type Watched = (usize, Box<[u8]>);

/// How often each key had changed when it was watched.
type Watches = BTreeMap<Watched, u64>;

/// Sessions are copied to be shown, and shown are numbers: requests and keys stay where they
/// are.
impl Clone for Transaction {
    fn clone(&self) -> Self {
        Self { open: self.open, ..Self::default() }
    }
}

impl Transaction {
    #[inline]
    pub(super) fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// How many requests are queued since MULTI, and the memory they take.
    pub(super) fn queued(&self) -> Option<(usize, usize)> {
        self.open.map(|open| (open.requests, open.bytes))
    }

    /// A request was refused: if that was after MULTI, EXEC will do nothing.
    pub(super) fn fail(&mut self) {
        if let Some(open) = &mut self.open {
            open.failed = true;
        }
    }

    /// Queues a request that has passed the gate.
    pub(super) fn queue(&mut self, number: u16, args: Args<'_>) -> Result<(), Error> {
        let Some(open) = &mut self.open else { return Err(Error::ExecWithoutMulti) };
        if open.failed {
            return Ok(());
        }
        let bytes = open.bytes + OwnedArgs::bytes_of(args) + size_of::<Queued>();
        if open.requests == REQUESTS_MAX || bytes > REQUESTS_BYTES_MAX {
            open.failed = true;
            self.requests = Queue::default();
            return Err(Error::text(format!(
                "MULTI: expected at most {REQUESTS_MAX} requests of {REQUESTS_BYTES_MAX} bytes \
                 in all"
            )));
        }
        (open.requests, open.bytes) = (open.requests + 1, bytes);
        self.requests.push(number, args);
        Ok(())
    }

    /// Ends what MULTI began. Returns the requests, or `None` where one was refused.
    fn close(&mut self) -> Option<Queue> {
        let failed = self.open.take().is_none_or(|open| open.failed);
        let requests = std::mem::take(&mut self.requests);
        (!failed).then_some(requests)
    }

    /// Takes the requests back once they are carried out.
    fn reuse(&mut self, requests: Queue) {
        self.requests = requests.emptied();
    }
}

fn multi(call: &mut Call<'_, '_>, reply: &mut Reply<'_>) -> Answer {
    if call.session.transaction.is_open() {
        return Err(Error::NestedMulti);
    }
    call.session.transaction.open = Some(Progress::default());
    call.session.changed = true;
    reply.ok();
    Ok(Outcome::Reply)
}

fn discard(call: &mut Call<'_, '_>, reply: &mut Reply<'_>) -> Answer {
    if !call.session.transaction.is_open() {
        return Err(Error::DiscardWithoutMulti);
    }
    abandon(call.service, call.session, call.now);
    reply.ok();
    Ok(Outcome::Reply)
}

/// Between MULTI and EXEC it is queued, and EXEC has forgotten the keys already.
fn unwatch(call: &mut Call<'_, '_>, reply: &mut Reply<'_>) -> Answer {
    forget_watched(call.service, call.session, call.now);
    reply.ok();
    Ok(Outcome::Reply)
}

fn watch(call: &mut Call<'_, '_>, reply: &mut Reply<'_>) -> Answer {
    let Call { service, session, args, now, .. } = call;
    let (db, Transaction { open, watched, .. }) = (session.db, &mut session.transaction);
    if open.is_some() {
        return Err(Error::WatchInMulti);
    }
    for key in args.skip(1).iter() {
        service.check_key_length(key)?;
        let place = (db, Box::from(key));
        if watched.contains_key(&place) {
            continue;
        }
        if watched.len() == WATCHED_MAX {
            return Err(Error::text(format!("WATCH: expected at most {WATCHED_MAX} keys in all")));
        }
        let key_ref = service.engine().key(key);
        let scope = Scope::Keys(std::slice::from_ref(&key_ref));
        let changes = service.engine().try_transact(scope, db, *now, |view| view.watch(key_ref))?;
        watched.insert(place, changes);
    }
    reply.ok();
    Ok(Outcome::Reply)
}

/// Ends what MULTI and WATCH have begun.
pub(super) fn abandon(service: &Service, session: &mut Session, now: Timestamp) {
    session.transaction.close();
    session.changed = true;
    forget_watched(service, session, now);
}

fn forget_watched(service: &Service, session: &mut Session, now: Timestamp) {
    forget(service, std::mem::take(&mut session.transaction.watched).into_keys(), now);
}

/// Ends the watching of these keys; where a shard is held, within a second.
fn forget(service: &Service, watched: impl IntoIterator<Item = Watched>, now: Timestamp) {
    for (db, name) in watched {
        let key = service.engine().key(&name);
        let scope = Scope::Keys(std::slice::from_ref(&key));
        let done = service.engine().attempt(scope, db, now, |view| view.unwatch(key));
        if done.is_err() {
            service.unwatched().lock().push((db, name));
        }
    }
}

/// Ends the watching that had to be put off.
pub(super) fn forget_rest(service: &Service, now: Timestamp) {
    let rest = std::mem::take(&mut *service.unwatched().lock());
    forget(service, rest, now);
}

/// A request was refused before it was carried out; returns what its client is told. It spoils
/// the transaction that it stands in, and EXEC ends it.
pub(super) fn reject(
    service: &Service,
    session: &mut Session,
    (entry, now): (&Entry, Timestamp),
    error: Error,
) -> Error {
    session.transaction.fail();
    if entry.spec.name != "EXEC" {
        return error;
    }
    abandon(service, session, now);
    Error::exec_refused(&error)
}

fn exec(runner: &mut Runner<'_>, _: Args<'_>, _: Ground<'_, '_>, reply: &mut Reply<'_>) -> Answer {
    let (worker, now) = (runner.worker, runner.worker.now);
    let service = &*worker.service;
    if !runner.session.transaction.is_open() {
        return Err(Error::ExecWithoutMulti);
    }
    runner.session.changed = true;
    let Some(requests) = runner.session.transaction.close() else {
        forget_watched(service, runner.session, now);
        return Err(Error::ExecAborted);
    };
    if requests.iter().any(|(number, _)| worker.lacks_room(worker.entry(number).spec.flags)) {
        forget_watched(service, runner.session, now);
        return Err(Error::exec_refused(&Error::OutOfMemory));
    }
    let watched = std::mem::take(&mut runner.session.transaction.watched);
    let keys = keys(service, &requests, &watched);
    let scope = keys.as_deref().map_or(Scope::All, Scope::Keys);
    let db = runner.session.db;
    let done = service.engine().try_transact(scope, db, now, |view| {
        if has_changed(service, &watched, view) {
            reply.null_array();
            return (Vec::new(), Outcome::Reply);
        }
        carry_out(runner, &requests, view, reply)
    });
    drop(keys);
    let Ok((timed, outcome)) = done else {
        forget(service, watched.into_keys(), now);
        return Err(Error::exec_refused(&Error::Busy));
    };
    for (place, span) in timed {
        let args = requests.words_of(&requests.requests[place]);
        service.note_duration(runner.session, runner.host, args, span);
    }
    runner.session.transaction.reuse(requests);
    Ok(outcome)
}

/// The keys whose shards are to be locked; `None` for all shards.
fn keys<'r>(
    service: &Service,
    requests: &'r Queue,
    watched: &'r Watches,
) -> Option<SmallVec<[KeyRef<'r>; KEYS_USUAL]>> {
    let engine = service.engine();
    let mut keys: SmallVec<_> = watched.keys().map(|(_, key)| engine.key(key)).collect();
    for (number, args) in requests.iter() {
        let entry = service.table().entry(number)?;
        // A script may ask for keys that it has not named.
        if entry.sees_all(args) || matches!(entry.handler(), Handler::Nested(_)) {
            return None;
        }
        for key in entry.keys().places(args).filter_map(|place| args.get(place)) {
            keys.push(engine.key(key));
        }
    }
    Some(keys)
}

/// Whether a watched key has changed. None is watched any longer.
fn has_changed(service: &Service, watched: &Watches, view: &mut View<'_>) -> bool {
    let mut changed = false;
    for ((db, key), changes) in watched {
        let key = service.engine().key(key);
        view.select(*db);
        changed |= view.changes(key) != Some(*changes);
        view.unwatch(key);
    }
    changed
}

/// A request's place in the queue, and when it began and ended.
type Timed = (usize, (Timestamp, Timestamp));

/// Carries out the requests. Returns those that are to be timed one by one.
fn carry_out(
    runner: &mut Runner<'_>,
    requests: &Queue,
    view: &mut View<'_>,
    reply: &mut Reply<'_>,
) -> (Vec<Timed>, Outcome) {
    let worker = runner.worker;
    let (mut timed, mut outcome) = (Vec::new(), Outcome::Reply);
    reply.array(requests.len());
    for (place, (number, args)) in requests.iter().enumerate() {
        let is_timed = worker.is_timed_alone(number, args);
        let began = is_timed.then(|| worker.clock().now());
        runner.show((number, args), Origin::Client);
        match runner.run_within((number, args), view, reply) {
            // Nothing waits here: what would, has answered.
            Ok(Outcome::Reply | Outcome::Pushed | Outcome::Block | Outcome::Held) => {}
            // An array has as many elements as it says.
            Ok(Outcome::Silent) => reply.ok(),
            Ok(Outcome::Close) => outcome = Outcome::Close,
            Err(error) => reply.error(&error),
        }
        timed.extend(began.map(|began| (place, (began, worker.clock().now()))));
    }
    (timed, outcome)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queue_ends_at_its_bounds_and_the_transaction_with_it() {
        let small = OwnedArgs::of(["PING"]);
        let large = OwnedArgs::of([vec![b'x'; REQUESTS_BYTES_MAX / 2]]);
        for (args, fitting) in [(small, REQUESTS_MAX), (large, 1)] {
            let open = Some(Progress::default());
            let mut transaction = Transaction { open, ..Transaction::default() };
            for _ in 0..fitting {
                assert_eq!(transaction.queue(0, args.as_args()), Ok(()));
            }
            assert_eq!(transaction.queued().map(|(requests, _)| requests), Some(fitting));
            assert!(transaction.queue(0, args.as_args()).is_err());
            assert!(transaction.queue(0, args.as_args()).is_ok(), "as Redis answers, in vain");
            assert_eq!(transaction.requests.len(), 0, "nothing is kept");
            assert!(transaction.close().is_none());
        }
    }
}
