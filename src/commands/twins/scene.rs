//! What a twin is given: the view, the keys and the arguments, read so that all unusual things
//! make it decline.
//!
//! Numbers are those whose only text is plain digits, and so small that sums of a few of them
//! are exact in a double: Lua would come to the same.

use super::Declined;
use crate::engine::{Expires, Kept, KeyRef, OutOfMemory, Value, View};
use crate::protocol::{Args, parse_i64};
use crate::time::{Duration, Timestamp};

/// Sums of eight numbers within this are exact in a double.
const NUMBER_MAX: i64 = 1 << 50;

pub(super) struct Scene<'s, 'e> {
    pub(super) view: &'s mut View<'e>,
    keys: &'s [KeyRef<'s>],
    args: Args<'s>,
}

/// A counter as it stands.
#[derive(Clone, Copy)]
pub(super) struct Counter {
    /// Nothing where there is no key.
    pub(super) value: Option<i64>,
    /// What PTTL would answer.
    pub(super) left_ms: i64,
}

impl<'s, 'e> Scene<'s, 'e> {
    pub(super) fn new(view: &'s mut View<'e>, keys: &'s [KeyRef<'s>], args: Args<'s>) -> Self {
        Self { view, keys, args }
    }

    /// The only key.
    pub(super) fn key(&self) -> Result<KeyRef<'s>, Declined> {
        if let [key] = self.keys { Ok(*key) } else { Err(Declined) }
    }

    pub(super) fn arg(&self, place: usize) -> Option<&'s [u8]> {
        self.args.get(place)
    }

    /// A whole number that is at least `least`.
    pub(super) fn number(&self, place: usize, least: i64) -> Result<i64, Declined> {
        let number = self.arg(place).and_then(parse_i64).ok_or(Declined)?;
        let least = least.max(-NUMBER_MAX);
        if (least..=NUMBER_MAX).contains(&number) { Ok(number) } else { Err(Declined) }
    }

    /// The same, where the script knows what to do without it.
    pub(super) fn number_or(
        &self,
        place: usize,
        least: i64,
        default: i64,
    ) -> Result<i64, Declined> {
        if self.arg(place).is_none() { Ok(default) } else { self.number(place, least) }
    }

    pub(super) fn now_us(&self) -> i64 {
        self.view.now().as_micros() as i64
    }

    /// What PTTL would answer of a key, whatever it holds.
    pub(super) fn left_ms(&mut self, key: KeyRef<'_>) -> Result<i64, Declined> {
        let now = self.view.now();
        let left_ms = match self.view.look(key).map(|found| found.expires) {
            None => -2,
            Some(Timestamp::MAX) => -1,
            Some(expires) => expires.since(now).as_millis_ceil() as i64,
        };
        if left_ms <= NUMBER_MAX { Ok(left_ms) } else { Err(Declined) }
    }

    pub(super) fn counter(&mut self, key: KeyRef<'_>) -> Result<Counter, Declined> {
        let left_ms = self.left_ms(key)?;
        let value = match self.view.look(key).map(|found| found.value) {
            None => None,
            Some(Value::Integer(value)) if value.unsigned_abs() <= NUMBER_MAX.unsigned_abs() => {
                Some(*value)
            }
            Some(_) => return Err(Declined),
        };
        Ok(Counter { value, left_ms })
    }

    /// A moment in microseconds that stands under a key.
    pub(super) fn moment(&mut self, key: KeyRef<'_>) -> Result<Option<i64>, Declined> {
        /// Beyond it, differences would no longer be exact in a double.
        const LATEST_US: i64 = 1 << 53;
        match self.view.look(key).map(|found| found.value) {
            None => Ok(None),
            Some(Value::Integer(moment @ 0..=LATEST_US)) => Ok(Some(*moment)),
            Some(_) => Err(Declined),
        }
    }

    /// As GET and PTTL count it: a hit or a miss each.
    pub(super) fn count_reads(&mut self, key: KeyRef<'_>) {
        self.view.read(key);
        self.view.glance(key);
    }

    /// Puts a number under a key for so long.
    pub(super) fn set(&mut self, key: KeyRef<'_>, value: i64, lives_ms: i64) {
        let expires = self.view.now() + millis(lives_ms);
        self.view.insert(key, Value::Integer(value), expires);
    }

    /// Sets a counter and keeps its deadline, or gives it one.
    pub(super) fn store(
        &mut self,
        key: KeyRef<'_>,
        value: i64,
        lives_ms: Option<i64>,
    ) -> Result<(), Declined> {
        let expires = match lives_ms {
            Some(lives_ms) => Expires::At(self.view.now() + millis(lives_ms)),
            None => Expires::Keep,
        };
        let stored = self.view.update(
            key,
            |_| Value::Integer(0),
            |held, _| {
                *held = Value::Integer(value);
                Ok::<_, OutOfMemory>(((), Kept::Changed { expires }))
            },
        );
        stored.map_err(|_| Declined)
    }
}

pub(super) fn millis(span: i64) -> Duration {
    Duration::from_millis(span.unsigned_abs())
}
