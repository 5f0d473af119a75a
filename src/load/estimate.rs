//! A smoothed rate that follows a real change at once: an average gated by significance.
//!
//! Counts of events that come by chance spread about their mean `m` by the square root of `m`.
//! A sample within four such deviations is taken for chance and moves the average by 0.3 of the
//! distance; one beyond is taken for a change and becomes the average. Large rates are followed
//! as fast as without smoothing, small ones without their noise.
//!
//! Invariant: the estimate is a finite number, not below zero.

use crate::time::Duration;

/// How far a sample within chance moves the average.
const WEIGHT: f64 = 0.3;

/// Deviations beyond which a sample is no chance.
const DEVIATIONS: f64 = 4.0;

/// Below so many expected events the square root says too little of the spread.
const EVENTS_MIN: f64 = 4.0;

/// A rate, or a count per interval, as it stands by the samples so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Estimate(Option<f64>);

impl Estimate {
    pub const fn new() -> Self {
        Self(None)
    }

    /// None before the first sample.
    pub const fn value(self) -> Option<f64> {
        self.0
    }

    /// Takes a rate in events per second, measured over `span`; tells the estimate. What is no
    /// finite number from zero on changes nothing.
    pub fn observe(&mut self, per_second: f64, span: Duration) -> f64 {
        self.take(per_second, span.as_micros() as f64 / 1e6)
    }

    /// Takes the events of one interval; all intervals are as long.
    pub fn observe_count(&mut self, count: f64) -> f64 {
        self.take(count, 1.0)
    }

    /// `events` is how many events one unit of the sample stands for.
    fn take(&mut self, sample: f64, events: f64) -> f64 {
        let is_sample = sample.is_finite() && sample >= 0.0;
        let estimate = match self.0 {
            Some(before) if !is_sample => before,
            None if !is_sample => return 0.0,
            None => sample,
            Some(before) if is_change(sample * events, before * events) => sample,
            Some(before) => before + WEIGHT * (sample - before),
        };
        self.0 = Some(estimate);
        estimate
    }
}

fn is_change(seen: f64, expected: f64) -> bool {
    (seen - expected).abs() > DEVIATIONS * expected.max(EVENTS_MIN).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn estimate_and_ratio_answer_their_vectors() {
        // (offered, estimate, admit fraction for the limit), sampled every second.
        let of_1000 = [
            (500.0, 500.0, 1.0),
            (1000.0, 1000.0, 1.0),
            (1500.0, 1500.0, 0.666_667),
            (1510.0, 1503.0, 0.665_336),
            (1490.0, 1499.1, 0.667_067),
            (3000.0, 3000.0, 0.333_333),
            (3050.0, 3015.0, 0.331_675),
            (1200.0, 1200.0, 0.833_333),
            (1010.0, 1010.0, 0.990_099),
            (990.0, 1004.0, 0.996_016),
            (0.0, 0.0, 1.0),
            (20.0, 20.0, 1.0),
        ];
        let of_10 = [
            (15.0, 15.0, 0.666_667),
            (12.0, 14.1, 0.709_22),
            (18.0, 15.27, 0.654_879),
            (14.0, 14.889, 0.671_637),
            (40.0, 40.0, 0.25),
            (38.0, 39.4, 0.253_807),
            (9.0, 9.0, 1.0),
        ];
        for (limit, rows) in [(1000.0, &of_1000[..]), (10.0, &of_10[..])] {
            let mut estimate = Estimate::new();
            for (offered, right, admit) in rows {
                let found = estimate.observe(*offered, Duration::from_secs(1));
                assert!((found - right).abs() < 1e-6, "{offered}: {found}, not {right}");
                assert!(((limit / found).min(1.0) - admit).abs() < 1e-6, "{offered}");
            }
        }
    }

    #[test]
    fn longer_span_makes_a_smaller_change_significant() {
        let mut brief = Estimate::new();
        let mut long = Estimate::new();
        for (estimate, secs) in [(&mut brief, 1), (&mut long, 100)] {
            estimate.observe(100.0, Duration::from_secs(secs));
            estimate.observe(110.0, Duration::from_secs(secs));
        }
        assert_eq!((brief.value(), long.value()), (Some(103.0), Some(110.0)));
    }

    #[test]
    fn what_is_no_rate_changes_nothing() {
        let mut estimate = Estimate::new();
        assert!(estimate.observe_count(f64::NAN).abs() < f64::EPSILON);
        assert_eq!(estimate.value(), None);
        estimate.observe_count(7.0);
        for sample in [f64::NAN, f64::INFINITY, -1.0] {
            estimate.observe_count(sample);
        }
        assert_eq!(estimate.value(), Some(7.0));
    }
}
