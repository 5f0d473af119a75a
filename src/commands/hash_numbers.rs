//! Counting in a field of a hash: HINCRBY and HINCRBYFLOAT.
//!
//! A missing field counts from 0. HINCRBYFLOAT adds as Redis does on x86, in 80 bits, because
//! clients compare its text.

use super::hashes::hash;
use super::request::Request;
use super::spec::{Arity, Spec, keyed};
use super::strings::STORE_FAST;
use crate::collection::{Digits, Hash};
use crate::engine::{KeyRef, View};
use crate::protocol::{Error, Extended, Reply, parse_i64};

pub(super) const SPECS: &[Spec] = &[
    Spec {
        summary: "Add to a whole number in a field of a hash.",
        handler: keyed!(hincrby_plan, hincrby),
        ..hash("HINCRBY", Arity::exactly(4), STORE_FAST)
    },
    Spec {
        since: "2.6.0",
        summary: "Add to a decimal number in a field of a hash.",
        handler: keyed!(hincrbyfloat_plan, hincrbyfloat),
        ..hash("HINCRBYFLOAT", Arity::exactly(4), STORE_FAST)
    },
];

/// A field, and what to add to it.
struct Increment<'a, T> {
    key: KeyRef<'a>,
    field: &'a [u8],
    by: T,
}

fn hincrby_plan<'a>(request: &Request<'a>) -> Result<Increment<'a, i64>, Error> {
    let by = parse_i64(request.word(3)).ok_or(Error::NotInteger)?;
    Ok(Increment { key: request.keys[0], field: request.word(2), by })
}

fn hincrby(
    view: &mut View<'_>,
    Increment { key, field, by }: Increment<'_, i64>,
    reply: &mut Reply<'_>,
) -> Result<(), Error> {
    let no_integer = || Error::text("hash value is not an integer");
    let sum = view.change(key, |hash: &mut Hash| {
        let mut sum = 0;
        hash.update(field, |value| {
            let number = value.map_or(Ok(0), |value| parse_i64(value).ok_or_else(no_integer))?;
            sum = number.checked_add(by).ok_or(Error::IncrementOverflow)?;
            Ok::<_, Error>(Digits::new(sum))
        })?;
        Ok((sum, true))
    })?;
    reply.integer(sum);
    Ok(())
}

fn hincrbyfloat_plan<'a>(request: &Request<'a>) -> Result<Increment<'a, Extended>, Error> {
    let by = Extended::parse(request.word(3)).ok_or(Error::NotFloat)?;
    if by.is_infinite() {
        return Err(Error::text("value is NaN or Infinity"));
    }
    Ok(Increment { key: request.keys[0], field: request.word(2), by })
}

fn hincrbyfloat(
    view: &mut View<'_>,
    Increment { key, field, by }: Increment<'_, Extended>,
    reply: &mut Reply<'_>,
) -> Result<(), Error> {
    let no_float = || Error::text("hash value is not a float");
    let text = view.change(key, |hash: &mut Hash| {
        let text = hash.update(field, |value| {
            let number =
                value.map_or(Some(Extended::ZERO), Extended::parse).ok_or_else(no_float)?;
            number.plus(by).map(|sum| sum.to_string()).ok_or(Error::IncrementNotFinite)
        })?;
        Ok((text, true))
    })?;
    reply.bulk(text);
    Ok(())
}
