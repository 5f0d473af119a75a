//! CL.THROTTLE of the module redis-cell, and THROTTLE of throttlecrab.
//!
//! Both count by GCRA on the state that RL.LIMIT calls `gcra`; their replies and error texts are
//! those of the originals, so that their clients need no change. A negative number is an error:
//! giving back is the work of RL.REFUND.

use super::limits::state_mut;
use super::request::Request;
use super::spec::{Arity, Flags, Group, Keys, Spec, keyed};
use crate::engine::{Expires, Kept, KeyRef, Value, View};
use crate::limit::{Rounding, Throttle, ThrottleError, ThrottleOutcome, ThrottleRequest};
use crate::protocol::{Error, Reply, parse_i64};

pub(super) const SPECS: &[Spec] = &[
    Spec {
        name: "CL.THROTTLE",
        // As a module's command: it checks the number of its words itself.
        arity: Arity::at_least(1),
        keys: Keys::ONE,
        flags: Flags::WRITE.and(Flags::MAKES_KEYS),
        group: Group::RateLimit,
        since: "0.1.0",
        complexity: "O(1)",
        summary: "Decide as the module redis-cell does, times in whole seconds.",
        subcommands: &[],
        handler: keyed!(cell_plan, cell),
    },
    Spec {
        name: "THROTTLE",
        arity: Arity::between(5, 6),
        keys: Keys::ONE,
        flags: Flags::WRITE.and(Flags::FAST).and(Flags::MAKES_KEYS),
        group: Group::RateLimit,
        since: "0.1.0",
        complexity: "O(1)",
        summary: "Decide as throttlecrab does, times in whole seconds.",
        subcommands: &[],
        handler: keyed!(crab_plan, crab),
    },
];

const CELL_USAGE: &str = "Cell error: Usage: CL.THROTTLE <key> <max_burst> <count per period> \
                          <period> [<quantity>]";

/// `CL.THROTTLE key max_burst count period_s [quantity]`
fn cell_plan<'a>(request: &Request<'a>) -> Result<(KeyRef<'a>, Throttle, Rounding), Error> {
    if !(5..=6).contains(&request.args.len()) {
        return Err(Error::raw(CELL_USAGE));
    }
    let number = |place| {
        let word = request.word(place);
        // A plus sign is allowed, as in the original.
        parse_i64(word.strip_prefix(b"+").unwrap_or(word)).ok_or_else(|| {
            let word = String::from_utf8_lossy(word);
            Error::raw(format!("Cell error: Couldn't parse as integer: {word}"))
        })
    };
    let quantity = if request.args.len() == 6 { number(5)? } else { 1 };
    let request_numbers = ThrottleRequest {
        max_burst: number(2)?,
        count_per_period: number(3)?,
        period_s: number(4)?,
        quantity,
    };
    let throttle = Throttle::cell(request_numbers)
        .map_err(|error| Error::raw(format!("Cell error: {error}")))?;
    let dragonfly = request.service.runtime().dragonfly_rounding();
    let rounding = if dragonfly { Rounding::Dragonfly } else { Rounding::Cell };
    refuse_if_overfull(request)?;
    Ok((request.keys[0], throttle, rounding))
}

fn cell(
    view: &mut View<'_>,
    (key, throttle, rounding): (KeyRef<'_>, Throttle, Rounding),
    reply: &mut Reply<'_>,
) -> Result<(), Error> {
    reply.integers(&decide(view, key, &throttle)?.cell_reply(rounding));
    Ok(())
}

/// `THROTTLE key max_burst count period_s [quantity]`
fn crab_plan<'a>(request: &Request<'a>) -> Result<(KeyRef<'a>, Throttle), Error> {
    let number = |place, name: &'static str| {
        parse_i64(request.word(place)).ok_or_else(|| Error::text(format!("invalid {name}")))
    };
    if std::str::from_utf8(request.word(1)).is_err() {
        return Err(Error::text("invalid key"));
    }
    let quantity = if request.args.len() == 6 { number(5, "quantity")? } else { 1 };
    let numbers = ThrottleRequest {
        max_burst: number(2, "max_burst")?,
        count_per_period: number(3, "count_per_period")?,
        period_s: number(4, "period")?,
        quantity,
    };
    let throttle =
        Throttle::crab(numbers).map_err(|error: ThrottleError| Error::text(error.to_string()))?;
    refuse_if_overfull(request)?;
    Ok((request.keys[0], throttle))
}

fn crab(
    view: &mut View<'_>,
    (key, throttle): (KeyRef<'_>, Throttle),
    reply: &mut Reply<'_>,
) -> Result<(), Error> {
    reply.integers(&decide(view, key, &throttle)?.crab_reply());
    Ok(())
}

fn decide(
    view: &mut View<'_>,
    key: KeyRef<'_>,
    throttle: &Throttle,
) -> Result<ThrottleOutcome, Error> {
    let outcome = view.update(
        key,
        |now| Value::Limit(throttle.fresh(now)),
        |value, now| {
            let state = state_mut(value)?;
            let outcome = throttle.check(state, now);
            let kept = if outcome.limited || throttle.is_peek() {
                Kept::Unchanged
            } else {
                Kept::Changed { expires: Expires::At(state.expires_at()) }
            };
            Ok::<_, Error>((outcome, kept))
        },
    )?;
    view.count_decision(key, !outcome.limited);
    Ok(outcome)
}

/// Memory is well over its bound: not even a live limiter may grow.
pub(super) fn refuse_if_overfull(request: &Request<'_>) -> Result<(), Error> {
    if request.service.engine().is_overfull() { Err(Error::OutOfMemory) } else { Ok(()) }
}
