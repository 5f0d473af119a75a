//! Known scripts, done by their twins: when that may be, and the way there.
//!
//! A twin runs once, over the shards of the keys that the request names: it asks for no other,
//! and it does all or nothing, so nothing of it has to be taken back. Where it declines, the
//! script itself runs.

use super::call::Worker;
use super::caller::Rights;
use super::request::Ground;
use super::runner::Runner;
use super::script_run::{Access, Job, Program, Words};
use super::session::Session;
use super::spec::{Flags, KeyList};
use super::twins::{self, Declined, Number};
use crate::engine::{Scope, View};
use crate::protocol::{Args, Error, Reply};

/// A script's twin with what the script was given.
pub(super) struct Native<'a> {
    twin: Number,
    pub(super) request: Args<'a>,
    pub(super) keys: KeyList<'a>,
    args: Args<'a>,
}

impl<'a> Native<'a> {
    /// What can take the script's place on this connection.
    pub(super) fn of(
        worker: &Worker,
        session: &Session,
        (job, request): (&Job<'a>, Args<'a>),
    ) -> Option<Self> {
        Self::new(worker, Self::twin_of(worker, session, job)?, (request, job.words))
    }

    /// The same for an EVALSHA; `last` is what took the place of the one before it.
    pub(super) fn asked(
        worker: &Worker,
        session: &Session,
        request: Args<'a>,
        last: Option<&Self>,
    ) -> Option<Self> {
        let words = Words::read(request, Error::NotInteger).ok()?;
        if let Some(last) = last.filter(|last| last.request.get(1) == request.get(1)) {
            return Self::new(worker, last.twin, (request, words));
        }
        let script = worker.script(request.get(1)?)?;
        let job = Job { program: Program::Script(&script), words, access: Access::ReadWrite };
        Self::new(worker, Self::twin_of(worker, session, &job)?, (request, words))
    }

    /// None where a key is longer than one may be.
    fn new(worker: &Worker, twin: Number, (request, words): (Args<'a>, Words<'a>)) -> Option<Self> {
        let (service, engine) = (&worker.service, worker.service.engine());
        let hashed = |key| service.check_key_length(key).ok().map(|()| engine.key(key));
        let keys = words.keys.iter().map(hashed).collect::<Option<_>>()?;
        Some(Self { twin, request, keys, args: words.args })
    }

    fn twin_of(worker: &Worker, session: &Session, job: &Job<'_>) -> Option<Number> {
        let Program::Script(script) = job.program else { return None };
        let service = &worker.service;
        let twin = script.twin(twins::find)?;
        // Who tracks what is read, or monitors, gets the script itself: its commands tell which
        // keys are read, and are shown.
        let fits = service.runtime().scripts.native_twins
            && !session.tracks()
            && !service.monitors().any()
            && job.rights(worker.lacks_room(Flags::DENYOOM)) == Ok(Rights::EVERYTHING);
        fits.then(|| service.scripts().note_run(script)).map(|()| twin)
    }

    /// Runs the twin within shards that are locked. Who declines is counted by who then runs the
    /// script.
    pub(super) fn run(
        &self,
        worker: &Worker,
        session: &Session,
        view: &mut View<'_>,
        reply: &mut Reply<'_>,
    ) -> Result<(), Declined> {
        view.touch_keys(!session.no_touch);
        view.act_for(session.id);
        twins::twin(self.twin).run(view, &self.keys, self.args, reply)?;
        worker.slot().twins().count(self.twin, Ok(()));
        Ok(())
    }

    /// Answers the request, or gives the ground back where the twin declines.
    pub(super) fn answer<'g, 'e>(
        &self,
        runner: &Runner<'_>,
        ground: Ground<'g, 'e>,
        reply: &mut Reply<'_>,
    ) -> Result<Option<Ground<'g, 'e>>, Error> {
        let (worker, session) = (runner.worker, &*runner.session);
        let (result, ground) = match ground {
            Ground::Lock(engine) => {
                let scope = Scope::Keys(&self.keys);
                let result = engine.try_transact(scope, session.db, worker.now, |view| {
                    self.run(worker, session, view, reply)
                })?;
                (result, Ground::Lock(engine))
            }
            Ground::Within(view) => {
                view.select(session.db);
                (self.run(worker, session, view, reply), Ground::Within(view))
            }
        };
        let Err(declined) = result else { return Ok(None) };
        worker.slot().twins().count(self.twin, Err(declined));
        Ok(Some(ground))
    }
}
