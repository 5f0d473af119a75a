//! Deadlines in requests: the words EX, PX, EXAT and PXAT, and the number behind each.
//!
//! A relative deadline is counted from the moment of the transaction, in microseconds, so that a
//! key lives exactly as long as was asked. Told in milliseconds, a deadline and what is left
//! until it are rounded up: a living key never has 0 ms left.

use crate::protocol::{Error, parse_i64};
use crate::time::{Duration, Timestamp};

/// When a key is to be gone.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Deadline {
    After(Duration),
    At(Timestamp),
}

impl Deadline {
    /// Later than any clock; [`Timestamp::MAX`] itself stands for never.
    const LATEST: Timestamp = Timestamp::from_micros(u64::MAX - 1);

    pub(super) fn moment(self, now: Timestamp) -> Timestamp {
        let moment = match self {
            Self::After(span) => now + span,
            Self::At(moment) => moment,
        };
        moment.min(Self::LATEST)
    }
}

/// How the number of a deadline is meant.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Form {
    /// Seconds from now.
    Ex,
    /// Milliseconds from now.
    Px,
    /// Seconds since the epoch.
    ExAt,
    /// Milliseconds since the epoch.
    PxAt,
}

impl Form {
    pub(super) fn of_word(word: &[u8]) -> Option<Self> {
        [
            (b"EX".as_slice(), Self::Ex),
            (b"PX", Self::Px),
            (b"EXAT", Self::ExAt),
            (b"PXAT", Self::PxAt),
        ]
        .into_iter()
        .find_map(|(name, form)| name.eq_ignore_ascii_case(word).then_some(form))
    }

    /// Reads a number that may lie in the past. Refused is what does not fit 64 bits of
    /// milliseconds since the epoch; `command` is its name in lower case, for the error.
    pub(super) fn read(
        self,
        text: &[u8],
        now: Timestamp,
        command: &'static str,
    ) -> Result<Deadline, Error> {
        let number = parse_i64(text).ok_or(Error::NotInteger)?;
        let factor = match self {
            Self::Ex | Self::ExAt => 1_000,
            Self::Px | Self::PxAt => 1,
        };
        let invalid = Error::InvalidExpire(command);
        let Some(millis) = number.checked_mul(factor) else { return Err(invalid) };
        let Ok(positive) = u64::try_from(millis) else {
            return Ok(Deadline::At(Timestamp::EPOCH));
        };
        match self {
            Self::ExAt | Self::PxAt => Ok(Deadline::At(Timestamp::from_millis(positive))),
            Self::Ex | Self::Px if millis.checked_add(now.as_millis() as i64).is_none() => {
                Err(invalid)
            }
            Self::Ex | Self::Px => Ok(Deadline::After(Duration::from_millis(positive))),
        }
    }

    /// Reads a number that must be above zero: those commands that set a value and its deadline
    /// together refuse any other.
    pub(super) fn read_positive(
        self,
        text: &[u8],
        now: Timestamp,
        command: &'static str,
    ) -> Result<Deadline, Error> {
        match parse_i64(text) {
            Some(number) if number <= 0 => Err(Error::InvalidExpire(command)),
            Some(_) | None => self.read(text, now, command),
        }
    }
}

/// A moment in milliseconds since the epoch.
pub(super) fn told_ms(moment: Timestamp) -> i64 {
    moment.since(Timestamp::EPOCH).as_millis_ceil() as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_micros(1_700_000_000_000_700);

    fn moment(form: Form, text: &str) -> Option<u64> {
        let deadline = form.read(text.as_bytes(), NOW, "expire").ok()?;
        Some(deadline.moment(NOW).as_micros())
    }

    #[test]
    fn relative_deadlines_keep_the_microseconds_of_now() {
        assert_eq!(moment(Form::Ex, "2"), Some(NOW.as_micros() + 2_000_000));
        assert_eq!(moment(Form::Px, "2"), Some(NOW.as_micros() + 2_000));
        assert_eq!(moment(Form::ExAt, "1700000001"), Some(1_700_000_001_000_000));
        assert_eq!(moment(Form::PxAt, "1700000001001"), Some(1_700_000_001_001_000));
    }

    #[test]
    fn whatever_overflows_milliseconds_is_refused() {
        let largest = i64::MAX - NOW.as_millis() as i64;
        assert!(moment(Form::Px, &largest.to_string()).is_some());
        for (form, text) in [
            (Form::Px, (largest + 1).to_string()),
            (Form::Ex, (i64::MAX / 1_000 + 1).to_string()),
            (Form::Ex, (i64::MIN / 1_000 - 1).to_string()),
            (Form::ExAt, (i64::MAX / 1_000 + 1).to_string()),
            (Form::Ex, "18446744073709561".to_owned()),
        ] {
            let error = form.read(text.as_bytes(), NOW, "expire");
            assert_eq!(error, Err(Error::InvalidExpire("expire")), "{form:?} {text}");
        }
        assert_eq!(Form::Ex.read(b"0.5", NOW, "expire"), Err(Error::NotInteger));
    }

    #[test]
    fn far_deadlines_are_late_but_not_never() {
        let far = moment(Form::PxAt, "9223372036854770000");
        assert!(far.is_some_and(|micros| micros < u64::MAX));
    }

    #[test]
    fn past_deadlines_are_read_unless_they_must_be_positive() {
        for text in ["0", "-1", "-9223372036854775"] {
            assert!(moment(Form::Ex, text).is_some_and(|micros| micros <= NOW.as_micros()));
            let error = Form::Ex.read_positive(text.as_bytes(), NOW, "set");
            assert_eq!(error, Err(Error::InvalidExpire("set")));
        }
        assert!(moment(Form::PxAt, "-9223372036854775808").is_some());
    }
}
