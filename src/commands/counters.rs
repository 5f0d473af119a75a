//! Counting in strings: INCR, INCRBY, DECR, DECRBY and INCRBYFLOAT. INCREX is in `increx.rs`.
//!
//! A missing key counts from 0; a deadline stays as it is. INCRBYFLOAT adds as Redis does on
//! x86, in 80 bits, because clients compare its text.

use super::request::Request;
use super::spec::{Arity, Keys, Spec, keyed};
use super::strings::{STORE_FAST, bytes, string};
use crate::engine::{Expires, Kept, KeyRef, Value, View};
use crate::protocol::{Error, Extended, Reply, parse_i64};

pub(super) const SPECS: &[Spec] = &[
    Spec {
        summary: "Subtract one from a whole number.",
        handler: keyed!(Request::key, |view, key, reply| increment(view, (key, -1), reply)),
        ..string("DECR", Arity::exactly(2), Keys::ONE, STORE_FAST)
    },
    Spec {
        summary: "Subtract from a whole number.",
        handler: keyed!(decrby_plan, increment),
        ..string("DECRBY", Arity::exactly(3), Keys::ONE, STORE_FAST)
    },
    Spec {
        summary: "Add one to a whole number.",
        handler: keyed!(Request::key, |view, key, reply| increment(view, (key, 1), reply)),
        ..string("INCR", Arity::exactly(2), Keys::ONE, STORE_FAST)
    },
    Spec {
        summary: "Add to a whole number.",
        handler: keyed!(incrby_plan, increment),
        ..string("INCRBY", Arity::exactly(3), Keys::ONE, STORE_FAST)
    },
    Spec {
        since: "2.6.0",
        summary: "Add to a decimal number.",
        handler: keyed!(incrbyfloat_plan, incrbyfloat),
        ..string("INCRBYFLOAT", Arity::exactly(3), Keys::ONE, STORE_FAST)
    },
];

type Increment<'a> = (KeyRef<'a>, i64);

fn incrby_plan<'a>(request: &Request<'a>) -> Result<Increment<'a>, Error> {
    Ok((request.keys[0], parse_i64(request.word(2)).ok_or(Error::NotInteger)?))
}

fn decrby_plan<'a>(request: &Request<'a>) -> Result<Increment<'a>, Error> {
    let (key, by) = incrby_plan(request)?;
    Ok((key, by.checked_neg().ok_or(Error::DecrementOverflow)?))
}

fn increment(
    view: &mut View<'_>,
    (key, by): Increment<'_>,
    reply: &mut Reply<'_>,
) -> Result<(), Error> {
    let zero = |_| Value::Integer(0);
    let sum = view.update(key, zero, |value, _| {
        let sum = integer(value)?.checked_add(by).ok_or(Error::IncrementOverflow)?;
        *value = Value::Integer(sum);
        Ok::<_, Error>((sum, Kept::Changed { expires: Expires::Keep }))
    })?;
    reply.integer(sum);
    Ok(())
}

/// What is added; no number at all is an error only once the key is known to hold a string.
type FloatIncrement<'a> = (KeyRef<'a>, Option<Extended>);

fn incrbyfloat_plan<'a>(request: &Request<'a>) -> Result<FloatIncrement<'a>, Error> {
    Ok((request.keys[0], Extended::parse(request.word(2))))
}

fn incrbyfloat(
    view: &mut View<'_>,
    (key, by): FloatIncrement<'_>,
    reply: &mut Reply<'_>,
) -> Result<(), Error> {
    let zero = |_| Value::Integer(0);
    let text = view.update(key, zero, |value, _| {
        let sum = decimal(value)?.plus(by.ok_or(Error::NotFloat)?);
        let text = sum.ok_or(Error::IncrementNotFinite)?.to_string();
        // Kept as text even where it reads as an integer, as Redis does.
        *value = Value::Text(text.as_bytes().into());
        Ok::<_, Error>((text, Kept::Changed { expires: Expires::Keep }))
    })?;
    reply.bulk(text);
    Ok(())
}

/// A string as a whole number.
pub(super) fn integer(value: &Value) -> Result<i64, Error> {
    match value {
        Value::Integer(number) => Ok(*number),
        Value::Text(bytes) => parse_i64(bytes).ok_or(Error::NotInteger),
        Value::Raw(bytes) => parse_i64(bytes).ok_or(Error::NotInteger),
        Value::Limit(_)
        | Value::Ledger(_)
        | Value::Ticket(_)
        | Value::Hash(_)
        | Value::List(_)
        | Value::Set(_)
        | Value::SortedSet(_) => Err(Error::WrongType),
    }
}

/// A string as a decimal number.
pub(super) fn decimal(value: &Value) -> Result<Extended, Error> {
    Extended::parse(bytes(value, &mut itoa::Buffer::new())?).ok_or(Error::NotFloat)
}
