//! What a twin is given: the view, the keys and the arguments, read so that all unusual things
//! make it decline.
//!
//! Numbers are those whose only text is plain digits, and so small that sums of a few of them
//! are exact in a double: Lua would come to the same.

use super::Declined;
use super::lua::decimal;
use crate::collection::Hash;
use crate::engine::{Collection, Expires, Kept, KeyRef, OutOfMemory, Value, View};
use crate::protocol::{Args, Error, FloatText, parse_i64};
use crate::time::{Duration, Timestamp};

/// Sums of eight numbers within this are exact in a double.
const NUMBER_MAX: i64 = 1 << 50;

/// Moments, in microseconds too: differences and sums of two are exact in a double.
pub(super) const MOMENT_MAX: i64 = 1 << 52;

/// A thousand years and more.
const SECONDS_MAX: i64 = 1 << 35;

/// Numbers that a script keeps in a hash: exact in a double, moments in microseconds too.
const FIELD_MAX: i64 = 1 << 53;

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

    /// The only two keys, which differ.
    pub(super) fn two_keys(&self) -> Result<[KeyRef<'s>; 2], Declined> {
        match self.keys {
            [one, other] if one.bytes() != other.bytes() => Ok([*one, *other]),
            _ => Err(Declined),
        }
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

    /// A number of seconds, in milliseconds.
    pub(super) fn seconds(&self, place: usize) -> Result<i64, Declined> {
        let seconds = self.number(place, 1)?;
        if seconds > SECONDS_MAX { Err(Declined) } else { Ok(seconds * 1_000) }
    }

    /// A moment by somebody's clock.
    pub(super) fn moment_number(&self, place: usize) -> Result<i64, Declined> {
        let moment = self.arg(place).and_then(parse_i64);
        moment.filter(|moment| (0..=MOMENT_MAX).contains(moment)).ok_or(Declined)
    }

    /// A number that may have a fraction, from zero on.
    pub(super) fn decimal(&self, place: usize) -> Result<f64, Declined> {
        let number = self.arg(place).and_then(decimal);
        number.filter(|number| (0.0..=NUMBER_MAX as f64).contains(number)).ok_or(Declined)
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

    /// A limit, a window in milliseconds, and a cost that is 1 unless given.
    pub(super) fn limit_window_cost(&self) -> Result<(i64, i64, i64), Declined> {
        Ok((self.number(0, 0)?, self.number(1, 1)?, self.number_or(2, 0, 1)?))
    }

    /// The same, where the script takes no more than 2^43 of each.
    pub(super) fn small_limit_window_cost(&self) -> Result<(i64, i64, i64), Declined> {
        let (limit, window, cost) = self.limit_window_cost()?;
        [limit, window, cost].into_iter().try_for_each(small)?;
        Ok((limit, window, cost))
    }

    pub(super) fn now_ms(&self) -> i64 {
        self.now_us() / 1_000
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

    /// The collection under a key; nothing where there is no key.
    pub(super) fn collection<C: Collection>(
        &mut self,
        key: KeyRef<'_>,
    ) -> Result<Option<&C>, Declined> {
        let found = self.view.look(key);
        found.map(|found| found.value.as_collection().ok_or(Declined)).transpose()
    }

    /// Changes the collection under a key, or a new one, and sets its deadline.
    pub(super) fn change<C: Collection, R>(
        &mut self,
        key: KeyRef<'_>,
        expires: Timestamp,
        change: impl FnOnce(&mut C) -> R,
    ) -> Result<R, Declined> {
        let changed = self.view.update(
            key,
            |_| C::new(key.hash()).into(),
            |value, _| {
                let collection = value.as_collection_mut().ok_or(Error::WrongType)?;
                let kept = Kept::Changed { expires: Expires::At(expires) };
                Ok::<_, Error>((change(collection), kept))
            },
        );
        changed.map_err(|_| Declined)
    }

    /// Whole numbers in fields of a hash.
    pub(super) fn fields<const N: usize>(
        &mut self,
        key: KeyRef<'_>,
        names: [&str; N],
    ) -> Result<[Option<i64>; N], Declined> {
        let hash = self.collection::<Hash>(key)?;
        let mut numbers = [None; N];
        for (number, name) in numbers.iter_mut().zip(names) {
            if let Some(text) = hash.and_then(|hash| hash.get(name.as_bytes())) {
                let read = parse_i64(text).filter(|read| (0..=FIELD_MAX).contains(read));
                *number = Some(read.ok_or(Declined)?);
            }
        }
        Ok(numbers)
    }

    pub(super) fn set_fields<const N: usize>(
        &mut self,
        key: KeyRef<'_>,
        expires: Timestamp,
        fields: [(&str, i64); N],
    ) -> Result<(), Declined> {
        self.change(key, expires, |hash: &mut Hash| {
            for (name, number) in fields {
                hash.set(name.as_bytes(), itoa::Buffer::new().format(number).as_bytes());
            }
        })
    }

    /// A number of milliseconds from now.
    pub(super) fn after(&self, span_ms: i64) -> Timestamp {
        self.view.now() + millis(span_ms)
    }

    /// A hit or a miss for each command of the script that reads the key.
    pub(super) fn count_reads_of(&mut self, key: KeyRef<'_>, commands: usize) {
        for _ in 0..commands {
            self.view.read(key);
        }
    }

    /// A number, maybe with a fraction, that stands under a key.
    pub(super) fn stored_decimal(&mut self, key: KeyRef<'_>) -> Result<Option<f64>, Declined> {
        let Some(found) = self.view.look(key) else { return Ok(None) };
        let mut digits = itoa::Buffer::new();
        let number = found.value.bytes(&mut digits).and_then(decimal);
        let number = number.filter(|number| number.abs() <= FIELD_MAX as f64);
        number.map(Some).ok_or(Declined)
    }

    /// Puts a number, maybe with a fraction, under a key for so long.
    pub(super) fn set_decimal(&mut self, key: KeyRef<'_>, number: f64, lives_ms: i64) {
        let value = Value::string(FloatText::new(number).as_bytes());
        let expires = self.after(lives_ms);
        self.view.insert(key, value, expires);
    }

    /// As GET and PTTL count it: a hit or a miss each.
    pub(super) fn count_reads(&mut self, key: KeyRef<'_>) {
        self.view.read(key);
        self.view.glance(key);
    }

    /// Puts a number under a key for so long.
    pub(super) fn set(&mut self, key: KeyRef<'_>, value: i64, lives_ms: i64) {
        let expires = self.after(lives_ms);
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
            Some(lives_ms) => Expires::At(self.after(lives_ms)),
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

/// What our own scripts take as a number of units or milliseconds.
pub(super) fn small(number: i64) -> Result<(), Declined> {
    if number < 1 << 43 { Ok(()) } else { Err(Declined) }
}

fn millis(span: i64) -> Duration {
    Duration::from_millis(span.unsigned_abs())
}
