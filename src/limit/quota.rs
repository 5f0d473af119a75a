//! How much per how long, counted how: [`Quota`], [`Algorithm`], [`Align`].
//!
//! A quota that exists is valid, so the algorithms never check it again.
//!
//! Invariants: the window is above zero and at most [`WINDOW_MAX`]; limit plus burst fits a
//! signed 64-bit reply; a gcra bucket drains within [`DRAIN_MAX`]; a limit of zero makes the
//! capacity zero whatever the burst.

use crate::time::{Duration, Timestamp};

/// A longer window is a mistake of units. The cap keeps a window in nanoseconds within 64 bits.
pub const WINDOW_MAX: Duration = Duration::from_secs(36_525 * 86_400);

/// Entries of one key's log before its oldest half is made coarse.
pub const LOG_ENTRIES_MAX_DEFAULT: u32 = 65_536;

/// Below this a log is a single chunk, which is never made coarse.
pub const LOG_ENTRIES_MAX_LOWEST: u32 = 256;

/// A gcra bucket that takes longer to drain would leave the range of [`Duration`] on the wire.
pub const DRAIN_MAX: Duration = Duration::from_micros(i64::MAX as u64);

/// The way a quota is counted, and with it what it promises.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Algorithm {
    /// Every admitted request is remembered: never over the capacity in any window `(s, s+W]`.
    #[default]
    SlidingLog,
    /// A log of at most 101 slots: never over the capacity in any window, late to open by at
    /// most a hundredth of it.
    SlidingWindow,
    /// Two counters, the older weighted: at most twice the capacity in any window.
    SlidingCounter,
    /// One counter that starts again: at most twice the capacity in any window.
    FixedWindow,
    /// A bucket that drains evenly: in any span `x` at most the capacity plus `x / T`, where `T`
    /// is the window divided by the limit.
    Gcra,
}

impl Algorithm {
    /// Every name that [`Algorithm::parse`] reads, for an error or a help text.
    pub const NAMES: &str =
        "sliding-log, sliding-window, sliding-counter, fixed-window, gcra or token-bucket";

    pub const ALL: [Self; 5] = [
        Self::SlidingLog,
        Self::SlidingWindow,
        Self::SlidingCounter,
        Self::FixedWindow,
        Self::Gcra,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Self::SlidingLog => "sliding-log",
            Self::SlidingWindow => "sliding-window",
            Self::SlidingCounter => "sliding-counter",
            Self::FixedWindow => "fixed-window",
            Self::Gcra => "gcra",
        }
    }

    /// Reads a name in any case; `token-bucket` means gcra.
    pub fn parse(name: &[u8]) -> Option<Self> {
        if name.eq_ignore_ascii_case(b"token-bucket") {
            return Some(Self::Gcra);
        }
        Self::ALL.into_iter().find(|one| name.eq_ignore_ascii_case(one.name().as_bytes()))
    }
}

/// Where a fixed window begins.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Align {
    /// At multiples of the window since 1970.
    #[default]
    Epoch,
    /// At the first admitted request after the last window ended.
    First,
    /// Where [`Quota::during`] was told: at the days, weeks, months or years of some calendar.
    Calendar,
}

impl Align {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Epoch => "epoch",
            Self::First => "first",
            Self::Calendar => "calendar",
        }
    }

    /// Reads a name in any case. No name makes a calendar: that takes the period too.
    pub fn parse(name: &[u8]) -> Option<Self> {
        let all = [Self::Epoch, Self::First];
        all.into_iter().find(|one| name.eq_ignore_ascii_case(one.name().as_bytes()))
    }
}

/// Why a quota cannot be.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum QuotaError {
    #[error("the window must be longer than zero")]
    WindowZero,
    #[error("the window is longer than 36525 days")]
    WindowTooLong,
    #[error("the limit is above 9223372036854775807")]
    LimitTooLarge,
    #[error("limit and burst together are above 9223372036854775807")]
    BurstTooLarge,
    #[error("a bucket of this burst would take more than 292,000 years to drain")]
    BurstTooSlow,
    #[error("a log of fewer than 256 entries cannot be made coarse")]
    LogEntriesTooFew,
    #[error("credit goes with the algorithms that count windows, not with gcra")]
    CreditOfGcra,
}

