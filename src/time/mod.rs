//! When: moments, spans, and the one clock.
//!
//! A [`Timestamp`] is a whole number of microseconds since the Unix epoch, a [`Duration`] a
//! whole number of microseconds. Algorithms are told the time; only [`Clock`] asks the system.
//!
//! Invariant: the moments that one [`Clock`] hands out follow elapsed time. A step of the wall
//! clock is never taken backwards; forwards it is taken only past [`STEP_MIN`].

use std::fmt;
use std::ops::{Add, Sub};
use std::str::FromStr;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

#[cfg(feature = "server")]
mod document;

/// A moment: microseconds since the Unix epoch.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Timestamp(u64);

impl Timestamp {
    pub const EPOCH: Self = Self(0);
    /// The end of time: what never expires, expires then.
    pub const MAX: Self = Self(u64::MAX);

    pub const fn from_micros(micros: u64) -> Self {
        Self(micros)
    }

    /// Saturates: a moment too far away is [`Timestamp::MAX`].
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis.saturating_mul(1_000))
    }

    pub const fn as_micros(self) -> u64 {
        self.0
    }

    /// Whole milliseconds, rounded down.
    pub const fn as_millis(self) -> u64 {
        self.0 / 1_000
    }

    /// The span from `earlier` to here; zero where `earlier` is later.
    pub const fn since(self, earlier: Self) -> Duration {
        Duration(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Timestamp {
    type Output = Self;

    /// Saturates at [`Timestamp::MAX`].
    fn add(self, span: Duration) -> Self {
        Self(self.0.saturating_add(span.0))
    }
}

impl Sub<Duration> for Timestamp {
    type Output = Self;

    /// Saturates at the epoch.
    fn sub(self, span: Duration) -> Self {
        Self(self.0.saturating_sub(span.0))
    }
}

/// A span of time: whole microseconds.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Duration(u64);

/// Why a text is not a span.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum ParseDurationError {
    #[error(
        "expected a number with a unit such as 500ms, 30s, 5m, 1h or 1d, or whole milliseconds"
    )]
    Malformed,
    #[error("the span is longer than 292,000 years")]
    TooLong,
}

impl Duration {
    pub const ZERO: Self = Self(0);

    pub const fn from_micros(micros: u64) -> Self {
        Self(micros)
    }

    /// Saturates.
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis.saturating_mul(1_000))
    }

    /// Saturates.
    pub const fn from_secs(secs: u64) -> Self {
        Self(secs.saturating_mul(1_000_000))
    }

    pub const fn as_micros(self) -> u64 {
        self.0
    }

    /// Milliseconds, rounded up: a wait told in milliseconds is never too short.
    pub const fn as_millis_ceil(self) -> u64 {
        self.0.div_ceil(1_000)
    }

    /// Whole milliseconds, rounded down.
    pub const fn as_millis(self) -> u64 {
        self.0 / 1_000
    }

    pub const fn as_std(self) -> std::time::Duration {
        std::time::Duration::from_micros(self.0)
    }

    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// Reads a span as the native commands write it: `500ms`, `30s`, `5m`, `1h`, `1d`, or a bare
    /// integer in milliseconds. Units are case-insensitive.
    pub fn parse(text: &[u8]) -> Result<Self, ParseDurationError> {
        let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (number, unit) = text.split_at(digits);
        if number.is_empty() {
            return Err(ParseDurationError::Malformed);
        }
        let micros_per_unit: u64 = match unit {
            b"" | b"ms" | b"MS" | b"Ms" | b"mS" => 1_000,
            b"us" | b"US" | b"Us" | b"uS" => 1,
            b"s" | b"S" => 1_000_000,
            b"m" | b"M" => 60_000_000,
            b"h" | b"H" => 3_600_000_000,
            b"d" | b"D" => 86_400_000_000,
            _ => return Err(ParseDurationError::Malformed),
        };
        number
            .iter()
            .try_fold(0_u64, |value, digit| {
                value.checked_mul(10)?.checked_add(u64::from(digit - b'0'))
            })
            .and_then(|value| value.checked_mul(micros_per_unit))
            // Kept below i64 so that every span in milliseconds fits a reply.
            .filter(|micros| i64::try_from(*micros).is_ok())
            .map(Self)
            .ok_or(ParseDurationError::TooLong)
    }
}

