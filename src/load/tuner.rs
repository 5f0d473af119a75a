//! The in-flight limit by the queue behind it: the auto tuner.
//!
//! As TCP Vegas finds its window. From the 90th percentile of latency when little waits
//! (`baseline`) and of now (`recent`) follows how many of those in flight only wait:
//!
//! ```text
//! queue = ceil(limit * (1 - baseline / recent))
//! step = max(1, floor(log10(limit)))
//! fewer than 3 * step wait: limit + step     more than 6 * step: limit - step
//! ```
//!
//! A Vegas that is alone with its own queue takes it for the usual. Therefore, while the limit
//! is used up, it is lowered as well when over the last 50 windows more in flight meant *less*
//! done, or hardly more and longer. The limit is at most five times what was really in flight.
//!
//! After the adaptive limiter of failsafe-go, whose authors name Cinnamon's auto tuner. One
//! thing is ours: the limit is not lowered for the sake of the last 50 windows once less is done
//! than in them. What they show ends later than it is true, and the limit fell to one.

use std::collections::VecDeque;

use super::tuning::{LimitRange, Tuning, Window};

/// Windows whose median is taken, against a single odd one.
const MEDIAN_OF: usize = 5;
/// Windows that the recent latency is averaged over, and the baseline.
const RECENT_WINDOWS: f64 = 5.0;
const BASELINE_WINDOWS: f64 = 10.0;
/// Windows that are compared with each other.
const CORRELATED: usize = 50;
/// Fewer say nothing.
const CORRELATED_MIN: usize = 10;

const QUEUE_LOW: f64 = 3.0;
const QUEUE_HIGH: f64 = 6.0;
const HEADROOM: f64 = 5.0;

/// What is done, of what was done on average, that lowering the limit may not cost.
const WORK_KEPT: f64 = 0.9;

/// See the module.
#[derive(Clone, Debug)]
pub struct Tuner {
    range: LimitRange,
    limit: f64,
    /// The last percentiles in microseconds, at most [`MEDIAN_OF`].
    latest: VecDeque<f64>,
    recent_us: Option<f64>,
    baseline_us: Option<f64>,
    /// (in flight, throughput, latency) of at most [`CORRELATED`] windows.
    history: VecDeque<[f64; 3]>,
}

/// What is to become of the limit.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Move {
    Down,
    Stay,
    Up,
}

impl Tuner {
    pub fn new(range: LimitRange) -> Self {
        Self {
            range,
            limit: f64::from(range.initial()),
            latest: VecDeque::with_capacity(MEDIAN_OF),
            recent_us: None,
            baseline_us: None,
            history: VecDeque::with_capacity(CORRELATED),
        }
    }

    /// The recent latency with this percentile in.
    fn take_recent(&mut self, p90_us: f64) -> f64 {
        push(&mut self.latest, p90_us, MEDIAN_OF);
        let mut sorted: Vec<f64> = self.latest.iter().copied().collect();
        sorted.sort_by(f64::total_cmp);
        let median = sorted[sorted.len() / 2];
        averaged(&mut self.recent_us, median, RECENT_WINDOWS)
    }

    /// Whether the last windows say that more in flight does no more work.
    fn is_past_its_best(&self) -> bool {
        if self.history.len() < CORRELATED_MIN {
            return false;
        }
        let column =
            |number: usize| self.history.iter().map(|window| window[number]).collect::<Vec<f64>>();
        let [in_flight, throughput, latency] = [0, 1, 2].map(column);
        let latest = throughput.last().copied().unwrap_or(0.0);
        if latest < WORK_KEPT * mean(&throughput) {
            return false;
        }
        let with_throughput = correlation(&in_flight, &throughput);
        let is_slower = correlation(&in_flight, &latency) > 0.5;
        with_throughput < 0.0
            || is_slower && (with_throughput < 0.3 || variation(&throughput) < 0.2)
    }
}

impl Tuning for Tuner {
    fn observe(&mut self, window: &Window) -> u32 {
        let latency_us = window.latency_p90.as_micros().max(1) as f64;
        let recent = self.take_recent(latency_us);
        let baseline = averaged(&mut self.baseline_us, recent, BASELINE_WINDOWS);
        if window.in_flight.is_finite() && window.throughput.is_finite() {
            let seen = [window.in_flight, window.throughput, latency_us];
            push(&mut self.history, seen, CORRELATED);
        }
        let is_saturated = window.in_flight_peak as f64 >= self.limit.floor();
        let is_past_its_best = is_saturated && self.is_past_its_best();
        let decided = if is_past_its_best {
            Move::Down
        } else {
            by_queue(self.limit, queue(self.limit, baseline, recent))
        };
        let in_use = HEADROOM * window.in_flight_peak.max(1) as f64;
        self.limit = self.range.clamp(moved(self.limit, decided).min(in_use));
        self.limit as u32
    }
}

/// How many of those in flight only wait.
fn queue(limit: f64, baseline: f64, recent: f64) -> f64 {
    (limit * (1.0 - baseline / recent)).ceil().max(0.0)
}

