//! How long things took: counts by size of the span, for percentiles of one interval.
//!
//! Buckets grow with the span, sixteen to each doubling, so a percentile is at most a sixteenth
//! above what it was, whether it is of microseconds or of minutes. Many threads count at once,
//! without a lock. Memory is fixed.

use std::sync::atomic::{AtomicU32, Ordering};

use crate::time::Duration;

/// Buckets to each doubling.
const PARTS: u64 = 16;
const PARTS_BITS: u32 = PARTS.ilog2();

/// Longer spans count as this one: about 19 hours.
const SPAN_MAX_US: u64 = (1 << 36) - 1;

const BUCKETS: usize = bucket(SPAN_MAX_US) + 1;

/// Spans, counted by size.
#[derive(Debug)]
pub struct Latencies(Box<[AtomicU32]>);

/// The counts of some interval, taken out of [`Latencies`].
#[derive(Clone, Debug, Default)]
pub struct Spread {
    /// By bucket; no bucket at all before the first count.
    counts: Vec<u32>,
    count: u64,
    sum_us: u64,
}

impl Default for Latencies {
    fn default() -> Self {
        Self::new()
    }
}

impl Latencies {
    pub fn new() -> Self {
        Self((0..BUCKETS).map(|_| AtomicU32::new(0)).collect())
    }

    pub fn note(&self, span: Duration) {
        let span_us = span.as_micros().min(SPAN_MAX_US);
        self.0[bucket(span_us)].fetch_add(1, Ordering::Relaxed);
    }

    /// Takes out what was counted since the last time.
    pub fn take(&self) -> Spread {
        let mut spread = Spread::default();
        for (place, count) in self.0.iter().enumerate() {
            // Looked at first: most are empty, and a write takes the line from other threads.
            if count.load(Ordering::Relaxed) > 0 {
                spread.add(place, count.swap(0, Ordering::Relaxed));
            }
        }
        spread
    }
}

impl Spread {
    /// How many spans there are.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The mean, to a sixteenth; zero of nothing.
    pub fn mean(&self) -> Duration {
        Duration::from_micros(self.sum_us.checked_div(self.count).unwrap_or(0))
    }

    /// The span that a share of the spans does not exceed, 0.9 for the 90th percentile; at most
    /// a sixteenth too long. None of nothing.
    pub fn quantile(&self, share: f64) -> Option<Duration> {
        let wanted = ((self.count as f64 * share).ceil() as u64).clamp(1, self.count.max(1));
        let mut below = 0;
        self.counts.iter().enumerate().find_map(|(place, count)| {
            below += u64::from(*count);
            (below >= wanted).then(|| Duration::from_micros(longest(place)))
        })
    }

    /// Takes the counts of another interval in.
    pub fn merge(&mut self, other: &Self) {
        for (place, count) in other.counts.iter().enumerate() {
            self.add(place, *count);
        }
    }

    fn add(&mut self, place: usize, count: u32) {
        if count > 0 {
            self.counts.resize(BUCKETS.max(self.counts.len()), 0);
            self.counts[place] = self.counts[place].saturating_add(count);
            self.count += u64::from(count);
            self.sum_us = self.sum_us.saturating_add(longest(place) * u64::from(count));
        }
    }
}

/// The bucket of a span: its own below sixteen, then by its highest bit and the four after it.
const fn bucket(span_us: u64) -> usize {
    if span_us < PARTS {
        return span_us as usize;
    }
    let octave = span_us.ilog2() - PARTS_BITS;
    let part = (span_us >> octave) - PARTS;
    ((octave as u64 + 1) * PARTS + part) as usize
}

/// The longest span of a bucket, in microseconds.
const fn longest(place: usize) -> u64 {
    let (octave, part) = (place as u64 / PARTS, place as u64 % PARTS);
    if octave == 0 { part } else { ((PARTS + part + 1) << (octave - 1)) - 1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_span_falls_into_a_bucket_that_is_hardly_longer() {
        for power in 0..36 {
            for offset in [0, 1, 3, 7] {
                let span = (1_u64 << power) + offset * (1 << power) / 8;
                let longest = longest(bucket(span));
                assert!(longest >= span && longest - span <= span / 16, "{span}, {longest}");
            }
        }
        assert_eq!((bucket(15), bucket(16), BUCKETS), (15, 16, 33 * 16));
    }

    #[test]
    fn quantiles_are_those_of_what_was_counted() {
        let latencies = Latencies::new();
        for ms in 1..=100 {
            latencies.note(Duration::from_millis(ms));
        }
        let spread = latencies.take();
        assert_eq!(spread.count(), 100);
        for (share, ms) in [(0.0, 1), (0.5, 50), (0.9, 90), (1.0, 100)] {
            let found = spread.quantile(share).map_or(0, Duration::as_micros);
            assert!((ms * 1_000..=ms * 1_063).contains(&found), "{share}: {found}");
        }
        assert!((50_500..54_000).contains(&spread.mean().as_micros()));
        assert_eq!((latencies.take().count(), latencies.take().quantile(0.9)), (0, None));
    }

    #[test]
    fn merged_counts_are_those_of_both() {
        let latencies = Latencies::new();
        let mut all = Spread::default();
        for span in [Duration::from_secs(100_000), Duration::ZERO] {
            latencies.note(span);
            all.merge(&latencies.take());
        }
        assert_eq!((all.count(), all.quantile(0.5)), (2, Some(Duration::ZERO)));
        assert_eq!(all.quantile(1.0), Some(Duration::from_micros(SPAN_MAX_US)));
    }
}
