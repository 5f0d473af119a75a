//! The in-flight limit by the gradient of latency: Netflix's Gradient2.
//!
//! ```text
//! gradient = max(0.5, min(1, 1.5 * long / short))
//! limit = 0.8 * limit + 0.2 * (limit * gradient + 4)
//! ```
//!
//! `short` is the latency of now, `long` a slow average of it; latency half as long again is let
//! be. Nothing moves while less than half the limit is used, for then latency says nothing of it.
//! Where `long` is more than twice `short` it is what an overload has left behind, and is given
//! up by a twentieth a window. It forgets: a slow rise of latency is taken for the usual.

use crate::time::Duration;

use super::tuning::{LimitRange, Tuning, Window};

const TOLERANCE: f64 = 1.5;
const GRADIENT_MIN: f64 = 0.5;
/// Requests that may always wait.
const QUEUE: f64 = 4.0;
const WEIGHT: f64 = 0.2;
/// Windows that the long average goes back over, and those at the start that it is plain.
const LONG_WINDOWS: f64 = 600.0;
const LONG_WARM_UP: u32 = 10;
const LONG_GIVE_UP: f64 = 0.95;

/// See the module.
#[derive(Clone, Copy, Debug)]
pub struct Gradient {
    range: LimitRange,
    limit: f64,
    long_us: f64,
    windows: u32,
}

impl Gradient {
    pub fn new(range: LimitRange) -> Self {
        Self { range, limit: f64::from(range.initial()), long_us: 0.0, windows: 0 }
    }

    fn take_long(&mut self, short_us: f64) {
        self.windows = self.windows.saturating_add(1);
        let weight = if self.windows <= LONG_WARM_UP {
            1.0 / f64::from(self.windows)
        } else {
            2.0 / (LONG_WINDOWS + 1.0)
        };
        self.long_us += weight * (short_us - self.long_us);
        if self.long_us > 2.0 * short_us {
            self.long_us *= LONG_GIVE_UP;
        }
    }
}

/// The limit before it is brought into its range.
fn moved(limit: f64, short_us: f64, long_us: f64, in_flight: f64) -> f64 {
    if in_flight < limit / 2.0 || short_us <= 0.0 {
        return limit;
    }
    let gradient = (TOLERANCE * long_us / short_us).clamp(GRADIENT_MIN, 1.0);
    (1.0 - WEIGHT) * limit + WEIGHT * (limit * gradient + QUEUE)
}

impl Tuning for Gradient {
    fn observe(&mut self, window: &Window) -> u32 {
        let short_us = window.latency_mean.max(Duration::from_micros(1)).as_micros() as f64;
        self.take_long(short_us);
        let in_flight = window.in_flight_peak as f64;
        self.limit = self.range.clamp(moved(self.limit, short_us, self.long_us, in_flight));
        self.limit as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gradient_answers_its_vectors() {
        let rows = [
            ((50.0, 10.0, 10.0, 50.0), 50.8),
            ((50.0, 20.0, 10.0, 50.0), 48.3),
            ((50.0, 40.0, 10.0, 50.0), 45.8),
            ((50.0, 10.0, 10.0, 20.0), 50.0),
        ];
        for ((limit, short, long, in_flight), right) in rows {
            let found = moved(limit, short, long, in_flight);
            assert!((found - right).abs() < 1e-9, "{found}, not {right}");
        }
    }

    #[test]
    fn long_average_of_an_overload_is_given_up() {
        let mut gradient = Gradient::new(LimitRange::default());
        let window = |ms| Window { latency_mean: Duration::from_millis(ms), ..Window::default() };
        (0..20).for_each(|_| {
            gradient.observe(&window(100));
        });
        (0..80).for_each(|_| {
            gradient.observe(&window(10));
        });
        assert!(gradient.long_us <= 2.1 * 10_000.0, "{}", gradient.long_us);
    }
}
