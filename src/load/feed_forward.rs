//! The default rejector: what can be done, divided by what is asked for.
//!
//! Every interval of length `T`, with `K` places for work, `I` of them busy on average:
//!
//! ```text
//! c = started * K / max(I, 1)              by Little's law, what K busy places would do
//! C = C + (c - C) / 2                      smoothed; the first sample is taken as it is
//! O = estimate of offered                  the average gated by significance
//! excess = max(0, queued - C * 20 ms / T)  what waits beyond a wait of 20 ms
//! admit = clamp((C - excess / 4) / O, 0.001, 1)
//! ```
//!
//! What is offered does not depend on what was refused, so there is no loop that could swing,
//! whatever the overload is; a loop on the queue's growth has a gain of offered / capacity, and
//! gains that are right for twice the load are wrong for thirty times. A thousandth always
//! passes: how else would it be seen that work is done again?

use crate::time::Duration;

use super::estimate::Estimate;
use super::rejector::{Interval, Rejector};

/// The share that is admitted however bad things are.
pub(super) const ADMIT_MIN: f64 = 0.001;

/// How much of a new measurement of the capacity is believed.
const CAPACITY_WEIGHT: f64 = 0.5;

/// The wait that is no reason to admit less.
const WAIT: Duration = Duration::from_millis(20);

/// How much of the queue's excess is worked off in one interval.
const EXCESS_WEIGHT: f64 = 0.25;

/// See the module.
#[derive(Clone, Copy, Debug, Default)]
pub struct FeedForward {
    /// Requests that an interval with all places busy would begin.
    capacity: Option<f64>,
    offered: Estimate,
}

impl FeedForward {
    pub const fn new() -> Self {
        Self { capacity: None, offered: Estimate::new() }
    }

    /// Requests per interval that can be done; none before the first interval.
    pub const fn capacity(&self) -> Option<f64> {
        self.capacity
    }
}

impl Rejector for FeedForward {
    fn observe(&mut self, interval: &Interval) -> f64 {
        let places = interval.in_flight_max as f64;
        let busy = if interval.in_flight.is_finite() { interval.in_flight } else { places };
        let seen = if interval.started == 0 {
            places
        } else {
            interval.started as f64 * places / busy.max(1.0)
        };
        let capacity = self.capacity.map_or(seen, |known| known + CAPACITY_WEIGHT * (seen - known));
        self.capacity = Some(capacity);
        let offered = self.offered.observe_count(interval.offered as f64);
        if offered <= 0.0 {
            return 1.0;
        }
        let length_us = interval.length.as_micros().max(1) as f64;
        let patient = capacity * WAIT.as_micros() as f64 / length_us;
        let excess = (interval.queued as f64 - patient).max(0.0);
        ((capacity - EXCESS_WEIGHT * excess) / offered).clamp(ADMIT_MIN, 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn feed_forward_answers_its_vectors() {
        // (offered, started, queued, in flight) to (capacity, estimate, admit).
        let rows = [
            ((400, 400, 0, 8.0), (800.0, 400.0, 1.0)),
            ((720, 720, 0, 14.4), (800.0, 720.0, 1.0)),
            ((8000, 800, 160, 16.0), (800.0, 8000.0, 0.096)),
            ((8000, 800, 100, 16.0), (800.0, 8000.0, 0.097_875)),
            ((8000, 800, 20, 16.0), (800.0, 8000.0, 0.1)),
            ((720, 720, 0, 14.4), (800.0, 720.0, 1.0)),
        ];
        let mut rejector = FeedForward::new();
        for ((offered, started, queued, in_flight), (capacity, estimate, admit)) in rows {
            let interval = Interval {
                length: Duration::from_millis(500),
                offered,
                started,
                queued,
                in_flight,
                in_flight_max: 16,
                ..Interval::default()
            };
            let found = rejector.observe(&interval);
            assert!((found - admit).abs() < 1e-9, "{found}, not {admit}");
            assert!(rejector.capacity().is_some_and(|found| (found - capacity).abs() < 1e-9));
            assert!(rejector.offered.value().is_some_and(|found| (found - estimate).abs() < 1e-9));
        }
    }

    #[test]
    fn service_that_stands_still_admits_a_trickle_and_comes_back() {
        let mut rejector = FeedForward::new();
        let stuck = Interval {
            length: Duration::from_millis(500),
            offered: 8_000,
            queued: 1_000,
            in_flight: 16.0,
            in_flight_max: 16,
            ..Interval::default()
        };
        for _ in 0..20 {
            let admit = rejector.observe(&stuck);
            assert!((ADMIT_MIN..0.01).contains(&admit), "{admit}");
        }
        let well = Interval { started: 800, queued: 0, ..stuck };
        let admits: Vec<f64> = (0..6).map(|_| rejector.observe(&well)).collect();
        assert!(admits[5] > 0.095, "{admits:?}");
    }
}