impl FromStr for Duration {
    type Err = ParseDurationError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::parse(text.as_bytes())
    }
}

/// The shortest form that [`Duration::parse`] reads back to the same span.
impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [(u64, &str); 5] = [
            (86_400_000_000, "d"),
            (3_600_000_000, "h"),
            (60_000_000, "m"),
            (1_000_000, "s"),
            (1_000, "ms"),
        ];
        for (micros, unit) in UNITS {
            if self.0 != 0 && self.0.is_multiple_of(micros) {
                return write!(f, "{}{unit}", self.0 / micros);
            }
        }
        if self.0 == 0 { f.write_str("0s") } else { write!(f, "{}us", self.0) }
    }
}

/// A wall clock this far ahead of ours is believed at once; one behind us never is.
pub const STEP_MIN: Duration = Duration::from_secs(5);

/// A smaller gap is closed by running at most this many parts per million fast or slow.
pub const SLEW_PPM_MAX: i64 = 500;

/// How often [`Clock::discipline`] is meant to be called.
pub const DISCIPLINE_PERIOD: Duration = Duration::from_secs(1);

/// The server's clock: elapsed time from `CLOCK_BOOTTIME`, so that it neither steps with the
/// wall clock nor stops while the machine sleeps, slowly led towards the wall clock.
///
/// Clones share one clock.
#[derive(Clone, Debug)]
pub struct Clock(Source);

#[derive(Clone, Debug)]
enum Source {
    System(Arc<System>),
    Manual(Arc<AtomicU64>),
}

/// What one look at the wall clock found; the edge that asked logs it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Discipline {
    /// Wall minus ours, in microseconds, before the correction.
    pub gap_us: i64,
    /// The clock was set forward by the whole gap.
    pub stepped: bool,
}

impl Clock {
    /// The system's clock, anchored to the wall clock now.
    pub fn system() -> Self {
        Self(Source::System(Arc::new(System::new())))
    }

    /// A clock that stands at `start` until [`Clock::advance`] moves it: for tests and simulation.
    pub fn manual(start: Timestamp) -> Self {
        Self(Source::Manual(Arc::new(AtomicU64::new(start.as_micros()))))
    }

    pub fn now(&self) -> Timestamp {
        match &self.0 {
            Source::System(system) => system.now(),
            Source::Manual(micros) => Timestamp(micros.load(Ordering::Relaxed)),
        }
    }

    /// Time since the machine started, which no setting of the wall clock moves. A manual clock's
    /// machine started with the epoch.
    pub fn uptime(&self) -> Duration {
        match &self.0 {
            Source::System(_) => Duration(boottime_ns() / 1_000),
            Source::Manual(micros) => Duration(micros.load(Ordering::Relaxed)),
        }
    }

    /// From here on no moment before this one is handed out: somebody has seen it.
    pub fn lead_to(&self, moment: Timestamp) {
        match &self.0 {
            Source::System(system) => system.lead_to(boottime_ns(), moment),
            Source::Manual(micros) => {
                micros.fetch_max(moment.as_micros(), Ordering::Relaxed);
            }
        }
    }

    /// Moves a manual clock; a system clock moves by itself and ignores this.
    pub fn advance(&self, span: Duration) {
        if let Source::Manual(micros) = &self.0 {
            micros.fetch_add(span.as_micros(), Ordering::Relaxed);
        }
    }

