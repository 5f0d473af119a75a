//! Each algorithm once more, slow and obvious: what the property tests compare with.
//!
//! Nothing is shared with the algorithms but [`Quota`]. The models keep every admitted request,
//! count by looking at all of them, and find a wait by trying moments, not by a formula.
//!
//! Units: microseconds; nanoseconds in the bucket.

use crate::time::Timestamp;

use super::{Algorithm, Align, Quota};

/// What a model says of one request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Answer {
    pub(super) allowed: bool,
    pub(super) remaining: u64,
    /// `None`: allowed, or never.
    pub(super) retry_us: Option<u64>,
    pub(super) reset_us: u64,
}

/// One admitted request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Admitted {
    pub(super) at_us: u64,
    pub(super) cost: u64,
}

#[derive(Clone, Debug)]
pub(super) struct Model {
    last_us: u64,
    /// Admitted requests; those of logs at the moments at which they count.
    admitted: Vec<Admitted>,
    /// When the fixed window in use began, if it is aligned to the first request.
    began_us: Option<u64>,
    /// What a bucket holds at `last_us`, and the interval by which it is measured.
    level_ns: u128,
    interval_ns: u128,
}

impl Model {
    pub(super) fn new() -> Self {
        Self { last_us: 0, admitted: Vec::new(), began_us: None, level_ns: 0, interval_ns: 0 }
    }

    /// The moment that the model takes `now` for.
    pub(super) fn clamped(&self, now: Timestamp) -> u64 {
        self.last_us.max(now.as_micros())
    }

    pub(super) fn check(&mut self, quota: &Quota, cost: u64, now: Timestamp) -> Answer {
        let now_us = self.clamped(now);
        self.advance(quota, now_us);
        let used = self.used(quota, now_us);
        let allowed = cost == 0 || cost <= quota.capacity().saturating_sub(used);
        let reset_if_denied_us = self.reset(quota, now_us);
        if allowed && cost > 0 {
            self.admit(quota, cost, now_us);
        }
        let retry_us = (!allowed && cost <= quota.capacity())
            .then(|| self.first_moment(quota, cost, now_us) - now_us);
        Answer {
            allowed,
            remaining: quota.capacity().saturating_sub(self.used(quota, now_us)),
            retry_us,
            reset_us: if allowed { self.reset(quota, now_us) } else { reset_if_denied_us },
        }
    }

    /// Takes away from the oldest requests; what was taken.
    pub(super) fn refund_log(&mut self, quota: &Quota, cost: u64, now: Timestamp) -> u64 {
        let now_us = self.clamped(now);
        self.advance(quota, now_us);
        let mut left = cost;
        for admitted in &mut self.admitted {
            let taken = admitted.cost.min(left);
            admitted.cost -= taken;
            left -= taken;
        }
        self.admitted.retain(|admitted| admitted.cost > 0);
        cost - left
    }

    /// Forgets what is over at `now_us`, and goes on from there.
    pub(super) fn advance(&mut self, quota: &Quota, now_us: u64) {
        let window_us = quota.window().as_micros();
        match quota.algorithm() {
            Algorithm::SlidingLog | Algorithm::SlidingWindow => {
                self.admitted.retain(|admitted| admitted.at_us + window_us > now_us);
            }
            Algorithm::SlidingCounter => {
                let oldest_us = (now_us / window_us).saturating_sub(1) * window_us;
                self.admitted.retain(|admitted| admitted.at_us >= oldest_us);
            }
            Algorithm::FixedWindow => {
                if self.began_us.is_some_and(|began_us| began_us + window_us <= now_us) {
                    self.began_us = None;
                }
            }
            Algorithm::Gcra => {
                let passed_ns = u128::from(now_us - self.last_us) * 1_000;
                self.level_ns = self.level_ns.saturating_sub(passed_ns);
                let interval_ns =
                    (u128::from(window_us) * 1_000).div_ceil(u128::from(quota.limit()));
                if self.interval_ns != 0 && self.interval_ns != interval_ns {
                    self.level_ns = (self.level_ns * interval_ns).div_ceil(self.interval_ns);
                }
                self.interval_ns = interval_ns;
            }
        }
        self.last_us = now_us;
    }

