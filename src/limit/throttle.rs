//! CL.THROTTLE of redis-cell and THROTTLE of throttlecrab, on the state of gcra.
//!
//! Both name a burst, a rate and a quantity. For redis-cell the capacity is the burst and one
//! more; for throttlecrab it is the burst. The interval is the period divided by the count in
//! floating point, cut to nanoseconds, as redis-cell has it; a change of parameters keeps the
//! moment at which the bucket will be empty, and so changes what the debt is worth.
//!
//! Different from redis-cell on purpose: negative numbers are refused, as are those that it
//! would let overflow, and a quantity of zero writes nothing.

use crate::time::{Duration, Timestamp};

use super::gcra::{Bucket, Zero};
use super::quota::WINDOW_MAX;
use super::state::{Kind, State};

/// The numbers of one call, as they were sent.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ThrottleRequest {
    pub max_burst: i64,
    pub count_per_period: i64,
    pub period_s: i64,
    pub quantity: i64,
}

/// Why the numbers of a call make no limit.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum ThrottleError {
    /// The text of redis-cell: a count or period of zero, or a rate above one per nanosecond.
    #[error("Zero rates are not supported")]
    ZeroRate,
    #[error("{0} must not be negative")]
    Negative(&'static str),
    #[error("{0} is out of range")]
    OutOfRange(&'static str),
    /// The text of throttlecrab.
    #[error("negative quantity: {0}")]
    NegativeQuantity(i64),
    /// The text of throttlecrab: a burst, count or period that is not above zero.
    #[error("invalid rate limit parameters")]
    InvalidRate,
}

/// A call whose numbers are valid.
///
/// Invariant: filling the whole capacity takes at most `i64::MAX` nanoseconds.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Throttle {
    capacity: u64,
    interval_ns: u64,
    quantity: u64,
}

/// The answer, exact; each dialect makes its five integers of it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ThrottleOutcome {
    pub limited: bool,
    pub limit: u64,
    pub remaining: u64,
    /// Nanoseconds; `None` when allowed, and when more than the capacity was asked for.
    pub retry_ns: Option<u64>,
    /// Nanoseconds until nothing is spent any more.
    pub reset_ns: u64,
}

/// How a reply of CL.THROTTLE makes whole seconds.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Rounding {
    /// Cut to milliseconds, then up, as redis-cell.
    #[default]
    Cell,
    /// Up to milliseconds, then to the second after, also from a whole one, as Dragonfly.
    Dragonfly,
}

impl Throttle {
    /// A call of CL.THROTTLE.
    pub fn cell(request: ThrottleRequest) -> Result<Self, ThrottleError> {
        let ThrottleRequest { max_burst, count_per_period, period_s, quantity } = request;
        let natural =
            |name, number: i64| u64::try_from(number).map_err(|_| ThrottleError::Negative(name));
        let max_burst = natural("max_burst", max_burst)?;
        let count = natural("count_per_period", count_per_period)?;
        let period_s = natural("period", period_s)?;
        let quantity = natural("quantity", quantity)?;
        Self::new(max_burst.saturating_add(1), count, period_s, quantity)
    }

    /// A call of throttlecrab's THROTTLE.
    pub fn crab(request: ThrottleRequest) -> Result<Self, ThrottleError> {
        let ThrottleRequest { max_burst, count_per_period, period_s, quantity } = request;
        let quantity =
            u64::try_from(quantity).map_err(|_| ThrottleError::NegativeQuantity(quantity))?;
        let positive = |number: i64| match u64::try_from(number) {
            Ok(number) if number > 0 => Ok(number),
            Ok(_) | Err(_) => Err(ThrottleError::InvalidRate),
        };
        let (max_burst, count) = (positive(max_burst)?, positive(count_per_period)?);
        Self::new(max_burst, count, positive(period_s)?, quantity)
            .map_err(|_| ThrottleError::InvalidRate)
    }