/// A limit per window and how it is counted.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Quota {
    limit: u64,
    window: Duration,
    burst: u64,
    /// Derived from limit, burst and algorithm.
    capacity: u64,
    /// Derived for gcra, else zero: nanoseconds that one unit takes to drain, rounded up.
    interval_ns: u64,
    /// When the calendar's period began; of no meaning for another align.
    start: Timestamp,
    log_entries_max: u32,
    algorithm: Algorithm,
    align: Align,
    in_need: bool,
}

impl Quota {
    pub fn new(algorithm: Algorithm, limit: u64, window: Duration) -> Result<Self, QuotaError> {
        if window.is_zero() {
            return Err(QuotaError::WindowZero);
        }
        if window > WINDOW_MAX {
            return Err(QuotaError::WindowTooLong);
        }
        if i64::try_from(limit).is_err() {
            return Err(QuotaError::LimitTooLarge);
        }
        let interval_ns = match algorithm {
            Algorithm::Gcra if limit > 0 => (window.as_micros() * 1_000).div_ceil(limit),
            Algorithm::Gcra
            | Algorithm::SlidingLog
            | Algorithm::SlidingWindow
            | Algorithm::SlidingCounter
            | Algorithm::FixedWindow => 0,
        };
        let quota = Self {
            limit,
            window,
            burst: 0,
            capacity: limit,
            interval_ns,
            start: Timestamp::EPOCH,
            log_entries_max: LOG_ENTRIES_MAX_DEFAULT,
            algorithm,
            align: Align::Epoch,
            in_need: false,
        };
        Ok(quota)
    }

    /// For gcra the size of the bucket, where zero means the limit; else an allowance on top of
    /// the limit in every window.
    pub fn with_burst(self, burst: u64) -> Result<Self, QuotaError> {
        let sum = self.limit.saturating_add(burst);
        if i64::try_from(sum).is_err() {
            return Err(QuotaError::BurstTooLarge);
        }
        let capacity = match (self.limit, self.algorithm) {
            (0, _) => 0,
            (limit, Algorithm::Gcra) => {
                if burst == 0 {
                    limit
                } else {
                    burst
                }
            }
            (
                _,
                Algorithm::SlidingLog
                | Algorithm::SlidingWindow
                | Algorithm::SlidingCounter
                | Algorithm::FixedWindow,
            ) => sum,
        };
        let drain_ns = u128::from(capacity) * u128::from(self.interval_ns);
        if drain_ns > u128::from(DRAIN_MAX.as_micros()) * 1_000 {
            return Err(QuotaError::BurstTooSlow);
        }
        Ok(Self { burst, capacity, ..self })
    }

    /// Where a fixed window begins; the other algorithms have no use for it.
    #[must_use]
    pub fn with_align(self, align: Align) -> Self {
        Self { align, ..self }
    }

    /// The same limit of a fixed window in one period of a calendar, from `start` to just before
    /// `end`. A state keeps what it has counted of the same period, and a count of an earlier one
    /// is over.
    #[must_use]
    pub fn during(self, start: Timestamp, end: Timestamp) -> Self {
        debug_assert_eq!(self.algorithm, Algorithm::FixedWindow, "only it has periods");
        let window = end.since(start).clamp(Duration::from_micros(1), WINDOW_MAX);
        Self { align: Align::Calendar, start, window, ..self }
    }

    /// How many entries a sliding log keeps before its oldest half is made coarse.
    pub fn with_log_entries_max(self, entries: u32) -> Result<Self, QuotaError> {
        if entries < LOG_ENTRIES_MAX_LOWEST {
            return Err(QuotaError::LogEntriesTooFew);
        }
        Ok(Self { log_entries_max: entries, ..self })
    }

