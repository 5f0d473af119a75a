//! What an admitted request has in hand: a [`Permit`] while it waits, [`Working`] after that.
//!
//! Each ends by being told how, or by being dropped; either way what the request held is given
//! back, once. A dropped one counts as cancelled.

use std::sync::Arc;

use crate::time::{Duration, Timestamp};

use super::manager::Shared;
use super::regulator::Held;
use super::request::{Reason, Rejection, Work};
use super::scorecard::Place;
use super::stats::add;
use super::tier::Tier;

/// What a request holds, whether it waits or is worked on.
#[derive(Debug)]
pub(super) struct Hold {
    pub(super) bytes: Held,
    pub(super) place: Option<Place>,
    pub(super) tier: Tier,
    pub(super) work: Work,
}

/// How the work for a request ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Outcome {
    /// As it should; its span counts as a measure of the service.
    Served,
    /// With an error, which may have come quickly or late and measures nothing.
    Failed,
    /// The caller has gone.
    Cancelled,
}

/// An admitted request whose work has not begun.
#[derive(Debug)]
pub struct Permit {
    shared: Arc<Shared>,
    /// None once it is spent.
    hold: Option<Hold>,
    admitted_at: Timestamp,
    dice: u32,
}

/// A request that is worked on.
#[derive(Debug)]
pub struct Working {
    shared: Arc<Shared>,
    /// None once it is spent.
    hold: Option<Hold>,
    begun_at: Timestamp,
}

impl Permit {
    pub(super) fn new(shared: Arc<Shared>, hold: Hold, now: Timestamp, dice: u32) -> Self {
        Self { shared, hold: Some(hold), admitted_at: now, dice }
    }

    /// How long it has waited.
    pub fn waited(&self, now: Timestamp) -> Duration {
        now.since(self.admitted_at)
    }

    /// Work begins, unless it has waited too long or every place is taken.
    pub fn begin(mut self, now: Timestamp) -> Result<Working, Rejection> {
        let waited = self.waited(now);
        let hold = self.hold.take().expect("a permit is spent only by being consumed");
        match self.shared.lane(hold.work).begin(waited, now) {
            Ok(()) => {
                let shared = Arc::clone(&self.shared);
                Ok(Working { shared, hold: Some(hold), begun_at: now })
            }
            Err(reason) => {
                let tier = hold.tier;
                self.shared.let_go(hold);
                Err(self.shared.reject(tier, reason, self.dice))
            }
        }
    }

    /// Refuses it after all: the queue that it waited in had no room, or let it wait too long.
    pub fn reject(mut self, reason: Reason) -> Rejection {
        let hold = self.hold.take().expect("a permit is spent only by being consumed");
        let tier = hold.tier;
        self.shared.lane(hold.work).give_up();
        self.shared.let_go(hold);
        self.shared.reject(tier, reason, self.dice)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if let Some(hold) = self.hold.take() {
            self.shared.lane(hold.work).give_up();
            self.shared.let_go(hold);
            add(&self.shared.totals.cancelled);
        }
    }
}

impl Working {
    /// Work has ended.
    pub fn done(mut self, now: Timestamp, outcome: Outcome) {
        let Some(hold) = self.hold.take() else { return };
        let lane = self.shared.lane(hold.work);
        lane.end(now);
        if outcome == Outcome::Served {
            lane.served.note(now.since(self.begun_at));
        }
        self.shared.let_go(hold);
        let totals = &self.shared.totals;
        add(match outcome {
            Outcome::Served => &totals.served,
            Outcome::Failed => &totals.failed,
            Outcome::Cancelled => &totals.cancelled,
        });
    }
}

impl Drop for Working {
    fn drop(&mut self) {
        if let Some(hold) = self.hold.take() {
            // Nobody says when: the last moment that the lane was told.
            self.shared.lane(hold.work).end(self.begun_at);
            self.shared.let_go(hold);
            add(&self.shared.totals.cancelled);
        }
    }
}