    fn new(capacity: u64, count: u64, period_s: u64, quantity: u64) -> Result<Self, ThrottleError> {
        if count == 0 || period_s == 0 {
            return Err(ThrottleError::ZeroRate);
        }
        let period_ns = period_s
            .checked_mul(1_000_000_000)
            .and_then(|period_ns| i64::try_from(period_ns).ok())
            .ok_or(ThrottleError::OutOfRange("period"))?;
        let interval_ns = (period_ns as f64 / count as f64) as u64;
        if interval_ns == 0 {
            return Err(ThrottleError::ZeroRate);
        }
        interval_ns
            .checked_mul(capacity)
            .filter(|full_ns| i64::try_from(*full_ns).is_ok())
            .ok_or(ThrottleError::OutOfRange("max_burst"))?;
        Ok(Self { capacity, interval_ns, quantity })
    }

    /// Whether nothing is to be spent, whatever the answer.
    pub const fn is_peek(&self) -> bool {
        self.quantity == 0
    }

    /// What a key holds that has not been asked before.
    pub fn fresh(&self, now: Timestamp) -> State {
        let kind = Kind::Gcra(Bucket::new(self.interval_ns, now.as_micros()));
        State { window: self.window(), last: now, kind }
    }

    /// Decides, and spends the quantity if it may pass. The state of another algorithm becomes
    /// one of gcra, with what is used, up to the capacity, as spent now.
    pub fn check(&self, state: &mut State, now: Timestamp) -> ThrottleOutcome {
        let now = now.max(state.last);
        let mut bucket = self.bucket(state, now);
        let outcome = self.fill(&mut bucket, now);
        if !outcome.limited && self.quantity > 0 {
            *state = State { window: self.window(), last: now, kind: Kind::Gcra(bucket) };
        }
        outcome
    }

    fn fill(&self, bucket: &mut Bucket, now: Timestamp) -> ThrottleOutcome {
        let filled = bucket.fill(self.capacity, self.quantity, now.as_micros(), Zero::Judged);
        let nanos = |span_ns: u128| u64::try_from(span_ns).unwrap_or(u64::MAX);
        let waits = !filled.allowed && self.quantity <= self.capacity;
        ThrottleOutcome {
            limited: !filled.allowed,
            limit: self.capacity,
            remaining: filled.remaining,
            retry_ns: waits.then(|| nanos(filled.retry_ns)),
            reset_ns: nanos(filled.reset_ns),
        }
    }

    /// The bucket that the state holds, under our interval.
    fn bucket(&self, state: &State, now: Timestamp) -> Bucket {
        if let Kind::Gcra(bucket) = state.kind {
            return Bucket { interval_ns: self.interval_ns, ..bucket };
        }
        let mut bucket = Bucket::new(self.interval_ns, now.as_micros());
        bucket.charge(state.used(now).min(self.capacity), now.as_micros());
        bucket
    }

    /// The span in which as much passes as the bucket holds: a window for whoever asks for one.
    fn window(&self) -> Duration {
        let window_us = (self.interval_ns * self.capacity).div_ceil(1_000);
        Duration::from_micros(window_us.clamp(1, WINDOW_MAX.as_micros()))
    }
}

impl ThrottleOutcome {
    /// `[limited, limit, remaining, retry_s, reset_s]`, retry -1 when allowed or never.
    pub fn cell_reply(&self, rounding: Rounding) -> [i64; 5] {
        let retry_s = self.retry_ns.map_or(-1, |span_ns| rounding.seconds(span_ns));
        let reset_s = rounding.seconds(self.reset_ns);
        [i64::from(self.limited), wire(self.limit), wire(self.remaining), retry_s, reset_s]
    }

    /// `[allowed, limit, remaining, reset_s, retry_s]`, rounded down, retry 0 when allowed or
    /// never.
    pub fn crab_reply(&self) -> [i64; 5] {
        let seconds = |span_ns: u64| wire(span_ns / 1_000_000_000);
        let retry_s = self.retry_ns.map_or(0, seconds);
        let reset_s = seconds(self.reset_ns);
        [i64::from(!self.limited), wire(self.limit), wire(self.remaining), reset_s, retry_s]
    }
}