    /// Compares with the wall clock and corrects our rate, or steps forward. Call it once every
    /// [`DISCIPLINE_PERIOD`].
    pub fn discipline(&self) -> Discipline {
        match &self.0 {
            Source::System(system) => system.discipline(boottime_ns(), wall_us()),
            Source::Manual(_) => Discipline { gap_us: 0, stepped: false },
        }
    }
}

/// `now = wall_us + elapsed + elapsed * slew_ppm / 1e6`, where elapsed counts from `boot_ns`.
///
/// The three words change together under a sequence word, odd while it is being written, so
/// that a reading costs no lock.
#[derive(Debug)]
struct System {
    sequence: AtomicU64,
    boot_ns: AtomicU64,
    wall_us: AtomicU64,
    slew_ppm: AtomicI64,
    writing: Mutex<()>,
}

impl System {
    fn new() -> Self {
        Self::anchored(boottime_ns(), wall_us())
    }

    fn anchored(boot_ns: u64, wall_us: u64) -> Self {
        Self {
            sequence: AtomicU64::new(0),
            boot_ns: AtomicU64::new(boot_ns),
            wall_us: AtomicU64::new(wall_us),
            slew_ppm: AtomicI64::new(0),
            writing: Mutex::new(()),
        }
    }

    fn now(&self) -> Timestamp {
        self.at(boottime_ns())
    }

    fn at(&self, boot_ns: u64) -> Timestamp {
        loop {
            let before = self.sequence.load(Ordering::Acquire);
            let anchor_ns = self.boot_ns.load(Ordering::Acquire);
            let wall_us = self.wall_us.load(Ordering::Acquire);
            let slew_ppm = self.slew_ppm.load(Ordering::Acquire);
            if before.is_multiple_of(2) && self.sequence.load(Ordering::Acquire) == before {
                // A reading taken before another thread moved the anchor stays at the anchor.
                let elapsed_us = (boot_ns.saturating_sub(anchor_ns) / 1_000) as i64;
                let slewed_us = elapsed_us + elapsed_us / 1_000 * slew_ppm / 1_000;
                return Timestamp(wall_us + slewed_us as u64);
            }
            std::hint::spin_loop();
        }
    }

    fn discipline(&self, boot_ns: u64, wall_us: u64) -> Discipline {
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let ours_us = self.at(boot_ns).as_micros();
        let gap_us = wall_us as i64 - ours_us as i64;
        let stepped = gap_us > STEP_MIN.as_micros() as i64;
        let (anchor_us, slew_ppm) = if stepped {
            (wall_us, 0)
        } else {
            // Over one period, this many ppm close the gap; more is not allowed.
            (ours_us, gap_us.clamp(-SLEW_PPM_MAX, SLEW_PPM_MAX))
        };
        self.anchor(boot_ns, anchor_us, slew_ppm);
        Discipline { gap_us, stepped }
    }

    fn lead_to(&self, boot_ns: u64, moment: Timestamp) {
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        if self.at(boot_ns) < moment {
            self.anchor(boot_ns, moment.as_micros(), 0);
        }
    }

    /// For who holds `writing`.
    fn anchor(&self, boot_ns: u64, wall_us: u64, slew_ppm: i64) {
        self.sequence.fetch_add(1, Ordering::AcqRel);
        self.boot_ns.store(boot_ns, Ordering::Release);
        self.wall_us.store(wall_us, Ordering::Release);
        self.slew_ppm.store(slew_ppm, Ordering::Release);
        self.sequence.fetch_add(1, Ordering::AcqRel);
    }
}

fn boottime_ns() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

