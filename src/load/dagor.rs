//! A rejector that steps: a twentieth fewer while the queue is slow, a hundredth more while not.
//!
//! As the overload control DAGOR is described (Zhou et al., 2018): a server is overloaded
//! when requests waited more than 20 ms on average, however busy its processor is. It keeps the
//! number of requests to admit in an interval; how that compares to the number that came is the
//! share. A step is small next to what an overload is, so it takes long to get there and back.

use crate::time::Duration;

use super::feed_forward::ADMIT_MIN;
use super::rejector::{Interval, Rejector};

/// A longer mean wait is overload.
const WAIT_MAX: Duration = Duration::from_millis(20);

/// How much less is admitted after an interval of overload.
const STEP_DOWN: f64 = 0.05;

/// How much more is admitted after one without, of what came.
const STEP_UP: f64 = 0.01;

/// See the module.
#[derive(Clone, Copy, Debug, Default)]
pub struct Dagor {
    /// Requests to admit in an interval; none while all are.
    admitted: Option<f64>,
}

impl Rejector for Dagor {
    fn observe(&mut self, interval: &Interval) -> f64 {
        let offered = interval.offered as f64;
        let admitted = self.admitted.unwrap_or(offered);
        let next = if interval.queue_delay > WAIT_MAX {
            admitted * (1.0 - STEP_DOWN)
        } else {
            admitted + STEP_UP * offered
        };
        // Room for more than came is no room worth keeping: it would delay the next step down.
        self.admitted = (next < offered).then_some(next);
        if offered <= 0.0 { 1.0 } else { (next / offered).clamp(ADMIT_MIN, 1.0) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_answer_their_vectors() {
        let mut dagor = Dagor::default();
        for (wait_ms, admitted) in [(30, 950.0), (30, 902.5), (10, 912.5), (20, 922.5)] {
            let interval = Interval {
                offered: 1_000,
                queue_delay: Duration::from_millis(wait_ms),
                ..Interval::default()
            };
            let found = dagor.observe(&interval) * 1_000.0;
            assert!((found - admitted).abs() < 1e-9, "{found}, not {admitted}");
        }
    }
}
