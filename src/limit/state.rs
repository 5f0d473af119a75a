//! What is remembered of one counted thing: [`State`], whichever algorithm counts it.
//!
//! A state knows the window and the last moment it was asked, so that it can say by itself when
//! it equals a fresh one, and so that time never runs back for it. Everything of fixed size is
//! inline; only logs have a heap, and they allocate with their first entry.
//!
//! Invariant: `last` never decreases; no algorithm is shown an earlier moment.

use crate::time::{Duration, Timestamp};

use super::ask::Ask;
use super::decision::{Cost, Decision};
use super::fixed_window::{self, Counter};
use super::gcra::{Bucket, Filled, Zero};
use super::log::Log;
use super::quota::{Algorithm, Align, LOG_ENTRIES_MAX_DEFAULT, Quota};
use super::sliding_counter::Counters;
use super::{sliding_log, sliding_window};

/// What was spent of a quota, and when.
#[derive(Clone, Debug)]
pub struct State {
    pub(super) window: Duration,
    pub(super) last: Timestamp,
    pub(super) kind: Kind,
}

/// One variant per algorithm, and one for logs that were begun in need.
#[derive(Clone, Debug)]
pub(super) enum Kind {
    SlidingLog(Log),
    /// A sliding log begun by a quota in need ([`Quota::in_need`]): its moments are rounded up.
    RoundedLog(Log),
    SlidingWindow(Log),
    SlidingCounter(Counters),
    FixedWindow(Counter),
    Gcra(Bucket),
}

// It stands inline in the slot of a key, of which there may be a hundred million.
const _: () = assert!(size_of::<State>() <= 40);

impl State {
    /// Nothing is spent.
    pub fn new(quota: &Quota, now: Timestamp) -> Self {
        let kind = match quota.algorithm() {
            Algorithm::SlidingLog if quota.is_in_need() => Kind::RoundedLog(Log::new()),
            Algorithm::SlidingLog => Kind::SlidingLog(Log::new()),
            Algorithm::SlidingWindow => Kind::SlidingWindow(Log::new()),
            Algorithm::SlidingCounter => Kind::SlidingCounter(Counters::default()),
            Algorithm::FixedWindow => Kind::FixedWindow(Counter::new(quota.align())),
            Algorithm::Gcra => Kind::Gcra(Bucket::new(quota.interval_ns(), now.as_micros())),
        };
        Self { window: quota.window(), last: now, kind }
    }

    pub const fn algorithm(&self) -> Algorithm {
        match self.kind {
            Kind::SlidingLog(_) | Kind::RoundedLog(_) => Algorithm::SlidingLog,
            Kind::SlidingWindow(_) => Algorithm::SlidingWindow,
            Kind::SlidingCounter(_) => Algorithm::SlidingCounter,
            Kind::FixedWindow(_) => Algorithm::FixedWindow,
            Kind::Gcra(_) => Algorithm::Gcra,
        }
    }

    /// The moment from which it equals a fresh state; not after the last request's moment where
    /// it does already.
    pub fn expires_at(&self) -> Timestamp {
        let window_us = self.window.as_micros();
        let last_us = self.last.as_micros();
        let at_us = match &self.kind {
            Kind::SlidingLog(log) | Kind::RoundedLog(log) | Kind::SlidingWindow(log) => {
                log.last_us().map(|at_us| at_us.saturating_add(window_us))
            }
            Kind::SlidingCounter(counters) => {
                let reset_us = counters.reset_us(window_us, last_us % window_us);
                Some(last_us.saturating_add(reset_us))
            }
            Kind::FixedWindow(counter) => counter.end_us(window_us),
            Kind::Gcra(bucket) => {
                Some(last_us.saturating_add(micros_ceil(bucket.debt_ns(last_us))))
            }
        };
        Timestamp::from_micros(at_us.unwrap_or(last_us))
    }

