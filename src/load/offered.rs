//! Which priorities come, and where a share of them is cut off.
//!
//! To refuse a share `r` of the requests, the least important first, one must know how the
//! priorities are spread. From the least important on their counts are added up until `r * n` is
//! reached: that priority is refused by the share that is still missing, all below it as a
//! whole, and nobody above it. What is noted is what was *offered*, refused or not; by what was
//! admitted, each refusal would move the cut further up.
//!
//! Counted are the requests since the last cut, or the last thousand where fewer came. A thousand
//! alone would do at twice the capacity; at thirty times, of which a thirtieth is to pass, chance
//! would make that thirtieth a sixth too large or too small, and the queue would show it.
//!
//! Many threads note at once, without a lock. Invariant, when none is at it: `counts` are those
//! of the ring, at most [`OFFERED_MAX`] in all. While some are, they differ by one each.

use std::sync::atomic::{AtomicU16, AtomicU32, AtomicUsize, Ordering};

use super::cut::Cut;
use super::tier::{COHORTS, Cohort, PRIORITIES, Priority, Tier};

/// Requests that are remembered: enough that 768 priorities have a shape, few enough that the
/// shape is that of now.
pub const OFFERED_MAX: usize = 1_000;

/// A place of the ring that nothing was noted in.
const NOTHING: u16 = u16::MAX;

const _: () = assert!(PRIORITIES < NOTHING as usize);

/// The priorities of the latest requests.
#[derive(Debug)]
pub struct Offered {
    ring: Box<[AtomicU16]>,
    next: AtomicUsize,
    /// How often each priority stands in the ring.
    counts: Box<[AtomicU32]>,
    /// How often each priority came since the last cut.
    since_cut: Box<[AtomicU32]>,
}

impl Default for Offered {
    fn default() -> Self {
        Self::new()
    }
}

impl Offered {
    pub fn new() -> Self {
        Self {
            ring: (0..OFFERED_MAX).map(|_| AtomicU16::new(NOTHING)).collect(),
            next: AtomicUsize::new(0),
            counts: (0..PRIORITIES).map(|_| AtomicU32::new(0)).collect(),
            since_cut: (0..PRIORITIES).map(|_| AtomicU32::new(0)).collect(),
        }
    }