    /// What is used at a moment, rounded up to whole units.
    pub(super) fn used(&self, quota: &Quota, now_us: u64) -> u64 {
        let window_us = quota.window().as_micros();
        let sum = |counts: &dyn Fn(u64) -> bool| {
            let counted = self.admitted.iter().filter(|admitted| counts(admitted.at_us));
            counted.map(|admitted| admitted.cost).sum::<u64>()
        };
        let window_of = |at_us: u64| at_us / window_us;
        match quota.algorithm() {
            Algorithm::SlidingLog | Algorithm::SlidingWindow => {
                sum(&|at_us| at_us + window_us > now_us)
            }
            Algorithm::SlidingCounter => {
                let current = sum(&|at_us| window_of(at_us) == window_of(now_us));
                let previous = sum(&|at_us| window_of(at_us) + 1 == window_of(now_us));
                let left_us = window_us - now_us % window_us;
                let weighted = u128::from(previous) * u128::from(left_us);
                current + weighted.div_ceil(u128::from(window_us)) as u64
            }
            Algorithm::FixedWindow => match quota.align() {
                Align::Calendar => unreachable!("its windows are tested against the calendar"),
                Align::Epoch => sum(&|at_us| window_of(at_us) == window_of(now_us)),
                Align::First => self.began_us.map_or(0, |began_us| {
                    if began_us + window_us <= now_us {
                        return 0;
                    }
                    sum(&|at_us| at_us >= began_us)
                }),
            },
            Algorithm::Gcra => {
                let passed_ns = u128::from(now_us - self.last_us) * 1_000;
                self.level_ns.saturating_sub(passed_ns).div_ceil(self.interval_ns) as u64
            }
        }
    }

    pub(super) fn admit(&mut self, quota: &Quota, cost: u64, now_us: u64) {
        let at_us = match quota.algorithm() {
            Algorithm::SlidingWindow => {
                let slot_us = quota.window().as_micros().div_ceil(100);
                now_us.div_ceil(slot_us) * slot_us
            }
            Algorithm::SlidingLog
            | Algorithm::SlidingCounter
            | Algorithm::FixedWindow
            | Algorithm::Gcra => now_us,
        };
        if quota.algorithm() == Algorithm::FixedWindow && quota.align() == Align::First {
            self.began_us.get_or_insert(now_us);
        }
        self.level_ns += self.interval_ns * u128::from(cost);
        self.admitted.push(Admitted { at_us, cost });
    }

    /// How long until nothing is used: the first moment at which that is so, except that a fixed
    /// window resets when it ends even if it is unused.
    pub(super) fn reset(&self, quota: &Quota, now_us: u64) -> u64 {
        let window_us = quota.window().as_micros();
        match (quota.algorithm(), quota.align()) {
            (Algorithm::FixedWindow, Align::Epoch | Align::Calendar) => {
                window_us - now_us % window_us
            }
            (Algorithm::FixedWindow, Align::First) => {
                self.began_us.map_or(0, |began_us| began_us + window_us - now_us)
            }
            (Algorithm::SlidingLog | Algorithm::SlidingWindow, _) => {
                self.admitted.last().map_or(0, |last| last.at_us + window_us - now_us)
            }
            (Algorithm::SlidingCounter | Algorithm::Gcra, _) => {
                Self::first(now_us, |at_us| self.used(quota, at_us) == 0) - now_us
            }
        }
    }

    fn first_moment(&self, quota: &Quota, cost: u64, now_us: u64) -> u64 {
        let free = |at_us: u64| quota.capacity().saturating_sub(self.used(quota, at_us));
        Self::first(now_us, |at_us| cost <= free(at_us))
    }

    /// The first moment from now at which what only ever becomes true is true.
    fn first(now_us: u64, holds: impl Fn(u64) -> bool) -> u64 {
        if holds(now_us) {
            return now_us;
        }
        let (mut before, mut step) = (now_us, 1);
        while !holds(before + step) {
            before += step;
            step *= 2;
        }
        let mut after = before + step;
        while after - before > 1 {
            let middle = before + (after - before) / 2;
            if holds(middle) {
                after = middle;
            } else {
                before = middle;
            }
        }
        after
    }
}

/// A small generator of numbers, the same on every run.
#[derive(Clone, Debug)]
pub(super) struct Random(u64);

impl Random {
    pub(super) fn seeded(seed: u64) -> Self {
        Self(seed)
    }

    /// Below `end`, which is above zero.
    pub(super) fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    pub(super) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize]
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }
}
