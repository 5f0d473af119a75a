//! Fixed window: one counter that starts again with each window.
//!
//! Bound: at most the capacity in each of its windows, hence at most twice the capacity in any
//! window `(s, s+W]`, reached at the seam of two. With [`Align::First`] a window begins at the
//! first admitted request after the last one ended, as INCR with EXPIRE does; a request that is
//! denied or costs nothing begins none. With [`Align::Calendar`] a window is the period that the
//! quota names, however long: a day of 23 hours is one as well.
//!
//! Units: microseconds since the epoch.

use super::ask::Ask;
use super::decision::Decision;
use super::quota::Align;

/// No window has begun.
pub(super) const NONE_US: u64 = u64::MAX;

/// Packed, so that it and the word that tells the algorithms apart take 24 bytes together.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(Rust, packed(1))]
pub(super) struct Counter {
    pub(super) start_us: u64,
    pub(super) used: u64,
    pub(super) align: Align,
}

impl Counter {
    pub(super) const fn new(align: Align) -> Self {
        Self { start_us: NONE_US, used: 0, align }
    }

    pub(super) fn check(&mut self, ask: &Ask) -> Decision {
        self.roll(ask);
        if !ask.fits(self.used) {
            let left_us = self.left_us(ask);
            return ask.deny(self.used, left_us, left_us);
        }
        if ask.cost > 0 {
            self.spend(ask);
        }
        ask.allow(self.used, self.left_us(ask))
    }

    /// Spends without asking, also above the capacity.
    pub(super) fn charge(&mut self, ask: &Ask) {
        self.roll(ask);
        self.spend(ask);
    }

    /// Gives back up to `cost`; what was given back.
    pub(super) fn refund(&mut self, ask: &Ask) -> u64 {
        self.roll(ask);
        let given = ask.cost.min(self.used);
        self.used -= given;
        given
    }

    /// The counter as it stands now.
    pub(super) fn rolled(mut self, ask: &Ask) -> Self {
        self.roll(ask);
        self
    }

    /// The moment from which nothing counts, `None` if that is now.
    pub(super) fn end_us(self, window_us: u64) -> Option<u64> {
        let begun = match self.align {
            Align::Epoch | Align::Calendar => self.used > 0,
            Align::First => self.start_us != NONE_US,
        };
        begun.then(|| self.start_us.saturating_add(window_us))
    }

    /// Whether it counts the period that began then, or none.
    pub(super) const fn is_of(self, start_us: u64) -> bool {
        self.start_us == start_us || self.start_us == NONE_US
    }

    /// The same count under another window or alignment, in the window of now.
    pub(super) fn rebased(self, ask: &Ask, align: Align) -> Self {
        let start_us = match align {
            Align::Epoch if self.start_us == NONE_US => NONE_US,
            Align::Epoch => ask.now_us - ask.now_us % ask.window_us,
            Align::First if self.used == 0 => NONE_US,
            Align::First => self.start_us,
            Align::Calendar => ask.start_us,
        };
        Self { start_us, used: self.used, align }.rolled(ask)
    }

    fn spend(&mut self, ask: &Ask) {
        if self.start_us == NONE_US {
            self.start_us = ask.now_us;
        }
        self.used = self.used.saturating_add(ask.cost);
    }

    /// Ends a window that is over.
    fn roll(&mut self, ask: &Ask) {
        let within = ask.now_us.checked_sub(self.start_us);
        if within.is_some_and(|within_us| within_us < ask.window_us) {
            return;
        }
        self.used = 0;
        self.start_us = match self.align {
            Align::Epoch => ask.now_us - ask.now_us % ask.window_us,
            Align::First => NONE_US,
            Align::Calendar => ask.start_us,
        };
    }

    fn left_us(self, ask: &Ask) -> u64 {
        if self.start_us == NONE_US {
            return 0;
        }
        self.start_us.saturating_add(ask.window_us).saturating_sub(ask.now_us)
    }
}
