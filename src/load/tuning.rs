//! How many requests may be in work at once: found out instead of guessed.
//!
//! A [`Tuning`] looks at windows of finished work and moves the in-flight limit. A window is at
//! least one second and 50 requests long, and ends after 30 seconds whatever came.

use crate::time::{Duration, Timestamp};

use super::gradient::Gradient;
use super::latencies::Spread;
use super::tuner::Tuner;

/// The shortest window.
pub const WINDOW_MIN: Duration = Duration::from_secs(1);

/// The longest window.
pub const WINDOW_MAX: Duration = Duration::from_secs(30);

/// Requests that a window wants.
pub const WINDOW_REQUESTS: u64 = 50;

/// The range of the in-flight limit, and where it begins.
///
/// Invariant: `1 <= min <= initial <= max`, made so by [`LimitRange::new`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct LimitRange {
    min: u32,
    max: u32,
    initial: u32,
}

impl Default for LimitRange {
    fn default() -> Self {
        Self { min: 1, max: 200, initial: 20 }
    }
}

impl LimitRange {
    /// Requests in work at once: brought into order where they are not.
    pub fn new(min: u32, initial: u32, max: u32) -> Self {
        let min = min.max(1);
        let max = max.max(min);
        Self { min, max, initial: initial.clamp(min, max) }
    }

    /// A limit that never moves.
    pub fn fixed(limit: u32) -> Self {
        Self::new(limit, limit, limit)
    }

    pub const fn initial(self) -> u32 {
        self.initial
    }

    /// A limit brought into the range.
    pub fn clamp(self, limit: f64) -> f64 {
        limit.clamp(f64::from(self.min), f64::from(self.max))
    }
}

/// What one window of finished work shows.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Window {
    /// The mean of the time from the begin of work to its end.
    pub latency_mean: Duration,
    /// Its 90th percentile.
    pub latency_p90: Duration,
    /// Requests in work, averaged over time.
    pub in_flight: f64,
    /// The most that were in work at once.
    pub in_flight_peak: u64,
    /// Requests finished per second.
    pub throughput: f64,
}

/// Moves the in-flight limit by what it sees.
pub trait Tuning: std::fmt::Debug + Send {
    /// Looks at a window that has ended and tells the limit for the next.
    fn observe(&mut self, window: &Window) -> u32;
}

/// How the in-flight limit is found.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum TuningKind {
    /// It stays where it begins.
    #[default]
    Fixed,
    /// [`Tuner`].
    Tuner,
    /// [`Gradient`].
    Gradient2,
}

impl TuningKind {
    pub const ALL: [Self; 3] = [Self::Fixed, Self::Tuner, Self::Gradient2];

    /// `fixed`, `tuner` or `gradient2`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fixed => "fixed",
            Self::Tuner => "tuner",
            Self::Gradient2 => "gradient2",
        }
    }

    /// Reads a name.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == word)
    }

    pub fn build(self, range: LimitRange) -> Box<dyn Tuning> {
        match self {
            Self::Fixed => Box::new(Fixed(range.initial)),
            Self::Tuner => Box::new(Tuner::new(range)),
            Self::Gradient2 => Box::new(Gradient::new(range)),
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Fixed(u32);

impl Tuning for Fixed {
    fn observe(&mut self, _: &Window) -> u32 {
        self.0
    }
}

/// Makes windows of short intervals.
#[derive(Debug)]
pub(super) struct Collector {
    started: Timestamp,
    spread: Spread,
    in_flight_us: f64,
    in_flight_peak: u64,
}

impl Collector {
    pub(super) fn new(now: Timestamp) -> Self {
        Self { started: now, spread: Spread::default(), in_flight_us: 0.0, in_flight_peak: 0 }
    }

    /// Takes an interval in: the spans of work that ended in it, and the area under the number
    /// in flight, in request-microseconds. Tells the window if it ends here.
    pub(super) fn add(
        &mut self,
        spread: &Spread,
        in_flight_us: f64,
        in_flight_peak: u64,
        now: Timestamp,
    ) -> Option<Window> {
        self.spread.merge(spread);
        self.in_flight_us += in_flight_us;
        self.in_flight_peak = self.in_flight_peak.max(in_flight_peak);
        let length = now.since(self.started);
        let has_enough = length >= WINDOW_MIN && self.spread.count() >= WINDOW_REQUESTS;
        if !has_enough && length < WINDOW_MAX {
            return None;
        }
        let ended = std::mem::replace(self, Self::new(now));
        let length_us = length.as_micros() as f64;
        let latency_p90 = ended.spread.quantile(0.9)?;
        Some(Window {
            latency_mean: ended.spread.mean(),
            latency_p90,
            in_flight: ended.in_flight_us / length_us,
            in_flight_peak: ended.in_flight_peak,
            throughput: ended.spread.count() as f64 * 1e6 / length_us,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::latencies::Latencies;
    use super::*;

    #[test]
    fn window_ends_with_time_and_requests_or_at_last() {
        let start = Timestamp::from_millis(0);
        let at = |ms| start + Duration::from_millis(ms);
        let latencies = Latencies::new();
        let mut collector = Collector::new(start);
        let spans = |times: usize| {
            (0..times).for_each(|_| latencies.note(Duration::from_millis(2)));
            latencies.take()
        };
        assert_eq!(collector.add(&spans(100), 1e6, 4, at(500)), None);
        let window = collector.add(&spans(100), 3e6, 8, at(1_000)).expect("a second, 200 requests");
        assert_eq!((window.in_flight_peak, window.latency_p90.as_millis()), (8, 2));
        assert!((window.throughput - 200.0).abs() < 1e-9);
        assert!((window.in_flight - 4.0).abs() < 1e-9);
        assert_eq!(collector.add(&spans(10), 0.0, 1, at(30_999)), None);
        assert!(collector.add(&spans(10), 0.0, 1, at(31_000)).is_some());
        assert_eq!(collector.add(&spans(0), 0.0, 0, at(61_000)), None);
        assert_eq!(collector.started, at(61_000));
    }

    #[test]
    fn every_tuning_stays_in_its_range_whatever_it_is_shown() {
        let range = LimitRange::new(4, 20, 64);
        let odd = [
            Window::default(),
            Window { in_flight: f64::NAN, throughput: f64::NAN, ..Window::default() },
            Window {
                latency_mean: Duration::from_secs(9),
                latency_p90: Duration::from_secs(10),
                in_flight: 1e9,
                in_flight_peak: u64::MAX,
                throughput: 1e12,
            },
        ];
        for kind in TuningKind::ALL {
            assert_eq!(TuningKind::parse(kind.name()), Some(kind));
            let mut tuning = kind.build(range);
            for window in odd.iter().cycle().take(300) {
                let limit = tuning.observe(window);
                assert!((4..=64).contains(&limit), "{kind:?}: {limit}");
            }
        }
        assert_eq!(LimitRange::new(0, 500, 0), LimitRange::fixed(1));
    }
}
