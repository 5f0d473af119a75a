//! INCREX: a counter with bounds and a deadline in one request, a whole fixed-window limiter.
//!
//! A sum outside the bounds, or outside what the type can hold, changes nothing and answers the
//! value as it is with 0 added; under SATURATE the bound is taken instead, and the answer is the
//! difference that this made, of whatever sign. The bounds constrain the sum and not the
//! direction: a value that was outside may come back in.

use std::cmp::Ordering;

use super::counters::{decimal, integer};
use super::deadline::{Deadline, Form};
use super::request::Request;
use super::spec::{Arity, Keys, Spec, keyed};
use super::strings::{STORE_FAST, string};
use crate::engine::{Expires, Kept, KeyRef, Value, View};
use crate::protocol::{Error, Extended, Reply, parse_i64};
use crate::time::Timestamp;

pub(super) const SPECS: &[Spec] = &[Spec {
    since: "8.8.0",
    summary: "Add to a number within bounds and set its deadline.",
    handler: keyed!(plan, increx),
    ..string("INCREX", Arity::at_least(2), Keys::ONE, STORE_FAST)
}];

/// A kind of number that INCREX counts in.
trait Number: Copy + Sized {
    const MIN: Self;
    const MAX: Self;
    const ZERO: Self;
    /// `... is not X`, of an argument or a bound.
    const EXPECTED: &'static str;
    /// A difference that the type cannot hold.
    const TOO_FAR: &'static str;

    fn parse(text: &[u8]) -> Option<Self>;
    fn of(value: &Value) -> Result<Self, Error>;
    /// `None` for too much, in the direction of `other`.
    fn plus(self, other: Self) -> Option<Self>;
    fn minus(self, other: Self) -> Option<Self>;
    fn compare(self, other: Self) -> Ordering;
    fn stored(self) -> Value;
    fn answer(self, reply: &mut Reply<'_>);
}

impl Number for i64 {
    const MIN: Self = Self::MIN;
    const MAX: Self = Self::MAX;
    const ZERO: Self = 0;
    const EXPECTED: &'static str = "an integer or out of range";
    const TOO_FAR: &'static str = "applied increment would overflow";

    fn parse(text: &[u8]) -> Option<Self> {
        parse_i64(text)
    }

    fn of(value: &Value) -> Result<Self, Error> {
        integer(value)
    }

    fn plus(self, other: Self) -> Option<Self> {
        self.checked_add(other)
    }

    fn minus(self, other: Self) -> Option<Self> {
        self.checked_sub(other)
    }

    fn compare(self, other: Self) -> Ordering {
        self.cmp(&other)
    }

    fn stored(self) -> Value {
        Value::Integer(self)
    }

    fn answer(self, reply: &mut Reply<'_>) {
        reply.integer(self);
    }
}

impl Number for Extended {
    const MIN: Self = Self::MIN;
    const MAX: Self = Self::MAX;
    const ZERO: Self = Self::ZERO;
    const EXPECTED: &'static str = "a valid float";
    const TOO_FAR: &'static str = "applied increment would be Infinity";

    fn parse(text: &[u8]) -> Option<Self> {
        Self::parse(text)
    }

    fn of(value: &Value) -> Result<Self, Error> {
        let number = decimal(value)?;
        if number.is_infinite() {
            return Err(Error::text("value cannot be Infinity"));
        }
        Ok(number)
    }

    fn plus(self, other: Self) -> Option<Self> {
        self.plus(other)
    }

    fn minus(self, other: Self) -> Option<Self> {
        self.plus(other.negated())
    }

    fn compare(self, other: Self) -> Ordering {
        self.compare(other)
    }

    fn stored(self) -> Value {
        Value::Text(self.to_string().into_bytes().into())
    }

    fn answer(self, reply: &mut Reply<'_>) {
        reply.decimal(self.to_string());
    }
}

/// What is added, and what the sum may be.
#[derive(Clone, Copy)]
struct Step<N> {
    by: N,
    lower: N,
    upper: N,
    saturate: bool,
}

impl<N: Number> Step<N> {
    fn read(words: &Words<'_>, by: Option<&[u8]>, one: N) -> Result<Self, Error> {
        let number = |name: &str, text: Option<&[u8]>, otherwise: N| match text {
            Some(text) => {
                N::parse(text).ok_or_else(|| Error::text(format!("{name} is not {}", N::EXPECTED)))
            }
            None => Ok(otherwise),
        };
        let step = Self {
            by: number("Increment", by, one)?,
            lower: number("LBOUND", words.lower, N::MIN)?,
            upper: number("UBOUND", words.upper, N::MAX)?,
            saturate: words.saturate,
        };
        if step.lower.compare(step.upper) == Ordering::Greater {
            return Err(Error::text("LBOUND can't be greater than UBOUND"));
        }
        Ok(step)
    }

    /// The value after the step; `None` where it is refused.
    fn target(self, value: N) -> Option<N> {
        let sum = value.plus(self.by);
        let outside = match sum {
            Some(sum) if sum.compare(self.lower) == Ordering::Less => self.lower,
            Some(sum) if sum.compare(self.upper) == Ordering::Greater => self.upper,
            Some(sum) => return Some(sum),
            None if self.by.compare(N::ZERO) == Ordering::Less => self.lower,
            None => self.upper,
        };
        self.saturate.then_some(outside)
    }
}

#[derive(Clone, Copy)]
enum By {
    Integer(Step<i64>),
    Float(Step<Extended>),
}

/// What becomes of the deadline.
#[derive(Clone, Copy)]
enum Lifetime {
    Keep,
    Persist,
    Until(Deadline),
    /// Only where the key has none.
    UntilIfNone(Deadline),
}

#[derive(Clone, Copy)]
struct Plan<'a> {
    key: KeyRef<'a>,
    by: By,
    lifetime: Lifetime,
}

