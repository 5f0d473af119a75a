//! Housekeeping: what must happen now and then, whoever asks.
//!
//! Expired keys are looked for every `expiry_period`, for at most `expiry_budget` each time, so
//! expiry takes no more than their quotient of one core; a lap over the keyspace that does not
//! fit goes on the next time. A key past its deadline is never shown, swept or not. Where memory
//! is over its bound and something can be evicted, that gets as much time again.

use std::sync::Arc;

use tokio::time::{MissedTickBehavior, interval};
use tracing::warn;

use super::hub::Hub;
use crate::time::{DISCIPLINE_PERIOD, Duration};

/// A gap between our clock and the wall clock above this is worth a person's attention.
const GAP_TOLD_US: u64 = 1_000_000;

#[derive(Clone, Copy, Debug)]
pub(crate) struct HouseOptions {
    pub(crate) expiry_period: Duration,
    pub(crate) expiry_budget: Duration,
}

/// Keeps house until aborted.
pub(super) async fn keep(hub: Arc<Hub>, options: HouseOptions) {
    let mut sweep = interval(options.expiry_period.as_std());
    let mut second = interval(DISCIPLINE_PERIOD.as_std());
    sweep.set_missed_tick_behavior(MissedTickBehavior::Delay);
    second.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut gap_told = false;
    loop {
        tokio::select! {
            _ = sweep.tick() => {
                expire(&hub, options.expiry_budget);
                make_room(&hub, options.expiry_budget);
            }
            _ = second.tick() => {
                hub.close_idle();
                hub.measure();
                gap_told = discipline(&hub, gap_told);
            }
        }
    }
}

fn expire(hub: &Hub, budget: Duration) {
    let engine = hub.service().engine();
    let began = hub.clock().now();
    loop {
        let now = hub.clock().now();
        if now.since(began) >= budget || engine.sweep(now) {
            return;
        }
    }
}

/// Evicts what writes have left to do, or a lowered bound, as long as there is something.
fn make_room(hub: &Hub, budget: Duration) {
    let engine = hub.service().engine();
    let began = hub.clock().now();
    loop {
        let now = hub.clock().now();
        if !engine.is_full() || now.since(began) >= budget || !engine.make_room(now) {
            return;
        }
    }
}

/// Leads our clock towards the wall clock. Returns whether a large gap is there and was told.
fn discipline(hub: &Hub, told: bool) -> bool {
    let found = hub.clock().discipline();
    hub.note_clock_gap(found.gap_us);
    let large = found.gap_us.unsigned_abs() > GAP_TOLD_US;
    if found.stepped {
        warn!(gap_us = found.gap_us, "the wall clock is far ahead, stepped to it");
    } else if large && !told {
        warn!(gap_us = found.gap_us, "the wall clock was set, limits go on by elapsed time");
    }
    large && !found.stepped
}
