//! Sliding counter: two counters, the older weighted by how much of it still overlaps.
//!
//! Chosen where memory must be the least and an estimate will do: it takes the requests of the
//! previous window to have come evenly. Bound: at most twice the capacity in any window
//! `(s, s+W]`, reached when a whole capacity comes at the end of one window and the next follows
//! as the estimate sinks; evenly spread requests differ from the exact log by little.
//!
//! Windows are counted from the epoch; which one the counters belong to follows from the moment
//! of the last request, which the state keeps. Arithmetic is in 128 bits: count times microseconds.

use super::ask::{Ask, quotient, quotient_ceil};
use super::decision::Decision;

/// Counts of the window before and of the window of the last request.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Counters {
    pub(super) previous: u64,
    pub(super) current: u64,
}

impl Counters {
    /// `last_us` is the moment to which the counters stand.
    pub(super) fn check(&mut self, ask: &Ask, last_us: u64) -> Decision {
        let into_us = self.roll(ask, last_us);
        let window = u128::from(ask.window_us);
        let free = (u128::from(ask.capacity) * window).saturating_sub(self.estimate(ask, into_us));
        // Zero passes also where nothing is free.
        let allowed = u128::from(ask.cost) * window <= free;
        if allowed {
            self.current += ask.cost;
            let free = free - u128::from(ask.cost) * window;
            let used = ask.capacity - quotient(free, ask.window_us);
            return ask.allow(used, self.reset_us(ask.window_us, into_us));
        }
        let used = ask.capacity - quotient(free, ask.window_us);
        let retry_us = if ask.is_never() { 0 } else { self.retry_us(ask, into_us) };
        ask.deny(used, retry_us, self.reset_us(ask.window_us, into_us))
    }

    /// Spends without asking, also above the capacity.
    pub(super) fn charge(&mut self, ask: &Ask, last_us: u64) {
        self.roll(ask, last_us);
        self.current = self.current.saturating_add(ask.cost);
    }

    /// Gives back up to `cost`, newest first; what was given back.
    pub(super) fn refund(&mut self, ask: &Ask, last_us: u64) -> u64 {
        self.roll(ask, last_us);
        let from_current = ask.cost.min(self.current);
        self.current -= from_current;
        let from_previous = (ask.cost - from_current).min(self.previous);
        self.previous -= from_previous;
        from_current + from_previous
    }

    /// As they stand at the moment that is asked for.
    pub(super) fn at(mut self, ask: &Ask, last_us: u64) -> Self {
        self.roll(ask, last_us);
        self
    }

    /// The estimate, rounded up.
    pub(super) fn used(mut self, ask: &Ask, last_us: u64) -> u64 {
        let into_us = self.roll(ask, last_us);
        quotient_ceil(self.estimate(ask, into_us), ask.window_us)
    }

    /// From a moment that is `into_us` within its window until nothing counts any more.
    pub(super) const fn reset_us(self, window_us: u64, into_us: u64) -> u64 {
        if self.current > 0 {
            2 * window_us - into_us
        } else if self.previous > 0 {
            window_us - into_us
        } else {
            0
        }
    }

    /// Brings the counters to the window of now; how far now is into it.
    fn roll(&mut self, ask: &Ask, last_us: u64) -> u64 {
        let window_us = ask.window_us;
        let into_us = last_us % window_us + (ask.now_us - last_us);
        if into_us < window_us {
            return into_us;
        }
        if into_us - window_us < window_us {
            *self = Self { previous: self.current, current: 0 };
            return into_us - window_us;
        }
        *self = Self::default();
        into_us % window_us
    }

    /// What counts now, times the window.
    fn estimate(self, ask: &Ask, into_us: u64) -> u128 {
        u128::from(self.current) * u128::from(ask.window_us)
            + u128::from(self.previous) * u128::from(ask.window_us - into_us)
    }

    /// When the estimate lets the cost pass: within this window if the older counter sinks soon
    /// enough, else in the next, where the present counter is the older one.
    fn retry_us(self, ask: &Ask, into_us: u64) -> u64 {
        let window = u128::from(ask.window_us);
        let left_us = ask.window_us - into_us;
        let room = (ask.capacity - ask.cost).checked_sub(self.current);
        if let Some(room) = room
            && self.previous > 0
        {
            let older = u128::from(self.previous) * u128::from(left_us);
            let excess = older.saturating_sub(u128::from(room) * window);
            let sinks_us = quotient_ceil(excess, self.previous);
            if sinks_us < left_us {
                return sinks_us;
            }
        }
        if self.current == 0 {
            return left_us;
        }
        let reached_us = quotient(u128::from(ask.capacity - ask.cost) * window, self.current);
        left_us + ask.window_us.saturating_sub(reached_us)
    }
}
