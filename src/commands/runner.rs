//! Carrying out one request, and those that it carries out itself.
//!
//! A [`Runner`] belongs to one request of one connection. Commands that hold others, as EXEC
//! does, get it and have each of those carried out within the shards that they have locked.
//! What has passed the gate comes here: nothing is refused here but by the commands themselves.

use super::call::{Answer, Call, Worker};
use super::host::Host;
use super::monitor::Origin;
use super::request::Ground;
use super::script_log::ScriptLog;
use super::session::{Outcome, Session};
use super::spec::{Handler, Keys};
use super::tally::Runs;
use super::waiting;
use crate::engine::View;
use crate::protocol::{Args, Reply};

pub(crate) struct Runner<'w> {
    pub(super) worker: &'w Worker,
    pub(super) session: &'w mut Session,
    pub(super) host: &'w dyn Host,
    /// Told when all is carried out.
    pub(super) log: ScriptLog,
    inner: Runs,
}

impl<'w> Runner<'w> {
    pub(super) fn new(worker: &'w Worker, session: &'w mut Session, host: &'w dyn Host) -> Self {
        Self { worker, session, host, log: ScriptLog::default(), inner: Runs::default() }
    }

    /// All is carried out, and nothing locked: tells what scripts have said. Returns the commands
    /// that were carried out inside the request.
    pub(super) fn finish(self) -> Runs {
        self.log.tell(self.host);
        self.inner
    }

    pub(super) fn run(
        &mut self,
        (number, args): (u16, Args<'_>),
        ground: Ground<'_, '_>,
        reply: &mut Reply<'_>,
    ) -> Answer {
        let worker = self.worker;
        let entry = worker.entry(number);
        match entry.handler() {
            Handler::Plain(answer) => {
                let (now, stats) = match &ground {
                    Ground::Lock(_) => (worker.now, None),
                    Ground::Within(view) => {
                        (view.now(), (entry.keys() == Keys::All).then(|| view.stats()))
                    }
                };
                let is_within = matches!(ground, Ground::Within(_));
                let (service, session, host) = (&*worker.service, &mut *self.session, self.host);
                let settles = false;
                let mut call =
                    Call { service, session, host, args, now, stats, is_within, settles };
                let result = answer(&mut call, reply);
                if call.settles {
                    service.settle(ground);
                }
                result
            }
            Handler::Keyed(answer) => {
                let request = worker.request(self.session, entry, args)?;
                answer(&request, ground, reply)?;
                Ok(Outcome::Reply)
            }
            Handler::Blocking(plan) => {
                let request = worker.request(self.session, entry, args)?;
                waiting::begin(plan(&request)?, &request, ground, self.session, reply)
            }
            Handler::Nested(answer) => answer(self, args, ground, reply),
            Handler::Parent => Err(crate::protocol::Error::Syntax),
        }
    }

    /// Shows a command inside another one to who monitors.
    pub(super) fn show(&self, (number, args): (u16, Args<'_>), origin: Origin) {
        let (worker, monitors) = (self.worker, self.worker.service.monitors());
        if monitors.any() && !worker.entry(number).is_administrative() {
            monitors.show(self.host, (&*self.session, origin), args, worker.clock().now());
        }
    }

    /// Carries out a command inside another one, and counts it.
    pub(super) fn run_within(
        &mut self,
        (number, args): (u16, Args<'_>),
        view: &mut View<'_>,
        reply: &mut Reply<'_>,
    ) -> Answer {
        let result = self.run((number, args), Ground::Within(view), reply);
        self.inner.count_joined(number, result.is_err());
        if let Err(error) = &result {
            self.worker.count_error(error);
        }
        result
    }
}
