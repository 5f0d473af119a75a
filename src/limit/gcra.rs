//! GCRA: a bucket that every unit fills by one interval and that drains with time.
//!
//! Bound: in any span `x` at most the capacity plus `x / T` whole, where the interval `T` is the
//! window divided by the limit, rounded up to nanoseconds so that the rate is never exceeded; in
//! a window hence at most the capacity plus the limit. Only one moment is kept: when the bucket
//! will be empty (`empty_at`, the theoretical arrival time of the literature).
//!
//! Units: nanoseconds, in 128 bits where a bucket may take longer than 64 bits hold. The moment
//! is kept as microseconds and the nanoseconds beyond, so that it reaches as far as a Timestamp.

use super::ask::{quotient, quotient_ceil};

/// When the bucket will be empty, and what one unit fills.
///
/// Packed, so that it and the word that tells the algorithms apart take 24 bytes together.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(Rust, packed(2))]
pub(super) struct Bucket {
    pub(super) empty_at_us: u64,
    pub(super) interval_ns: u64,
    /// Below a thousand.
    pub(super) empty_at_ns: u16,
}

/// What a bucket answered; spans in nanoseconds.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Filled {
    pub(super) allowed: bool,
    pub(super) remaining: u64,
    /// How long until the same would be allowed; of no meaning for more than the capacity.
    pub(super) retry_ns: u128,
    /// How long until the bucket is empty.
    pub(super) reset_ns: u128,
}

/// Whether a cost of zero may be refused.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Zero {
    /// Zero always passes.
    Passes,
    /// Zero is judged as any cost: denied while the bucket is over its capacity.
    Judged,
}

impl Bucket {
    pub(super) const fn new(interval_ns: u64, now_us: u64) -> Self {
        Self { empty_at_us: now_us, interval_ns, empty_at_ns: 0 }
    }

    /// Fills the bucket by `cost` if that fits the capacity.
    pub(super) fn fill(&mut self, capacity: u64, cost: u64, now_us: u64, zero: Zero) -> Filled {
        let room_ns = self.span_ns(capacity);
        let before_ns = self.debt_ns(now_us);
        let after_ns = before_ns.saturating_add(self.span_ns(cost));
        let allowed = after_ns <= room_ns || (cost == 0 && zero == Zero::Passes);
        let reset_ns = if allowed { after_ns } else { before_ns };
        if allowed && cost > 0 {
            self.set_debt(after_ns, now_us);
        }
        let free_ns = room_ns.saturating_sub(reset_ns);
        Filled {
            allowed,
            remaining: self.units(free_ns),
            retry_ns: after_ns.saturating_sub(room_ns),
            reset_ns,
        }
    }

    /// Fills without asking, also above the capacity.
    pub(super) fn charge(&mut self, cost: u64, now_us: u64) {
        self.set_debt(self.debt_ns(now_us).saturating_add(self.span_ns(cost)), now_us);
    }

    /// Gives back up to `cost`; what was given back.
    pub(super) fn refund(&mut self, cost: u64, now_us: u64) -> u64 {
        let given = cost.min(self.used(now_us));
        self.set_debt(self.debt_ns(now_us).saturating_sub(self.span_ns(given)), now_us);
        given
    }

    /// What the bucket holds, rounded up to whole units.
    pub(super) fn used(self, now_us: u64) -> u64 {
        if self.interval_ns == 0 {
            return 0;
        }
        quotient_ceil(self.debt_ns(now_us), self.interval_ns)
    }

    /// The same units, fractions included, under another interval.
    pub(super) fn scaled(mut self, interval_ns: u64, now_us: u64) -> Self {
        let from = u128::from(self.interval_ns);
        let to = u128::from(interval_ns);
        let debt_ns = self.debt_ns(now_us);
        self.interval_ns = interval_ns;
        if from != 0 && debt_ns != 0 {
            // By whole units and the rest: the product of all would not fit 128 bits.
            let whole_ns = (debt_ns / from).saturating_mul(to);
            let rest_ns = (debt_ns % from * to).div_ceil(from);
            self.set_debt(whole_ns.saturating_add(rest_ns), now_us);
        }
        self
    }

    /// How long until the bucket is empty.
    pub(super) fn debt_ns(self, now_us: u64) -> u128 {
        match self.empty_at_us.checked_sub(now_us) {
            Some(ahead_us) => u128::from(ahead_us) * 1_000 + u128::from(self.empty_at_ns),
            None => 0,
        }
    }

    fn set_debt(&mut self, debt_ns: u128, now_us: u64) {
        let debt_us = quotient(debt_ns, 1_000);
        self.empty_at_us = now_us.saturating_add(debt_us);
        self.empty_at_ns = (debt_ns % 1_000) as u16;
    }

    fn span_ns(self, units: u64) -> u128 {
        u128::from(units) * u128::from(self.interval_ns)
    }

    fn units(self, span_ns: u128) -> u64 {
        if self.interval_ns == 0 { 0 } else { quotient(span_ns, self.interval_ns) }
    }
}
