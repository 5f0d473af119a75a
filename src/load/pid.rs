//! A rejector that is a control loop: it raises its ratio while the queue grows.
//!
//! ```text
//! error = (admitted - started - free) / started     started = 0: divide by the places
//! integral = clamp(integral + Ki * error, 0, 1)      not while the ratio is clamped
//! refuse = clamp(Kp * error + integral, 0, 1)
//! ```
//!
//! The target is an inflow as large as the outflow with no place idle, and the error is relative
//! to the outflow, so one set of gains is to serve ten requests a second and ten thousand. So
//! Uber's Cinnamon was described; its gains were not published, those here are of an open
//! re-implementation.
//!
//! Two things are ours. What the ratio does grows with what is offered, so beyond twice the
//! outflow the error is scaled down by as much: with fixed gains the loop swings between
//! refusing all and nothing at five times the load. And while nothing waits and more than a
//! quarter of the places is idle, the integral is halved, or it would take minutes to let go.

use super::rejector::{Interval, Rejector};

/// What is offered, in outflows, up to which the gains are right as they are.
const OVERLOAD: f64 = 2.0;

/// How strongly the loop answers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gains {
    /// To the error as it is.
    pub proportional: f64,
    /// To all errors so far.
    pub integral: f64,
}

impl Default for Gains {
    fn default() -> Self {
        Self { proportional: 0.1, integral: 0.25 }
    }
}

/// See the module.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pid {
    gains: Gains,
    /// From 0 to 1.
    integral: f64,
}

impl Pid {
    pub const fn new(gains: Gains) -> Self {
        Self { gains, integral: 0.0 }
    }

    /// The share to refuse with one error more.
    fn refuse(&mut self, error: f64) -> f64 {
        let proportional = self.gains.proportional * error;
        let integral = (self.integral + self.gains.integral * error).clamp(0.0, 1.0);
        let refuse = proportional + integral;
        let pushes_out = refuse > 1.0 && error > 0.0 || refuse < 0.0 && error < 0.0;
        if !pushes_out {
            self.integral = integral;
        }
        refuse.clamp(0.0, 1.0)
    }
}

/// Of an interval, how much more came than went, relative to what went.
fn error_of(interval: &Interval) -> f64 {
    let grown = interval.admitted as f64 - interval.started as f64 - interval.free as f64;
    grown / outflow(interval)
}

fn outflow(interval: &Interval) -> f64 {
    let scale = if interval.started > 0 { interval.started } else { interval.in_flight_max };
    scale.max(1) as f64
}

impl Rejector for Pid {
    fn observe(&mut self, interval: &Interval) -> f64 {
        let scale = OVERLOAD * outflow(interval) / interval.offered.max(1) as f64;
        let refuse = self.refuse(error_of(interval) * scale.min(1.0));
        if interval.queued == 0 && interval.free > interval.in_flight_max / 4 {
            self.integral /= 2.0;
        }
        1.0 - refuse
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interval(admitted: u64, started: u64, free: u64) -> Interval {
        Interval {
            offered: admitted,
            admitted,
            started,
            free,
            in_flight_max: 16,
            ..Interval::default()
        }
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