    /// What is spent of the quota at this moment, rounded up.
    pub fn used(&self, now: Timestamp) -> u64 {
        let ask = self.ask(Cost::ZERO, now);
        match &self.kind {
            Kind::SlidingLog(log) | Kind::RoundedLog(log) | Kind::SlidingWindow(log) => {
                log.sum() - ask.horizon_us().map_or(0, |horizon_us| log.sum_until(horizon_us))
            }
            Kind::SlidingCounter(counters) => counters.used(&ask, self.last.as_micros()),
            Kind::FixedWindow(counter) => counter.rolled(&ask).used,
            Kind::Gcra(bucket) => bucket.used(ask.now_us),
        }
    }

    /// What still counts at `now` of what a log was charged up to and including a moment; zero
    /// where no log counts.
    pub(super) fn spent_until(&self, until_us: u64, now: Timestamp) -> u64 {
        let ask = self.ask(Cost::ZERO, now);
        match &self.kind {
            Kind::SlidingLog(log) | Kind::RoundedLog(log) | Kind::SlidingWindow(log) => {
                let over = ask.horizon_us().map_or(0, |horizon_us| log.sum_until(horizon_us));
                log.sum_until(until_us).saturating_sub(over)
            }
            Kind::SlidingCounter(_) | Kind::FixedWindow(_) | Kind::Gcra(_) => 0,
        }
    }

    /// Whether entries were merged, because the log had too many or was begun in need: it may then
    /// open later than an exact one would.
    pub fn is_coarse(&self) -> bool {
        match &self.kind {
            Kind::SlidingLog(log) => log.coarse() > 0,
            Kind::RoundedLog(log) => log.len() > 0,
            Kind::SlidingWindow(_)
            | Kind::SlidingCounter(_)
            | Kind::FixedWindow(_)
            | Kind::Gcra(_) => false,
        }
    }

    /// Reads what stands last in it, so that all of it is near when the next check comes. What
    /// this and the two below return means nothing; it depends on what was read, that is all.
    #[inline]
    pub fn prefetch(&self) -> u64 {
        self.window.as_micros() ^ self.last.as_micros()
    }

    /// Reads from each line of what it owns that the next check will, if it is found at once.
    #[inline]
    pub fn prefetch_owned(&self) -> u64 {
        match &self.kind {
            Kind::SlidingLog(log) | Kind::RoundedLog(log) | Kind::SlidingWindow(log) => {
                log.prefetch()
            }
            Kind::SlidingCounter(_) | Kind::FixedWindow(_) | Kind::Gcra(_) => 0,
        }
    }

    /// Reads what is found only by what [`State::prefetch_owned`] has read.
    #[inline]
    pub fn prefetch_tail(&self) -> u64 {
        match &self.kind {
            Kind::SlidingLog(log) | Kind::RoundedLog(log) | Kind::SlidingWindow(log) => {
                log.prefetch_tail()
            }
            Kind::SlidingCounter(_) | Kind::FixedWindow(_) | Kind::Gcra(_) => 0,
        }
    }

    /// What stands on the heap, as the system's allocator counts it. In constant time.
    pub fn heap_bytes(&self) -> usize {
        match &self.kind {
            Kind::SlidingLog(log) | Kind::RoundedLog(log) | Kind::SlidingWindow(log) => {
                log.heap_bytes()
            }
            Kind::SlidingCounter(_) | Kind::FixedWindow(_) | Kind::Gcra(_) => 0,
        }
    }

    /// Whether it was counted just as the quota counts, its window included: a check then changes
    /// nothing but what it spends.
    pub fn is_counted_by(&self, quota: &Quota) -> bool {
        self.window == quota.window() && self.fits(quota)
    }

    /// Whether it was counted as the quota counts, so that it can be used as it stands. A log
    /// fits any window: its entries are moments.
    pub(super) fn fits(&self, quota: &Quota) -> bool {
        match &self.kind {
            Kind::SlidingLog(_) => quota.algorithm() == Algorithm::SlidingLog,
            Kind::RoundedLog(_) => quota.algorithm() == Algorithm::SlidingLog && quota.is_in_need(),
            Kind::SlidingWindow(_) => quota.algorithm() == Algorithm::SlidingWindow,
            Kind::SlidingCounter(_) => {
                quota.algorithm() == Algorithm::SlidingCounter && quota.window() == self.window
            }
            Kind::FixedWindow(counter) => {
                quota.algorithm() == Algorithm::FixedWindow
                    && quota.window() == self.window
                    && quota.align() == counter.align
                    && (quota.align() != Align::Calendar
                        || counter.is_of(quota.start().as_micros()))
            }
            Kind::Gcra(bucket) => {
                quota.algorithm() == Algorithm::Gcra && quota.interval_ns() == bucket.interval_ns
            }
        }
    }