impl Rounding {
    fn seconds(self, span_ns: u64) -> i64 {
        let seconds = match self {
            Self::Cell => (span_ns / 1_000_000).div_ceil(1_000),
            Self::Dragonfly => match span_ns.div_ceil(1_000_000) {
                0 => 0,
                millis => millis / 1_000 + 1,
            },
        };
        wire(seconds)
    }
}

/// Capacities are at most `i64::MAX`, as a nanosecond for each must fit that.
fn wire(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::super::{Algorithm, Cost, Quota, check};
    use super::*;

    fn request(numbers: [i64; 4]) -> ThrottleRequest {
        let [max_burst, count_per_period, period_s, quantity] = numbers;
        ThrottleRequest { max_burst, count_per_period, period_s, quantity }
    }

    /// A moment in the present, as far after a first one.
    fn after_ms(millis: u64) -> Timestamp {
        Timestamp::from_millis(1_700_000_000_123 + millis)
    }

    /// Numbers, moment in milliseconds, reply, for one key.
    type Row = ([i64; 4], u64, [i64; 5]);

    fn run(rows: &[Row], rounding: Rounding) {
        let mut state = None;
        for (numbers, at_ms, reply) in rows {
            let throttle = Throttle::cell(request(*numbers)).expect("valid numbers");
            let state = state.get_or_insert_with(|| throttle.fresh(after_ms(*at_ms)));
            let outcome = throttle.check(state, after_ms(*at_ms));
            assert_eq!(outcome.cell_reply(rounding), *reply, "{numbers:?} at {at_ms}");
        }
    }

    #[test]
    fn cell_follows_the_vectors_of_the_module() {
        let ask = |quantity| [4, 1, 1, quantity];
        run(
            &[
                (ask(6), 0, [1, 5, 5, -1, 0]),
                (ask(1), 0, [0, 5, 4, -1, 1]),
                (ask(1), 0, [0, 5, 3, -1, 2]),
                (ask(1), 0, [0, 5, 2, -1, 3]),
                (ask(1), 0, [0, 5, 1, -1, 4]),
                (ask(1), 0, [0, 5, 0, -1, 5]),
                (ask(1), 0, [1, 5, 0, 1, 5]),
                (ask(1), 3_000, [0, 5, 2, -1, 3]),
                (ask(1), 3_100, [0, 5, 1, -1, 4]),
                (ask(1), 4_000, [0, 5, 1, -1, 4]),
                (ask(1), 8_000, [0, 5, 4, -1, 1]),
                (ask(1), 9_500, [0, 5, 4, -1, 1]),
                (ask(0), 9_500, [0, 5, 4, -1, 1]),
                (ask(2), 9_500, [0, 5, 2, -1, 3]),
                (ask(5), 9_500, [1, 5, 2, 3, 3]),
            ],
            Rounding::Cell,
        );
    }

    #[test]
    fn cell_rounds_seconds_as_the_module_does() {
        run(&[([15, 30, 60, 1], 0, [0, 16, 15, -1, 2])], Rounding::Cell);
        run(&[([15, 30, 60, 3], 0, [0, 16, 13, -1, 6])], Rounding::Cell);
        let whole = [
            ([9, 10, 10, 10], 0, [0, 10, 0, -1, 10]),
            ([9, 10, 10, 10], 8, [1, 10, 0, 10, 10]),
            ([9, 10, 10, 11], 8, [1, 10, 0, -1, 10]),
        ];
        run(&whole, Rounding::Cell);
        // A thousandth of a second and less: the module drops what is below a millisecond.
        run(&[([0, 1_001, 1, 1], 0, [0, 1, 0, -1, 0])], Rounding::Cell);
        run(&[([0, 1_000, 1, 1], 0, [0, 1, 0, -1, 1])], Rounding::Cell);
    }

    #[test]
    fn dragonfly_adds_a_second_to_whole_ones() {
        let ask = [4, 1, 10, 1];
        let rows = [(ask, 0, [0, 5, 4, -1, 11]), ([4, 1, 10, 5], 0, [1, 5, 4, 11, 11])];
        run(&rows, Rounding::Dragonfly);
    }

    #[test]
    fn quantity_of_zero_spends_nothing_and_an_exhausted_key_still_passes_it() {
        let ask = |quantity| [1, 1, 1, quantity];
        let rows = [
            (ask(0), 0, [0, 2, 2, -1, 0]),
            (ask(2), 0, [0, 2, 0, -1, 2]),
            (ask(0), 0, [0, 2, 0, -1, 2]),
            (ask(1), 1_000, [0, 2, 0, -1, 2]),
        ];
        run(&rows, Rounding::Cell);
    }

    #[test]
    fn changed_parameters_keep_the_moment_of_the_empty_bucket() {
        let rows = [
            ([0, 1, 60, 1], 0, [0, 1, 0, -1, 60]),
            // Far faster, but the bucket is empty only in a minute.
            ([9, 10, 1, 1], 0, [1, 10, 0, 60, 60]),
            ([9, 10, 1, 0], 0, [1, 10, 0, 59, 60]),
            ([9, 10, 1, 1], 59_100, [0, 10, 0, -1, 1]),
        ];
        run(&rows, Rounding::Cell);
    }

    #[test]
    fn impossible_numbers_are_named() {
        let error = |numbers| Throttle::cell(request(numbers)).expect_err("an error").to_string();
        for numbers in [[5, 0, 60, 1], [5, 10, 0, 1], [5, 2_000_000_000, 1, 1]] {
            assert_eq!(error(numbers), "Zero rates are not supported", "{numbers:?}");
        }
        assert_eq!(error([5, -1, 60, 1]), "count_per_period must not be negative");
        assert_eq!(error([-1, 10, 60, 1]), "max_burst must not be negative");
        assert_eq!(error([5, 10, -60, 1]), "period must not be negative");
        assert_eq!(error([5, 10, 60, -1_000]), "quantity must not be negative");
        assert_eq!(error([i64::MAX, 1, 1, 1]), "max_burst is out of range");
        assert_eq!(error([1, 1, i64::MAX, 1]), "period is out of range");
        let crab = |numbers| Throttle::crab(request(numbers)).expect_err("an error").to_string();
        assert_eq!(crab([0, 10, 60, 1]), "invalid rate limit parameters");
        assert_eq!(crab([1, 10, 60, -2]), "negative quantity: -2");
    }

    #[test]
    fn highest_rate_survives_a_long_pause() {
        let ask = [999_999_999, 1_000_000_000, 1, 1];
        let month_ms = 30 * 86_400_000;
        let reply = [0, 1_000_000_000, 999_999_999, -1, 0];
        run(&[(ask, 0, reply), (ask, month_ms, reply)], Rounding::Cell);
    }

    #[test]
    fn crab_turns_the_flag_swaps_the_times_and_rounds_down() {
        let ask = |quantity| Throttle::crab(request([3, 2, 3, quantity])).expect("valid numbers");
        let mut state = ask(1).fresh(after_ms(0));
        let mut reply = |quantity| ask(quantity).check(&mut state, after_ms(0)).crab_reply();
        assert_eq!(reply(1), [1, 3, 2, 1, 0]);
        assert_eq!(reply(2), [1, 3, 0, 4, 0]);
        assert_eq!(reply(1), [0, 3, 0, 4, 1]);
        assert_eq!(reply(4), [0, 3, 0, 4, 0]);
    }

    #[test]
    fn key_of_another_algorithm_is_taken_over() {
        let window = Duration::from_secs(60);
        let quota = Quota::new(Algorithm::SlidingLog, 10, window).expect("a valid quota");
        let mut state = State::new(&quota, after_ms(0));
        check(&quota, &mut state, Cost(3), after_ms(0));
        let throttle = Throttle::cell(request([4, 1, 1, 1])).expect("valid numbers");
        let outcome = throttle.check(&mut state, after_ms(0));
        assert_eq!(outcome.cell_reply(Rounding::Cell), [0, 5, 1, -1, 4]);
        assert_eq!(state.algorithm(), Algorithm::Gcra);
    }
}
