//! A rejector that is a control loop: it raises its ratio while the queue grows.
//!
//! ```text
//! error = (admitted - started - free) / started     started = 0: divide by the places
//! refuse = clamp(Kp * error + Ki * sum of the last 30 errors, 0, 1)
//! ```
//!
//! The target is an inflow as large as the outflow with no place idle, and the error is relative
//! to the outflow, so one set of gains is to serve ten requests a second and ten thousand. So
//! Uber's Cinnamon was described; its gains were not published, those here are of an open
//! re-implementation. Against windup the sum counts between 0 and 1 only, and an error that
//! would push it further out while the ratio is clamped is not taken.
//!
//! The error is relative to what is done, but the ratio acts upon what is offered: the loop's
//! gain grows with the overload. At a few times the capacity it holds well; at ten times it
//! swings, which the simulation shows, and which the default rejector does not do.

use std::collections::VecDeque;

use super::rejector::{Interval, Rejector};

/// Errors that the sum goes back over: 15 seconds of intervals.
const ERRORS: usize = 30;

/// How strongly the loop answers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gains {
    /// To the error as it is.
    pub proportional: f64,
    /// To each error of the last 30.
    pub integral: f64,
}

impl Default for Gains {
    fn default() -> Self {
        Self { proportional: 0.1, integral: 0.25 }
    }
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub struct Pid {
    gains: Gains,
    /// At most [`ERRORS`], the newest last.
    errors: VecDeque<f64>,
}

impl Pid {
    pub fn new(gains: Gains) -> Self {
        Self { gains, errors: VecDeque::with_capacity(ERRORS) }
    }

    /// The share to refuse with one error more.
    fn refuse(&mut self, error: f64) -> f64 {
        let sum: f64 = self.errors.iter().skip(self.errors.len().saturating_sub(ERRORS - 1)).sum();
        let with = |sum: f64| {
            self.gains.proportional * error + (self.gains.integral * sum).clamp(0.0, 1.0)
        };
        let free = with(sum + error);
        let pushes_out = free > 1.0 && error > 0.0 || free < 0.0 && error < 0.0;
        // The oldest goes in any case: what was long ago says nothing about now.
        if self.errors.len() >= ERRORS {
            self.errors.pop_front();
        }
        self.errors.push_back(if pushes_out { 0.0 } else { error });
        free.clamp(0.0, 1.0)
    }
}

/// Of an interval, how much more came than went, relative to what went.
fn error_of(interval: &Interval) -> f64 {
    let grown = interval.admitted as f64 - interval.started as f64 - interval.free as f64;
    let scale = if interval.started > 0 { interval.started } else { interval.in_flight_max };
    grown / scale.max(1) as f64
}

impl Rejector for Pid {
    fn observe(&mut self, interval: &Interval) -> f64 {
        1.0 - self.refuse(error_of(interval))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interval(admitted: u64, started: u64, free: u64) -> Interval {
        Interval { admitted, started, free, in_flight_max: 16, ..Interval::default() }
    }

    #[test]
    fn control_loop_answers_its_vectors() {
        let rows = [
            ((900, 800, 0), 0.125, 0.043_75),
            ((850, 800, 0), 0.0625, 0.053_125),
            ((800, 800, 0), 0.0, 0.046_875),
            ((790, 800, 4), -0.0175, 0.040_75),
            ((0, 0, 16), -1.0, 0.0),
        ];
        let mut pid = Pid::default();
        for ((admitted, started, free), error, refuse) in rows {
            let interval = interval(admitted, started, free);
            assert!((error_of(&interval) - error).abs() < 1e-12);
            let found = 1.0 - pid.observe(&interval);
            assert!((found - refuse).abs() < 1e-9, "{found}, not {refuse}");
        }
    }

    #[test]
    fn long_silence_does_not_wind_the_loop_up() {
        let mut pid = Pid::default();
        for _ in 0..100 {
            assert!((pid.observe(&interval(0, 0, 16)) - 1.0).abs() < f64::EPSILON);
        }
        let first = 1.0 - pid.observe(&interval(1_600, 800, 0));
        assert!((first - 0.35).abs() < 1e-9, "{first}");
    }

    #[test]
    fn ratio_is_given_up_when_the_overload_has_gone() {
        let mut pid = Pid::default();
        for _ in 0..100 {
            pid.observe(&interval(8_000, 800, 0));
        }
        let after: Vec<f64> = (0..31).map(|_| pid.observe(&interval(400, 400, 8))).collect();
        assert!(after[30] > 0.999, "{after:?}");
    }
}