/// The options as they were written; none may be given twice.
#[derive(Default)]
struct Words<'a> {
    by_integer: Option<&'a [u8]>,
    by_float: Option<&'a [u8]>,
    lower: Option<&'a [u8]>,
    upper: Option<&'a [u8]>,
    deadline: Option<(Form, &'a [u8])>,
    saturate: bool,
    persist: bool,
    if_none: bool,
}

impl<'a> Words<'a> {
    fn read(request: &Request<'a>) -> Result<Self, Error> {
        let mut words = Self::default();
        let mut at = 2;
        while let Some(word) = request.args.get(at) {
            at += words.take(word, request.args.get(at + 1))?;
        }
        let deadlines = u8::from(words.persist) + u8::from(words.deadline.is_some());
        if words.by_integer.is_some() && words.by_float.is_some()
            || deadlines > 1
            || words.persist && words.if_none
        {
            return Err(Error::Syntax);
        }
        if words.if_none && words.deadline.is_none() {
            return Err(Error::text("ENX flag requires an expiration"));
        }
        Ok(words)
    }

    /// Takes one option and returns how many words it was.
    fn take(&mut self, word: &[u8], next: Option<&'a [u8]>) -> Result<usize, Error> {
        let is = |name: &str| name.as_bytes().eq_ignore_ascii_case(word);
        let flag = match () {
            () if is("SATURATE") => Some(&mut self.saturate),
            () if is("PERSIST") => Some(&mut self.persist),
            () if is("ENX") => Some(&mut self.if_none),
            () => None,
        };
        if let Some(flag) = flag {
            return if std::mem::replace(flag, true) { Err(Error::Syntax) } else { Ok(1) };
        }
        let next = next.ok_or(Error::Syntax)?;
        let twice = if let Some(form) = Form::of_word(word) {
            self.deadline.replace((form, next)).is_some()
        } else {
            let option = match () {
                () if is("BYINT") => &mut self.by_integer,
                () if is("BYFLOAT") => &mut self.by_float,
                () if is("LBOUND") => &mut self.lower,
                () if is("UBOUND") => &mut self.upper,
                () => return Err(Error::Syntax),
            };
            option.replace(next).is_some()
        };
        if twice { Err(Error::Syntax) } else { Ok(2) }
    }
}

fn plan<'a>(request: &Request<'a>) -> Result<Plan<'a>, Error> {
    let words = Words::read(request)?;
    let by = if words.by_float.is_some() {
        let step = Step::read(&words, words.by_float, Extended::ZERO)?;
        if step.by.is_infinite() {
            return Err(Error::text("BYFLOAT increment cannot be Infinity"));
        }
        By::Float(step)
    } else {
        By::Integer(Step::read(&words, words.by_integer, 1)?)
    };
    let lifetime = match words.deadline {
        None if words.persist => Lifetime::Persist,
        None => Lifetime::Keep,
        Some((form, number)) => {
            let deadline = form.read_positive(number, request.now, "increx")?;
            if words.if_none { Lifetime::UntilIfNone(deadline) } else { Lifetime::Until(deadline) }
        }
    };
    Ok(Plan { key: request.keys[0], by, lifetime })
}

fn increx(view: &mut View<'_>, plan: Plan<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let expires = match plan.lifetime {
        Lifetime::Keep => Expires::Keep,
        Lifetime::Persist => Expires::Never,
        Lifetime::Until(deadline) => Expires::At(deadline.moment(view.now())),
        Lifetime::UntilIfNone(deadline) => match view.look(plan.key) {
            Some(found) if found.expires != Timestamp::MAX => Expires::Keep,
            Some(_) | None => Expires::At(deadline.moment(view.now())),
        },
    };
    match plan.by {
        By::Integer(step) => take(view, (plan.key, expires), step, reply),
        By::Float(step) => take(view, (plan.key, expires), step, reply),
    }
}

fn take<N: Number>(
    view: &mut View<'_>,
    (key, expires): (KeyRef<'_>, Expires),
    step: Step<N>,
    reply: &mut Reply<'_>,
) -> Result<(), Error> {
    let zero = |_| Value::Integer(0);
    let (now, applied) = view.update(key, zero, |value, _| {
        let before = N::of(value)?;
        let Some(after) = step.target(before) else {
            return Ok::<_, Error>(((before, N::ZERO), Kept::Unchanged));
        };
        let applied = after.minus(before).ok_or_else(|| Error::text(N::TOO_FAR))?;
        *value = after.stored();
        Ok(((after, applied), Kept::Changed { expires }))
    })?;
    reply.array(2);
    now.answer(reply);
    applied.answer(reply);
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn step_follows_wide_arithmetic(
            value in any::<i64>(),
            by in any::<i64>(),
            bounds in (any::<i64>(), any::<i64>()),
            saturate: bool,
        ) {
            let (lower, upper) = (bounds.0.min(bounds.1), bounds.0.max(bounds.1));
            let step = Step { by, lower, upper, saturate };
            let sum = i128::from(value) + i128::from(by);
            let clamped = sum.clamp(i128::from(lower), i128::from(upper));
            let expected = (saturate || clamped == sum).then_some(clamped as i64);
            prop_assert_eq!(step.target(value), expected);
        }
    }
}