    /// A request of this priority came.
    pub fn note(&self, priority: Priority) {
        let place = self.next.fetch_add(1, Ordering::Relaxed) % OFFERED_MAX;
        // Counted before it can be found and taken out again: no count falls below zero.
        self.counts[usize::from(priority.number())].fetch_add(1, Ordering::Relaxed);
        self.since_cut[usize::from(priority.number())].fetch_add(1, Ordering::Relaxed);
        let old = self.ring[place].swap(priority.number(), Ordering::Relaxed);
        if old != NOTHING {
            self.counts[usize::from(old)].fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// What to refuse so that it is the share `refuse`, 0.0 to 1.0, of requests such as came
    /// since this was last asked. Nobody is refused where nothing is known.
    pub fn cut(&self, refuse: f64) -> Cut {
        let since_cut: Vec<u32> =
            self.since_cut.iter().map(|count| count.swap(0, Ordering::Relaxed)).collect();
        if total(&since_cut) >= OFFERED_MAX as u64 {
            return cut(&since_cut, refuse);
        }
        let counts: Vec<u32> =
            self.counts.iter().map(|count| count.load(Ordering::Relaxed)).collect();
        cut(&counts, refuse)
    }
}

fn total(counts: &[u32]) -> u64 {
    counts.iter().map(|count| u64::from(*count)).sum()
}

/// Cuts off a share of the requests that `counts` tells by priority.
fn cut(counts: &[u32], refuse: f64) -> Cut {
    let wanted = refuse * total(counts) as f64;
    if wanted.is_nan() || wanted <= 0.0 {
        return Cut::NONE;
    }
    let mut below = 0.0;
    for number in (0..counts.len()).rev() {
        let own = f64::from(counts[number]);
        // The product of a decimal share and a count is off by some last digits.
        if own > 0.0 && below + own >= wanted - 1e-9 {
            return Cut::new(numbered(number), ((wanted - below) / own).min(1.0));
        }
        below += own;
    }
    if below > 0.0 { Cut::new(numbered(0), 1.0) } else { Cut::NONE }
}

fn numbered(number: usize) -> Priority {
    let cohort = Cohort::of((number % usize::from(COHORTS)) as u64);
    Priority::new(Tier::ALL[number / usize::from(COHORTS)], cohort)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As many requests of each tier as given, all of one cohort.
    fn offered(of_tiers: [usize; 6]) -> Offered {
        let offered = Offered::new();
        for (tier, times) in Tier::ALL.into_iter().zip(of_tiers) {
            for _ in 0..times {
                offered.note(Priority::new(tier, Cohort::default()));
            }
        }
        offered
    }

    #[test]
    fn cut_answers_its_vectors() {
        let offered = offered([50, 400, 200, 150, 100, 100]);
        let rows = [
            (0.05, 5, 0.5),
            (0.1, 5, 1.0),
            (0.15, 4, 0.5),
            (0.2, 4, 1.0),
            (0.333, 3, 0.887),
            (0.5, 2, 0.75),
            (0.95, 1, 1.0),
            (1.0, 0, 1.0),
        ];
        for (refuse, tier, share) in rows {
            let cut = offered.cut(refuse);
            assert_eq!(cut.at().map(|at| at / COHORTS), Some(tier), "{refuse}");
            assert!((cut.share() - share).abs() < 0.000_5, "{refuse}: {}", cut.share());
        }
        assert!(offered.cut(0.0).is_none() && Offered::new().cut(0.7).is_none());
        assert!(offered.cut(f64::NAN).is_none());
    }

    #[test]
    fn no_important_request_is_refused_before_all_less_important_ones() {
        let offered = offered([100, 150, 200, 150, 200, 200]);
        for step in 1..=100 {
            let cut = offered.cut(f64::from(step) / 100.0);
            for (important, lesser) in Tier::ALL.into_iter().zip(Tier::ALL.into_iter().skip(1)) {
                let at = |tier| Priority::new(tier, Cohort::default());
                // The luckiest throw of the lesser, the unluckiest of the important.
                let refused = cut.refuses(at(important), 0);
                assert!(!refused || cut.refuses(at(lesser), u32::MAX), "{step}: {important:?}");
            }
        }
    }

    #[test]
    fn last_thousand_count_where_fewer_came_since_the_last_cut() {
        let offered = offered([0, 0, 0, 0, 0, 5_000]);
        assert_eq!(offered.cut(0.5).at(), Some(5 * COHORTS));
        for _ in 0..OFFERED_MAX / 2 {
            offered.note(Priority::new(Tier::T1, Cohort::default()));
        }
        assert_eq!(offered.cut(0.5).at(), Some(5 * COHORTS));
        for _ in 0..OFFERED_MAX / 2 {
            offered.note(Priority::new(Tier::T1, Cohort::default()));
        }
        assert_eq!(offered.cut(0.5), Cut::new(Priority::new(Tier::T1, Cohort::default()), 0.5));
    }

    #[test]
    fn counts_are_those_of_the_ring_after_threads_have_noted_at_once() {
        let offered = Offered::new();
        std::thread::scope(|scope| {
            for thread in 0..4_u64 {
                let offered = &offered;
                scope.spawn(move || {
                    for step in 0..5_000_u64 {
                        let tier = Tier::ALL[(step % 6) as usize];
                        offered.note(Priority::new(tier, Cohort::of(step * 7 + thread)));
                    }
                });
            }
        });
        let mut right = vec![0; PRIORITIES];
        for place in &offered.ring {
            right[usize::from(place.load(Ordering::Relaxed))] += 1;
        }
        let found: Vec<u32> =
            offered.counts.iter().map(|count| count.load(Ordering::Relaxed)).collect();
        assert_eq!(found, right);
        assert_eq!(found.iter().sum::<u32>(), OFFERED_MAX as u32);
    }
}