fn wall_us() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Realtime);
    // Before 1970 there is nothing to limit: such a clock reads as the epoch.
    u64::try_from(time.tv_sec).unwrap_or(0) * 1_000_000 + time.tv_nsec as u64 / 1_000
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOOT_NS: u64 = 1_000_000_000;
    const WALL_US: u64 = 1_700_000_000_000_000;

    fn system() -> System {
        System::anchored(BOOT_NS, WALL_US)
    }

    #[test]
    fn spans_read_back_what_they_print() {
        for text in ["500ms", "30s", "5m", "1h", "1d", "90s", "1us", "0s"] {
            let span = Duration::parse(text.as_bytes()).expect(text);
            assert_eq!(span.to_string(), text);
        }
        assert_eq!(Duration::parse(b"1500").map(|span| span.to_string()), Ok("1500ms".into()));
        assert_eq!(Duration::parse(b"2M"), Duration::parse(b"2m"));
    }

    #[test]
    fn malformed_spans_are_refused() {
        for text in ["", "s", "-1", "+1", "1.5s", "1 s", "1w", "5mm"] {
            assert_eq!(
                Duration::parse(text.as_bytes()),
                Err(ParseDurationError::Malformed),
                "{text}"
            );
        }
        for text in ["99999999999999999999", "9223372036854775807", "106751992d"] {
            assert_eq!(
                Duration::parse(text.as_bytes()),
                Err(ParseDurationError::TooLong),
                "{text}"
            );
        }
    }

    #[test]
    fn wall_step_backwards_is_only_slewed() {
        let system = system();
        let hour_us = 3_600_000_000;
        let boot_ns = BOOT_NS + 1_000_000_000;
        let before = system.at(boot_ns);
        let found = system.discipline(boot_ns, WALL_US + 1_000_000 - hour_us);
        assert_eq!(found, Discipline { gap_us: -(hour_us as i64), stepped: false });
        assert_eq!(system.at(boot_ns), before);
        let second_later = system.at(boot_ns + 1_000_000_000);
        assert_eq!(second_later.since(before), Duration::from_micros(1_000_000 - 500));
    }

    #[test]
    fn wall_step_far_forward_is_taken_at_once() {
        let system = system();
        let found = system.discipline(BOOT_NS, WALL_US + 7_200_000_000);
        assert!(found.stepped);
        assert_eq!(system.at(BOOT_NS), Timestamp::from_micros(WALL_US + 7_200_000_000));
    }

    #[test]
    fn clock_is_led_forward_only() {
        let system = system();
        let hour_us = 3_600_000_000;
        system.lead_to(BOOT_NS, Timestamp::from_micros(WALL_US + hour_us));
        assert_eq!(system.at(BOOT_NS + 1_000), Timestamp::from_micros(WALL_US + hour_us + 1));
        system.lead_to(BOOT_NS, Timestamp::from_micros(WALL_US));
        assert_eq!(system.at(BOOT_NS), Timestamp::from_micros(WALL_US + hour_us));
        // The wall, now behind, is approached and never jumped back to.
        assert!(!system.discipline(BOOT_NS, WALL_US).stepped);
        assert_eq!(system.at(BOOT_NS), Timestamp::from_micros(WALL_US + hour_us));
    }

    #[test]
    fn small_gap_is_closed_within_one_period() {
        let system = system();
        assert!(!system.discipline(BOOT_NS, WALL_US + 300).stepped);
        let second_later = system.at(BOOT_NS + 1_000_000_000);
        assert_eq!(second_later, Timestamp::from_micros(WALL_US + 1_000_300));
        assert_eq!(system.discipline(BOOT_NS + 1_000_000_000, WALL_US + 1_000_300).gap_us, 0);
    }

    #[test]
    fn reading_never_decreases_while_another_thread_disciplines() {
        let clock = Clock::system();
        let other = clock.clone();
        let writer = std::thread::spawn(move || {
            for _ in 0..10_000 {
                other.discipline();
            }
        });
        let mut latest = clock.now();
        while !writer.is_finished() {
            let now = clock.now();
            // Rounding to whole microseconds at each anchor may cost one.
            assert!(now + Duration::from_micros(1) >= latest, "{now:?} after {latest:?}");
            latest = latest.max(now);
        }
        writer.join().expect("the writer ends");
    }
}