    /// What was spent here, as the quota would have it; only where [`State::fits`] is false.
    #[cold]
    pub(super) fn adapted(&self, quota: &Quota, now: Timestamp) -> Self {
        let now = now.max(self.last);
        let old = self.ask(Cost::ZERO, now);
        let new = ask(quota, Cost::ZERO, now);
        let kind = match (&self.kind, quota.algorithm()) {
            // Later than the truth, so it goes on as an exact log and is still never over.
            (Kind::RoundedLog(log), Algorithm::SlidingLog) => Kind::SlidingLog(log.clone()),
            (Kind::SlidingCounter(counters), Algorithm::SlidingCounter) => {
                let current = counters.used(&old, self.last.as_micros());
                Kind::SlidingCounter(Counters { previous: 0, current })
            }
            (Kind::FixedWindow(counter), Algorithm::FixedWindow) => {
                Kind::FixedWindow(counter.rolled(&old).rebased(&new, quota.align()))
            }
            (Kind::Gcra(bucket), Algorithm::Gcra) => {
                Kind::Gcra(bucket.scaled(quota.interval_ns(), now.as_micros()))
            }
            (
                Kind::SlidingLog(_)
                | Kind::RoundedLog(_)
                | Kind::SlidingWindow(_)
                | Kind::SlidingCounter(_)
                | Kind::FixedWindow(_)
                | Kind::Gcra(_),
                _,
            ) => {
                let mut state = Self::new(quota, now);
                state.charge(quota, Cost(self.used(now).min(quota.capacity())), now);
                return state;
            }
        };
        Self { window: quota.window(), last: now, kind }
    }

    /// Decides and spends; the quota fits and `now` is not before `last`.
    #[inline]
    pub(super) fn check(&mut self, quota: &Quota, cost: Cost, now: Timestamp) -> Decision {
        let ask = ask(quota, cost, now);
        let last_us = self.last.as_micros();
        self.window = quota.window();
        self.last = now;
        match &mut self.kind {
            Kind::SlidingLog(log) => {
                let decision = sliding_log::check(log, &ask, sliding_log::EXACT_US);
                log.bound(quota.log_entries_max(), ask.window_us);
                decision
            }
            Kind::RoundedLog(log) => {
                sliding_log::check(log, &ask, sliding_log::rounded_us(ask.window_us))
            }
            Kind::SlidingWindow(log) => {
                sliding_log::check(log, &ask, sliding_window::slot_us(ask.window_us))
            }
            Kind::SlidingCounter(counters) => counters.check(&ask, last_us),
            Kind::FixedWindow(counter) => counter.check(&ask),
            Kind::Gcra(bucket) => {
                answer(&ask, bucket.fill(ask.capacity, ask.cost, ask.now_us, Zero::Passes))
            }
        }
    }

    /// The answer of [`State::check`], spending nothing.
    pub(super) fn peek(&self, quota: &Quota, cost: Cost, now: Timestamp) -> Decision {
        self.answer(&ask(quota, cost, now))
    }

    /// What is used of the quota at this moment, rounded up, and how long until nothing is if the
    /// cost is spent too, whatever the capacity. The quota fits and `now` is not before `last`.
    pub(super) fn weigh(&self, quota: &Quota, cost: Cost, now: Timestamp) -> (u64, Duration) {
        let decision = self.answer(&Ask { capacity: u64::MAX, ..ask(quota, cost, now) });
        let spent = if decision.is_allowed() { cost.0 } else { 0 };
        (u64::MAX - decision.remaining - spent, decision.reset_after)
    }

