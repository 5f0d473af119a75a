//! `redis.call`: one command of a script, on the view that is locked while the script runs.
//!
//! What Redis checks of such a command is checked here, and not at the gate: whether scripts may
//! give it, whether this one may write, whether there is memory. A script that was given only
//! the shards of the keys it declared is abandoned at the first command that needs another.

use super::call::Answer;
use super::monitor::Origin;
use super::pubsub::HeldBack;
use super::runner::Runner;
use super::session::Outcome;
use super::spec::Flags;
use super::table::Entry;
use crate::engine::View;
use crate::lua::{Abandon, Call, LogLevel};
use crate::protocol::{Args, Error, Reply, Resp};

/// The shards that a script was given.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Reach {
    /// Those of the keys that it declared.
    Declared,
    All,
}

/// What a script may do.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Rights {
    pub(super) writes: bool,
    /// Also grow memory beyond its bound.
    pub(super) grows: bool,
}

impl Rights {
    pub(super) const EVERYTHING: Self = Self { writes: true, grows: true };
}

/// A running script's way to the commands.
pub(super) struct Caller<'c, 'w, 'e> {
    runner: &'c mut Runner<'w>,
    view: &'c mut View<'e>,
    reach: Reach,
    rights: Rights,
    has_written: bool,
}

impl<'c, 'w, 'e> Caller<'c, 'w, 'e> {
    pub(super) fn new(
        runner: &'c mut Runner<'w>,
        view: &'c mut View<'e>,
        reach: Reach,
        rights: Rights,
    ) -> Self {
        Self { runner, view, reach, rights, has_written: false }
    }

    /// The command, if a script may give it. Who may not is counted.
    fn admit(&self, words: Args<'_>) -> Result<u16, Error> {
        let worker = self.runner.worker;
        let Ok(number) = worker.service.table().resolve(words) else {
            let error = Error::text("Unknown Redis command called from script");
            worker.count_error(&error);
            return Err(error);
        };
        let admitted = self.check(worker.entry(number), words);
        admitted.inspect_err(|error| worker.count_rejection(number, error)).map(|()| number)
    }

    fn check(&self, entry: &Entry, words: Args<'_>) -> Result<(), Error> {
        let flags = entry.spec.flags;
        if !entry.arity().allows(words.len()) {
            return Err(Error::text("Wrong number of args calling Redis command from script"));
        }
        if flags.has(Flags::NOSCRIPT) {
            return Err(Error::text("This Redis command is not allowed from script"));
        }
        self.runner.worker.permit(self.runner.session, entry)?;
        if flags.has(Flags::WRITE) && !self.rights.writes {
            return Err(Error::text("Write commands are not allowed from read-only scripts."));
        }
        // Who has begun to write may finish.
        if flags.has(Flags::DENYOOM) && !self.rights.grows && !self.has_written {
            return Err(Error::OutOfMemory);
        }
        Ok(())
    }

    /// Whether every key that the command names is within the script's shards, and what the
    /// script does can still be taken back.
    fn reaches(&self, entry: &Entry, words: Args<'_>) -> bool {
        let engine = self.runner.worker.service.engine();
        let mut places = entry.keys().places(words).filter_map(|place| words.get(place));
        let held_back = self.runner.session.held_back.as_ref();
        self.reach == Reach::All
            || !entry.sees_all(words)
                && places.all(|key| self.view.holds(engine.key(key)))
                && !held_back.is_some_and(HeldBack::is_full)
                && !self.view.is_undo_full()
    }

    fn carry_out(&mut self, number: u16, words: Args<'_>, reply: &mut Reply<'_>) -> Answer {
        self.runner.show((number, words), Origin::Script);
        let result = self.runner.run_within((number, words), self.view, reply);
        if let Ok(Outcome::Silent) = result {
            reply.ok();
        }
        result
    }
}

impl Call for Caller<'_, '_, '_> {
    fn call(&mut self, words: Args<'_>, resp: Resp, out: &mut Vec<u8>) -> Result<(), Abandon> {
        let mut reply = Reply::new(out, resp);
        let number = match self.admit(words) {
            Ok(number) => number,
            Err(error) => {
                reply.error(&error);
                return Ok(());
            }
        };
        let worker = self.runner.worker;
        let entry = worker.entry(number);
        if !self.reaches(entry, words) {
            return Err(Abandon);
        }
        if entry.spec.flags.has(Flags::WRITE) && !self.has_written {
            if !worker.slot().begin_write() {
                return Err(Abandon);
            }
            self.has_written = true;
        }
        if let Err(error) = self.carry_out(number, words, &mut reply) {
            reply.error(&error);
        }
        Ok(())
    }

    fn pause(&mut self) {
        if self.runner.worker.slot().is_long() {
            self.runner.host.serve_meanwhile();
        }
    }

    fn log(&mut self, level: LogLevel, text: &[u8]) {
        self.runner.log.add(level, text);
    }

    fn allows(&mut self, words: Args<'_>) -> Option<bool> {
        let worker = self.runner.worker;
        let number = worker.service.table().resolve(words).ok()?;
        Some(worker.permit(self.runner.session, worker.entry(number)).is_ok())
    }
}
