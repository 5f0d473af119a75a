//! What the server looks at to see how much it has to do, some times a second.
//!
//! Runs on the control thread, which is held up by no request. What was found goes to the load
//! manager, which says what is given up for it; a change of the level, and a signal from outside
//! that is no longer reported, are told in the log.

use std::collections::BTreeSet;
use std::sync::Arc;

use tokio::time::{MissedTickBehavior, interval};
use tracing::{info, warn};

use super::beat::beat;
use super::doors::Pulse;
use super::hub::Hub;
use crate::commands::Sample;
use crate::engine::MemoryPolicy;
use crate::load::{Freshness, Latencies, Level, Readings, Share, Spread};
use crate::machine::{Machine, Meter};
use crate::size::BytesMax;
use crate::time::{Duration, Timestamp};

/// A server with all the clients that it may have is at this part of its bound: that alone is
/// reason to be sparing, and none to give up anything.
const CLIENTS_PRESSURE_MAX: f64 = 0.8;

#[derive(Clone, Copy, Debug)]
pub(crate) struct WatchOptions {
    pub(crate) enabled: bool,
    pub(crate) sample_period: Duration,
    pub(crate) queue_timeout: Duration,
    pub(crate) in_flight_bytes_max: BytesMax,
}

/// Looks until aborted.
pub(super) async fn watch(hub: Arc<Hub>, pulses: Vec<Arc<Pulse>>, options: WatchOptions) {
    let mut watcher = Watcher {
        meter: Meter::new(Machine::here()),
        pulses,
        own: Latencies::new(),
        before: Spread::default(),
        expired: BTreeSet::new(),
        options,
        hub,
    };
    let mut looks = interval(options.sample_period.as_std());
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = beat(&watcher.own, watcher.hub.clock()) => {}
            _ = looks.tick() => {
                let now = watcher.hub.clock().now();
                watcher.look(now);
            }
        }
    }
}

struct Watcher {
    hub: Arc<Hub>,
    meter: Meter,
    pulses: Vec<Arc<Pulse>>,
    /// Of the control thread.
    own: Latencies,
    /// What was noted of all threads before the last look: a second is two looks.
    before: Spread,
    /// Signals of which it has been told that they expired.
    expired: BTreeSet<String>,
    options: WatchOptions,
}

impl Watcher {
    fn look(&mut self, now: Timestamp) {
        let sample = self.sample(now);
        let overload = self.hub.service().overload();
        let (before, level) = overload.observe(&sample, now);
        if before != level {
            self.tell_level(before, level, now);
        }
        self.tell_expired(now);
    }

    fn sample(&mut self, now: Timestamp) -> Sample {
        let mut late = Spread::default();
        let mut held_up = 0;
        for pulse in &self.pulses {
            // One that is held up notes nothing itself.
            if let Some(span) = pulse.in_turn(now) {
                pulse.late.note(span);
                held_up += usize::from(span >= self.options.sample_period);
            }
            late.merge(&pulse.late.take());
        }
        let mut of_all = self.own.take();
        of_all.merge(&late);
        let mut second = std::mem::replace(&mut self.before, of_all.clone());
        second.merge(&of_all);
        let timeout_us = self.options.queue_timeout.as_micros() as f64;
        let delay = late.quantile(0.9);
        let readings = Readings {
            memory_own: self.memory(),
            loop_lag_p99: second.quantile(0.99),
            queue_delay: delay.map(|delay| Share::new(delay.as_micros() as f64, timeout_us)),
            tasks: Some(self.clients()),
            bytes: Some(Share::new(
                self.hub.in_flight_bytes() as f64,
                self.options.in_flight_bytes_max.as_usize() as f64,
            )),
            ..self.meter.read(now)
        };
        let workers = self.pulses.len();
        Sample { readings, workers, wait_mean: late.mean(), queued: 0, held_up }
    }

    /// Where keys may be evicted, memory is meant to be full.
    fn memory(&self) -> Option<Share> {
        let engine = self.hub.service().engine();
        let is_bound = engine.memory_max() > 0 && engine.policy() == MemoryPolicy::NoEviction;
        is_bound.then(|| Share::new(engine.used_bytes() as f64, engine.memory_max() as f64))
    }

    fn clients(&self) -> Share {
        let most = self.hub.service().runtime().connections_max() as f64;
        Share::new(self.hub.connected() as f64, most / CLIENTS_PRESSURE_MAX)
    }

    fn tell_level(&self, before: Level, level: Level, now: Timestamp) {
        let status = self.hub.service().overload().status(now);
        let (signal, pressure) = status.highest.unwrap_or_default();
        let (before, level) = (before.name(), level.name());
        info!(before, level, signal, pressure, "the degrade level changed");
    }

    fn tell_expired(&mut self, now: Timestamp) {
        let status = self.hub.service().overload().status(now);
        for signal in status.signals {
            match signal.freshness {
                Freshness::Expired(_) if !self.expired.contains(&signal.name) => {
                    warn!(signal = signal.name, "a signal is no longer reported and has expired");
                    self.expired.insert(signal.name);
                }
                Freshness::Fresh => {
                    self.expired.remove(&signal.name);
                }
                Freshness::Expired(_) | Freshness::Silent => {}
            }
        }
    }
}