    fn answer(&self, ask: &Ask) -> Decision {
        match &self.kind {
            Kind::SlidingLog(log) => sliding_log::peek(log, ask, sliding_log::EXACT_US),
            Kind::RoundedLog(log) => {
                sliding_log::peek(log, ask, sliding_log::rounded_us(ask.window_us))
            }
            Kind::SlidingWindow(log) => {
                sliding_log::peek(log, ask, sliding_window::slot_us(ask.window_us))
            }
            Kind::SlidingCounter(counters) => {
                let mut copy = *counters;
                copy.check(ask, self.last.as_micros())
            }
            Kind::FixedWindow(counter) => {
                let mut copy = *counter;
                copy.check(ask)
            }
            Kind::Gcra(bucket) => {
                let mut copy = *bucket;
                answer(ask, copy.fill(ask.capacity, ask.cost, ask.now_us, Zero::Passes))
            }
        }
    }

    /// Spends without asking; the quota fits and `now` is not before `last`.
    pub(super) fn charge(&mut self, quota: &Quota, cost: Cost, now: Timestamp) {
        if cost == Cost::ZERO {
            return;
        }
        self.window = quota.window();
        self.add(&ask(quota, cost, now), quota.log_entries_max());
    }

    /// Spends without asking, counted as everything here was.
    pub(super) fn charge_as_counted(&mut self, cost: Cost, now: Timestamp) {
        self.add(&self.ask(cost, now), LOG_ENTRIES_MAX_DEFAULT);
    }

    fn add(&mut self, ask: &Ask, log_entries_max: u32) {
        let last_us = self.last.as_micros();
        self.last = Timestamp::from_micros(ask.now_us);
        match &mut self.kind {
            Kind::SlidingLog(log) => {
                sliding_log::charge(log, ask, sliding_log::EXACT_US);
                log.bound(log_entries_max, ask.window_us);
            }
            Kind::RoundedLog(log) => {
                sliding_log::charge(log, ask, sliding_log::rounded_us(ask.window_us));
            }
            Kind::SlidingWindow(log) => {
                sliding_log::charge(log, ask, sliding_window::slot_us(ask.window_us));
            }
            Kind::SlidingCounter(counters) => counters.charge(ask, last_us),
            Kind::FixedWindow(counter) => counter.charge(ask),
            Kind::Gcra(bucket) => bucket.charge(ask.cost, ask.now_us),
        }
    }

    /// Gives back; what was given back.
    pub(super) fn refund(&mut self, cost: Cost, now: Timestamp) -> u64 {
        let ask = self.ask(cost, now);
        let last_us = self.last.as_micros();
        self.last = Timestamp::from_micros(ask.now_us);
        match &mut self.kind {
            Kind::SlidingLog(log) | Kind::RoundedLog(log) | Kind::SlidingWindow(log) => {
                if let Some(horizon_us) = ask.horizon_us() {
                    log.expire(horizon_us);
                }
                log.refund(ask.cost)
            }
            Kind::SlidingCounter(counters) => counters.refund(&ask, last_us),
            Kind::FixedWindow(counter) => counter.refund(&ask),
            Kind::Gcra(bucket) => bucket.refund(ask.cost, ask.now_us),
        }
    }

    /// A question about the state itself, whatever the quota.
    pub(super) fn ask(&self, cost: Cost, now: Timestamp) -> Ask {
        Ask {
            capacity: u64::MAX,
            cost: cost.0,
            window_us: self.window.as_micros(),
            now_us: now.max(self.last).as_micros(),
            // Only a quota knows the period.
            start_us: fixed_window::NONE_US,
        }
    }
}

const fn ask(quota: &Quota, cost: Cost, now: Timestamp) -> Ask {
    Ask {
        capacity: quota.capacity(),
        cost: cost.0,
        window_us: quota.window().as_micros(),
        now_us: now.as_micros(),
        start_us: quota.start().as_micros(),
    }
}

fn answer(ask: &Ask, filled: Filled) -> Decision {
    let used = ask.capacity - filled.remaining;
    let reset_us = micros_ceil(filled.reset_ns);
    if filled.allowed {
        ask.allow(used, reset_us)
    } else {
        ask.deny(used, micros_ceil(filled.retry_ns), reset_us)
    }
}

fn micros_ceil(span_ns: u128) -> u64 {
    super::ask::quotient_ceil(span_ns, 1_000)
}