    /// The same for a time of need: a sliding log that is begun by it rounds its moments up to
    /// sixteenths of the window, and so has at most seventeen entries. It is never over the
    /// limit, and at saturation passes at least 16/17 of what an exact log does. Logs that are
    /// there already go on exactly, and once the need is over so do the rounded ones.
    #[must_use]
    pub const fn in_need(self) -> Self {
        Self { in_need: true, ..self }
    }

    pub(super) const fn is_in_need(&self) -> bool {
        self.in_need
    }

    pub const fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    pub const fn limit(&self) -> u64 {
        self.limit
    }

    pub const fn window(&self) -> Duration {
        self.window
    }

    pub const fn burst(&self) -> u64 {
        self.burst
    }

    pub const fn align(&self) -> Align {
        self.align
    }

    pub const fn log_entries_max(&self) -> u32 {
        self.log_entries_max
    }

    /// The most that can be spent at once, and the figure reported to clients.
    pub const fn capacity(&self) -> u64 {
        self.capacity
    }

    /// When the period of a calendar began.
    pub(super) const fn start(&self) -> Timestamp {
        self.start
    }

    pub(super) const fn interval_ns(&self) -> u64 {
        self.interval_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);
    const MOST: u64 = i64::MAX as u64;

    #[test]
    fn names_tell_every_algorithm() {
        let names = Algorithm::NAMES.replace(" or ", ", ");
        let read: Vec<_> =
            names.split(", ").map(|name| Algorithm::parse(name.as_bytes())).collect();
        assert!(read.iter().all(Option::is_some));
        assert!(Algorithm::ALL.iter().all(|algorithm| read.contains(&Some(*algorithm))));
    }

    #[test]
    fn every_name_reads_back_in_any_case() {
        for algorithm in Algorithm::ALL {
            let name = algorithm.name();
            assert_eq!(Algorithm::parse(name.as_bytes()), Some(algorithm));
            assert_eq!(Algorithm::parse(name.to_ascii_uppercase().as_bytes()), Some(algorithm));
        }
        assert_eq!(Algorithm::parse(b"Token-Bucket"), Some(Algorithm::Gcra));
        assert_eq!(Algorithm::parse(b"leaky"), None);
        assert_eq!(Align::parse(b"FIRST"), Some(Align::First));
        assert_eq!(Align::parse(b"last"), None);
    }

    #[test]
    fn impossible_quotas_are_named() {
        let new = |limit, window| Quota::new(Algorithm::Gcra, limit, window);
        assert_eq!(new(1, Duration::ZERO), Err(QuotaError::WindowZero));
        let too_long = Duration::from_micros(WINDOW_MAX.as_micros() + 1);
        assert_eq!(new(1, too_long), Err(QuotaError::WindowTooLong));
        assert_eq!(new(MOST + 1, SECOND), Err(QuotaError::LimitTooLarge));
        assert!(new(MOST, WINDOW_MAX).is_ok());
        let one = new(1, WINDOW_MAX).expect("a valid quota");
        assert_eq!(one.with_burst(MOST), Err(QuotaError::BurstTooLarge));
        assert_eq!(one.with_burst(MOST - 1), Err(QuotaError::BurstTooSlow));
        assert_eq!(one.with_log_entries_max(255), Err(QuotaError::LogEntriesTooFew));
    }

    #[test]
    fn capacity_is_limit_and_burst_except_for_gcra() {
        for algorithm in Algorithm::ALL {
            let quota = |limit, burst| {
                Quota::new(algorithm, limit, SECOND).and_then(|quota| quota.with_burst(burst))
            };
            let capacity = |limit, burst| quota(limit, burst).expect("valid").capacity();
            let gcra = algorithm == Algorithm::Gcra;
            assert_eq!(capacity(1_000, 50), if gcra { 50 } else { 1_050 });
            assert_eq!(capacity(1_000, 0), 1_000);
            assert_eq!(capacity(0, 50), 0);
        }
    }
}
