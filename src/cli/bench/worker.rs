//! One thread of the generator: its connections on a runtime of their own.
//!
//! Nothing is shared with the other threads while the load runs; tallies are merged at the end.
//! A ticker moves the progress bar and ends a run whose server has stopped answering.

use std::cell::{Cell, RefCell};
use std::net::TcpStream;
use std::rc::Rc;

use anyhow::bail;
use indicatif::ProgressBar;
use tokio::task::{JoinSet, LocalSet};
use tokio::time::MissedTickBehavior;

use super::connection::Connection;
use super::pace::{Pace, Slots};
use super::report::Tally;
use super::template::{Draw, Template};
use super::{Length, Plan};
use crate::cli::target::{REPLY_TIMEOUT, Target};
use crate::time::{Clock, Duration, Timestamp};

const TICK: Duration = Duration::from_millis(100);

/// What the connections of one thread share.
#[derive(Debug)]
pub(super) struct Worker {
    pub(super) server: Target,
    pub(super) clock: Clock,
    pub(super) template: Template,
    /// The most requests in flight on one connection.
    pub(super) depth: usize,
    pub(super) draw: RefCell<Draw>,
    pub(super) tally: RefCell<Tally>,
    in_flight: Cell<usize>,
    answered: Cell<u64>,
}

/// The part of the load that one thread carries.
#[derive(Debug)]
pub(super) struct Share {
    pub(super) thread: usize,
    pub(super) streams: Vec<TcpStream>,
    /// The run's start.
    pub(super) start: Timestamp,
    pub(super) clock: Clock,
    pub(super) bar: ProgressBar,
}

impl Worker {
    pub(super) fn started(&self, requests: usize) {
        self.in_flight.set(self.in_flight.get() + requests);
    }

    pub(super) fn answered(&self, requests: usize) {
        self.in_flight.set(self.in_flight.get() - requests);
        self.answered.set(self.answered.get() + requests as u64);
    }

    /// Moves the bar until the run ends, or until the server has been silent for too long.
    async fn watch(&self, bar: &ProgressBar) -> anyhow::Error {
        let mut ticker = tokio::time::interval(TICK.as_std());
        ticker.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut shown = 0;
        let mut heard = self.clock.now();
        loop {
            ticker.tick().await;
            let (answered, now) = (self.answered.get(), self.clock.now());
            if answered > shown || self.in_flight.get() == 0 {
                heard = now;
            } else if now.since(heard) >= REPLY_TIMEOUT {
                return anyhow::anyhow!("{} has not answered for {REPLY_TIMEOUT}", self.server);
            }
            bar.inc(answered - shown);
            shown = answered;
        }
    }
}

/// Carries one thread's share of the plan to its end.
pub(super) fn drive(plan: &Plan, share: Share) -> anyhow::Result<Tally> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let Share { thread, streams, start, clock, bar } = share;
    let worker = Rc::new(Worker {
        server: plan.target.clone(),
        template: Template::new(&plan.command, &plan.key_prefix),
        depth: plan.pipeline,
        draw: RefCell::new(Draw::new(plan.seed, plan.keys, thread as u64, plan.threads as u64)),
        tally: RefCell::new(Tally::new(start)),
        in_flight: Cell::new(0),
        answered: Cell::new(0),
        clock,
    });
    let paces = paces(plan, thread, start);
    let local = LocalSet::new();
    local.block_on(&runtime, async {
        let mut connections = JoinSet::new();
        for (stream, pace) in streams.into_iter().zip(paces) {
            let connection = Connection::new(stream, Rc::clone(&worker), pace)?;
            connections.spawn_local(connection.run());
        }
        let all = async {
            while let Some(ended) = connections.join_next().await {
                ended??;
            }
            anyhow::Ok(())
        };
        tokio::select! {
            done = all => done,
            silence = worker.watch(&bar) => bail!(silence),
        }
    })?;
    Ok(worker.tally.replace(Tally::new(start)))
}

/// One pace for each connection of the thread; connection `i` of the run is in thread
/// `i % threads`.
fn paces(plan: &Plan, thread: usize, start: Timestamp) -> impl Iterator<Item = Pace> {
    let (requests, until) = match plan.length {
        Length::Requests(requests) => (requests, Timestamp::MAX),
        Length::Time(span) => (u64::MAX, start + span),
    };
    let (thread, threads) = (thread as u64, plan.threads as u64);
    // Numbers thread, thread + threads, ... below `requests`.
    let budget = Rc::new(Cell::new(requests.saturating_sub(thread).div_ceil(threads)));
    let stride = plan.connections as u64;
    let open = plan.rate.map(|rate| (rate, plan.requests_planned().unwrap_or(u64::MAX)));
    (0..).map(move |nth: u64| match open {
        None => Pace::Closed { budget: Rc::clone(&budget), until },
        Some((rate, end)) => {
            Pace::Open(Slots { start, rate, next: thread + nth * threads, stride, end, until })
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn planned(plan: &Plan) -> u64 {
        (0..plan.threads)
            .map(|thread| {
                let connections = plan.connections_of(thread);
                let late = Timestamp::from_millis(100_000);
                paces(plan, thread, Timestamp::EPOCH)
                    .take(connections)
                    .map(|mut pace| std::iter::from_fn(|| pace.take(late)).count() as u64)
                    .sum::<u64>()
            })
            .sum()
    }

    #[test]
    fn threads_and_connections_share_out_exactly_the_plan() {
        for (threads, connections, requests) in [(1, 1, 1), (3, 7, 100), (2, 5, 3), (4, 4, 1)] {
            let closed = Plan {
                threads,
                connections,
                length: Length::Requests(requests),
                ..Plan::for_tests()
            };
            assert_eq!(planned(&closed), requests, "closed {threads} {connections}");
            let open = Plan { rate: Some(1_000), ..closed };
            assert_eq!(planned(&open), requests, "open {threads} {connections}");
        }
    }
}
