//! Running a script: over which shards, once or twice, and how it ends.
//!
//! A script runs over the shards of the keys that it declared, while everything it does can be
//! taken back. If it then asks for another key, or for the whole keyspace, all is taken back, the
//! script is marked for good, and it runs again over all shards with the same arguments. So two
//! scripts never wait for each other in a circle, and nobody sees half of one.
//!
//! Within a transaction of EXEC all shards are locked already.

use super::call::Answer;
use super::caller::{Caller, Reach, Rights};
use super::native::Native;
use super::pubsub::HeldBack;
use super::request::Ground;
use super::runner::Runner;
use super::running::Kind;
use super::session::Outcome;
use super::spec::{Flags, KeyList};
use crate::engine::{Engine, Scope, View};
use crate::lua::{Call, Failure, Found, Invocation, Script, ScriptFlags};
use crate::protocol::{Args, Error, Reply};

/// What is run.
#[derive(Clone, Copy, Debug)]
pub(super) enum Program<'p> {
    Script(&'p Script),
    Function(&'p Found),
}

/// Whether the command that runs a script lets it write.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Access {
    ReadWrite,
    ReadOnly,
}

/// The words of a request that a script is given.
#[derive(Clone, Copy, Debug)]
pub(super) struct Words<'p> {
    pub(super) keys: Args<'p>,
    pub(super) args: Args<'p>,
}

impl<'p> Words<'p> {
    /// Of the request's words from its number of keys on; `not_a_number` is said of another one.
    pub(super) fn read(request: Args<'p>, not_a_number: Error) -> Result<Self, Error> {
        let count = request.get(2).and_then(crate::protocol::parse_i64).ok_or(not_a_number)?;
        let words = request.skip(3);
        let Ok(count) = usize::try_from(count) else {
            return Err(Error::text("Number of keys can't be negative"));
        };
        if count > words.len() {
            return Err(Error::text("Number of keys can't be greater than number of args"));
        }
        Ok(Self { keys: words.first(count), args: words.skip(count) })
    }
}

/// A script with its arguments, ready to run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Job<'p> {
    pub(super) program: Program<'p>,
    pub(super) words: Words<'p>,
    pub(super) access: Access,
}

impl Job<'_> {
    /// What the script may do, or why it may not run at all. `is_full`: the memory bound is
    /// reached, and nothing can be evicted.
    pub(super) fn rights(&self, is_full: bool) -> Result<Rights, Error> {
        let flags = match self.program {
            Program::Script(script) => script.flags(),
            Program::Function(found) => Some(found.function().flags),
        };
        let reads_only = self.access == Access::ReadOnly;
        let Some(flags) = flags else {
            // Of the old kind: only its commands tell what it does.
            return Ok(Rights { writes: !reads_only, grows: !is_full });
        };
        let writes = !flags.has(ScriptFlags::NO_WRITES);
        let grows = !is_full || flags.has(ScriptFlags::ALLOW_OOM);
        if writes && reads_only {
            return Err(Error::text(
                "Can not execute a script with write flag using *_ro command.",
            ));
        }
        if writes && !grows {
            return Err(Error::OutOfMemory);
        }
        Ok(Rights { writes, grows })
    }

    fn is_wide(&self) -> bool {
        match self.program {
            Program::Script(script) => script.is_wide(),
            Program::Function(found) => found.is_wide(),
        }
    }

    fn mark_wide(&self) {
        match self.program {
            Program::Script(script) => script.mark_wide(),
            Program::Function(found) => found.mark_wide(),
        }
    }
}

/// Runs the script of a request and writes its reply.
pub(super) fn run(
    runner: &mut Runner<'_>,
    job: &Job<'_>,
    (request, ground): (Args<'_>, Ground<'_, '_>),
    reply: &mut Reply<'_>,
) -> Answer {
    let worker = runner.worker;
    if !worker.runs_scripts() {
        return Err(worker.service.running().busy());
    }
    let rights = job.rights(worker.lacks_room(Flags::DENYOOM))?;
    let ground = match Native::of(worker, runner.session, (job, request)) {
        None => ground,
        Some(native) => match native.answer(runner, ground, reply)? {
            None => return Ok(Outcome::Reply),
            Some(ground) => ground,
        },
    };
    let kind = match job.program {
        Program::Script(_) => Kind::Eval,
        Program::Function(found) => Kind::function(&found.function().name, request),
    };
    let (db, long) = (runner.session.db, worker.service.engine().long());
    let running = worker.slot().begin(kind, worker.now, long).ok_or(Error::ScriptKilled)?;
    let result = match ground {
        Ground::Lock(engine) => lock_and_run(runner, job, (engine, rights), reply),
        Ground::Within(view) => {
            worker.slot().count_all(false);
            run_in(runner, job, (view, Reach::All, rights), reply)
        }
    };
    drop(running);
    // SELECT lasts as long as the script.
    runner.session.db = db;
    match result {
        Ok(()) => Ok(Outcome::Reply),
        Err(Failure::Error(error)) => Err(error),
        // All shards were there: it was killed when it began to write.
        Err(Failure::Abandoned) => Err(Error::ScriptKilled),
    }
}

fn lock_and_run(
    runner: &mut Runner<'_>,
    job: &Job<'_>,
    (engine, rights): (&Engine, Rights),
    reply: &mut Reply<'_>,
) -> Result<(), Failure> {
    let (worker, db) = (runner.worker, runner.session.db);
    let slot = worker.slot();
    let again = !job.is_wide();
    if again {
        let keys: KeyList<'_> = job.words.keys.iter().map(|key| engine.key(key)).collect();
        runner.session.held_back = Some(HeldBack::default());
        let result = engine.try_transact(Scope::Keys(&keys), db, worker.now, |view| {
            let mut revocable = view.revocable();
            let ground = (revocable.view(), Reach::Declared, rights);
            let result = run_in(runner, job, ground, reply);
            if result != Err(Failure::Abandoned) {
                revocable.keep();
            }
            result
        });
        let held_back = runner.session.held_back.take().unwrap_or_default();
        let result = result.map_err(Error::from)?;
        if result != Err(Failure::Abandoned) {
            held_back.publish(worker.service.channels(), runner.host);
        }
        if result != Err(Failure::Abandoned) || slot.is_killed() {
            slot.count_declared();
            return result;
        }
        job.mark_wide();
        slot.forget_writes();
        runner.log.take_back();
        runner.session.db = db;
    }
    slot.count_all(again);
    let all = (Reach::All, rights);
    let result = engine.try_transact(Scope::All, db, worker.now, |view| {
        run_in(runner, job, (view, all.0, all.1), reply)
    });
    result.map_err(Error::from)?
}

fn run_in(
    runner: &mut Runner<'_>,
    job: &Job<'_>,
    (view, reach, rights): (&mut View<'_>, Reach, Rights),
    reply: &mut Reply<'_>,
) -> Result<(), Failure> {
    let worker = runner.worker;
    let service = &*worker.service;
    let invocation = Invocation { keys: job.words.keys, args: job.words.args };
    let mut caller = Caller::new(runner, view, reach, rights);
    let call: &mut dyn Call = &mut caller;
    let mut interpreter = worker.interpreter();
    let result = match job.program {
        Program::Script(script) => {
            interpreter.run((service.scripts(), script), invocation, call, reply)
        }
        Program::Function(found) => {
            interpreter.call_function((service.libraries(), found), invocation, call, reply)
        }
    };
    worker.slot().note_lua_bytes(interpreter.used_bytes());
    result
}