fn step(limit: f64) -> f64 {
    limit.max(1.0).log10().floor().max(1.0)
}

fn by_queue(limit: f64, queue: f64) -> Move {
    let step = step(limit);
    if queue > QUEUE_HIGH * step {
        Move::Down
    } else if queue < QUEUE_LOW * step {
        Move::Up
    } else {
        Move::Stay
    }
}

fn moved(limit: f64, decided: Move) -> f64 {
    match decided {
        Move::Down => limit - step(limit),
        Move::Stay => limit,
        Move::Up => limit + step(limit),
    }
}

/// An exponential average that goes back over about so many samples.
fn averaged(average: &mut Option<f64>, sample: f64, samples: f64) -> f64 {
    let next = average.map_or(sample, |known| known + 2.0 / (samples + 1.0) * (sample - known));
    *average = Some(next);
    next
}

fn push<T>(list: &mut VecDeque<T>, item: T, most: usize) {
    if list.len() == most {
        list.pop_front();
    }
    list.push_back(item);
}

fn mean(list: &[f64]) -> f64 {
    list.iter().sum::<f64>() / list.len().max(1) as f64
}

/// Pearson's: -1 to 1; 0 where one of the two stands still.
fn correlation(one: &[f64], other: &[f64]) -> f64 {
    let (one_mean, other_mean) = (mean(one), mean(other));
    let [mut both, mut of_one, mut of_other] = [0.0; 3];
    for (one, other) in one.iter().zip(other) {
        both += (one - one_mean) * (other - other_mean);
        of_one += (one - one_mean).powi(2);
        of_other += (other - other_mean).powi(2);
    }
    let scale = (of_one * of_other).sqrt();
    if scale > 0.0 { both / scale } else { 0.0 }
}

/// Deviation over mean; 0 of nothing.
fn variation(list: &[f64]) -> f64 {
    let mean = mean(list);
    let squares: f64 = list.iter().map(|value| (value - mean).powi(2)).sum();
    let deviation = (squares / list.len().max(1) as f64).sqrt();
    if mean > 0.0 { deviation / mean } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Duration;

    #[test]
    fn tuner_answers_its_vectors() {
        let rows = [
            ((20.0, 10.0, 10.0), 0.0, 21.0),
            ((20.0, 10.0, 12.0), 4.0, 20.0),
            ((20.0, 10.0, 15.0), 7.0, 19.0),
            ((200.0, 10.0, 10.2), 4.0, 202.0),
            ((200.0, 10.0, 12.0), 34.0, 198.0),
        ];
        for ((limit, baseline, recent), waiting, next) in rows {
            let found = queue(limit, baseline, recent);
            assert!((found - waiting).abs() < 1e-9, "{found}, not {waiting}");
            let found = moved(limit, by_queue(limit, found));
            assert!((found - next).abs() < 1e-9, "{found}, not {next}");
        }
    }

    #[test]
    fn limit_follows_a_service_that_has_eight_places() {
        // Beyond eight in flight nothing more is done and all take longer.
        let mut tuner = Tuner::new(LimitRange::new(1, 20, 200));
        let mut limit = 20;
        let mut seen = Vec::new();
        for round in 0..600_u32 {
            // What is offered swings a little, or nothing could be told from nothing.
            let in_flight = f64::from(limit - limit * (round % 7) / 50);
            let latency_ms = 10.0 * (in_flight / 8.0).max(1.0);
            let latency = Duration::from_micros((latency_ms * 1_000.0) as u64);
            limit = tuner.observe(&Window {
                latency_mean: latency,
                latency_p90: latency,
                in_flight,
                in_flight_peak: u64::from(limit),
                throughput: in_flight / latency_ms * 1_000.0,
            });
            seen.push(limit);
        }
        assert!(seen[300..].iter().all(|limit| (4..=32).contains(limit)), "{seen:?}");
    }

    #[test]
    fn unused_limit_stays_near_what_is_used() {
        let mut tuner = Tuner::new(LimitRange::new(1, 20, 200));
        for _ in 0..300 {
            let latency = Duration::from_millis(10);
            tuner.observe(&Window {
                latency_mean: latency,
                latency_p90: latency,
                in_flight: 3.0,
                in_flight_peak: 4,
                throughput: 300.0,
            });
        }
        assert!((tuner.limit - 20.0).abs() < f64::EPSILON, "{}", tuner.limit);
    }

    #[test]
    fn correlation_is_of_two_lists_and_nothing_of_a_constant() {
        let rising = [1.0, 2.0, 3.0, 4.0];
        assert!((correlation(&rising, &[2.0, 4.0, 6.0, 8.0]) - 1.0).abs() < 1e-12);
        assert!((correlation(&rising, &[8.0, 6.0, 4.0, 2.0]) + 1.0).abs() < 1e-12);
        assert!(correlation(&rising, &[5.0; 4]).abs() < 1e-12);
        assert!((variation(&[1.0, 3.0]) - 0.5).abs() < 1e-12);
    }
}
