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
use crate::engine::Patience;
use crate::load::Level;
use crate::time::{DISCIPLINE_PERIOD, Discipline, Duration};

/// A gap between our clock and the wall clock above this is worth a person's attention.
const GAP_TOLD_US: u64 = 1_000_000;

/// How late it may be noticed that a script runs for long.
const LOOK_FOR_LONG_EVERY: std::time::Duration = std::time::Duration::from_millis(20);

#[derive(Clone, Copy, Debug)]
pub(crate) struct HouseOptions {
    pub(crate) expiry_period: Duration,
    pub(crate) expiry_budget: Duration,
}

/// Keeps house until aborted.
pub(super) async fn keep(hub: Arc<Hub>, options: HouseOptions) {
    let mut sweep = interval(options.expiry_period.as_std());
    let mut second = interval(DISCIPLINE_PERIOD.as_std());
    let mut scripts = interval(LOOK_FOR_LONG_EVERY);
    scripts.set_missed_tick_behavior(MissedTickBehavior::Delay);
    sweep.set_missed_tick_behavior(MissedTickBehavior::Delay);
    second.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut gap_told = false;
    loop {
        tokio::select! {
            _ = sweep.tick() => {
                if hub.service().runtime().sweeps() {
                    expire(&hub, options.expiry_budget);
                    // In need, what is idle gives its memory back sooner.
                    if hub.service().overload().level() == Level::Emergency {
                        expire(&hub, options.expiry_budget);
                    }
                }
                make_room(&hub, options.expiry_budget);
                hub.service().hand_out(&*hub, hub.clock().now(), Patience::None);
                hub.service().broadcast(&*hub);
            }
            _ = scripts.tick() => hub.service().look_for_long(hub.clock().now()),
            _ = second.tick() => {
                hub.close_idle();
                hub.measure();
                hub.service().upkeep(hub.clock().now());
                hub.events().upkeep();
                gap_told = note(&hub, hub.clock().discipline(), gap_told);
            }
        }
    }
}

fn expire(hub: &Hub, budget: Duration) {
    let engine = hub.service().engine();
    let began = hub.clock().now();
    loop {
        let now = hub.clock().now();
        if now.since(began) >= budget {
            return;
        }
        if engine.sweep(now) {
            hub.events().sweep_laps.increment(1);
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

/// Tells what was found when our clock was led towards the wall clock. Returns whether a large
/// gap is there and was told.
fn note(hub: &Hub, found: Discipline, told: bool) -> bool {
    hub.note_clock_gap(found.gap_us);
    let large = found.gap_us.unsigned_abs() > GAP_TOLD_US;
    if found.stepped {
        hub.events().clock_forward.increment(1);
        warn!(gap_us = found.gap_us, "the wall clock is far ahead, stepped to it");
    } else if large && !told {
        if found.gap_us < 0 {
            hub.events().clock_backward.increment(1);
        }
        warn!(gap_us = found.gap_us, "the wall clock was set, limits go on by elapsed time");
    }
    large && !found.stepped
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::hub_for_test;
    use crate::telemetry::metrics_page;

    fn page(hub: &Hub) -> String {
        metrics_page(hub.service(), hub, hub.events(), hub.clock().now())
    }

    #[test]
    fn gap_that_lasts_is_one_step_of_the_clock() {
        let hub = hub_for_test("", true);
        let back = Discipline { gap_us: -(GAP_TOLD_US as i64 + 1), stepped: false };
        let ahead = Discipline { gap_us: GAP_TOLD_US as i64 + 1, stepped: true };
        let mut told = false;
        for found in [back, back, ahead, back] {
            told = note(&hub, found, told);
        }
        let page = page(&hub);
        assert!(page.contains("tollgate_clock_steps_total{direction=\"backward\"} 2\n"), "{page}");
        assert!(page.contains("tollgate_clock_steps_total{direction=\"forward\"} 1\n"), "{page}");
    }

    #[test]
    fn lap_of_the_sweep_is_counted_when_it_is_finished() {
        let hub = hub_for_test("", true);
        expire(&hub, Duration::ZERO);
        assert!(page(&hub).contains("tollgate_sweep_laps_total 0\n"));
        expire(&hub, Duration::from_secs(1));
        assert!(page(&hub).contains("tollgate_sweep_laps_total 1\n"));
    }
}
