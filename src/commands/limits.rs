//! RL.LIMIT, RL.RESET and RL.REFUND: limits on keys, with no policy needed.
//!
//! Every decision answers five integers: `limited` (0 or 1), `limit`, `remaining` (rounded
//! down), `retry_after` in milliseconds (rounded up; -1 when allowed or never) and `reset_after`
//! in milliseconds (rounded up). The clock is the server's.

use super::policed::{refund_tenant, reset_tenant};
use super::request::Request;
use super::spec::{Arity, Flags, Group, Handler, Keys, Spec, keyed};
use crate::engine::{Expires, Kept, KeyRef, Value, View, spend};
use crate::limit::{Algorithm, Align, Cost, Decision, Quota, State, peek, refund};
use crate::protocol::{Error, Reply, parse_u64};
use crate::time::{Duration, ParseDurationError};

pub(super) const SPECS: &[Spec] = &[
    Spec {
        name: "RL.LIMIT",
        arity: Arity::at_least(4),
        keys: Keys::ONE,
        flags: Flags::WRITE.and(Flags::FAST).and(Flags::MAKES_KEYS),
        group: Group::RateLimit,
        since: "0.1.0",
        complexity: "O(1) amortised",
        summary: "Decide whether a request on a key may pass, and spend its cost.",
        subcommands: &[],
        handler: keyed!(limit_plan, limit),
    },
    Spec {
        name: "RL.REFUND",
        arity: Arity::at_least(4),
        keys: Keys::Range { first: 2, last: 2, step: 1 },
        flags: Flags::WRITE.and(Flags::FAST),
        group: Group::RateLimit,
        since: "0.1.0",
        complexity: "O(n) in the entries given back",
        summary: "Give spent cost back to a key, never above its limit.",
        subcommands: &[],
        handler: Handler::Keyed(|request, ground, reply| {
            if names_tenant(request) {
                return refund_tenant(request, ground, reply);
            }
            let plan = refund_plan(request)?;
            ground.transact(request, |view| refund_key(view, plan, reply))
        }),
    },
    Spec {
        name: "RL.RESET",
        arity: Arity::at_least(2),
        keys: Keys::REST,
        flags: Flags::WRITE.and(Flags::FAST),
        group: Group::RateLimit,
        since: "0.1.0",
        complexity: "O(n) in the keys",
        summary: "Forget what was spent under the keys.",
        subcommands: &[],
        handler: Handler::Keyed(|request, ground, reply| {
            if names_tenant(request) && request.args.len() > 2 {
                return reset_tenant(request, ground, reply);
            }
            let plan = reset_plan(request)?;
            ground.transact(request, |view| reset(view, plan, reply))
        }),
    },
];

/// What RL.LIMIT asks.
#[derive(Clone, Copy)]
struct Limit<'a> {
    key: KeyRef<'a>,
    quota: Quota,
    cost: Cost,
    spend: bool,
    /// Live limiters must not grow either: memory is well over its bound.
    overfull: bool,
}

fn limit_plan<'a>(request: &Request<'a>) -> Result<Limit<'a>, Error> {
    let words = [request.word(2), request.word(3)];
    let log_entries_max = request.service.runtime().log_entries_max();
    let is_bare = request.args.len() == Options::FROM;
    let known = if is_bare { request.last_quota.of(words, log_entries_max) } else { None };
    let (quota, options) = if let Some(quota) = known {
        (quota, Options::NONE)
    } else {
        let (quota, options) = quota(request, words, log_entries_max)?;
        if is_bare {
            request.last_quota.keep(words, quota);
        }
        (quota, options)
    };
    let overfull = request.service.engine().is_overfull();
    Ok(Limit { key: request.keys[0], quota, cost: options.cost, spend: !options.peek, overfull })
}

/// Reads what RL.LIMIT is asked with.
fn quota(
    request: &Request<'_>,
    [limit, span]: [&[u8]; 2],
    log_entries_max: u32,
) -> Result<(Quota, Options), Error> {
    let limit = number("limit", limit)?;
    let window = window("window", span)?;
    let options = Options::parse(request)?;
    let algorithm = options.algorithm.unwrap_or(Algorithm::SlidingLog);
    if options.align.is_some() && algorithm != Algorithm::FixedWindow {
        let text = format!("{} has no windows to align, only fixed-window has", algorithm.name());
        return Err(Error::argument("ALIGN", text));
    }
    let quota = Quota::new(algorithm, limit, window)
        .and_then(|quota| quota.with_burst(options.burst))
        .and_then(|quota| quota.with_log_entries_max(log_entries_max))
        .map_err(|error| Error::text(error.to_string()))?
        .with_align(options.align.unwrap_or(Align::Epoch));
    Ok((quota, options))
}

fn limit(view: &mut View<'_>, plan: Limit<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let Limit { key, quota, cost, spend, overfull } = plan;
    let decision = if !spend || cost == Cost::ZERO {
        let now = view.now();
        match view.look(key) {
            Some(found) => peek(&quota, state(found.value)?, cost, now),
            None => peek(&quota, &State::new(&quota, now), cost, now),
        }
    } else if overfull {
        return Err(Error::OutOfMemory);
    } else {
        spend_on(view, key, &quota, cost)?
    };
    view.count_decision(key, decision.is_allowed());
    answer(&decision, reply);
    Ok(())
}

fn spend_on(
    view: &mut View<'_>,
    key: KeyRef<'_>,
    quota: &Quota,
    cost: Cost,
) -> Result<Decision, Error> {
    view.update(
        key,
        |now| Value::Limit(State::new(quota, now)),
        |value, now| Ok(spend(quota, state_mut(value)?, cost, now)),
    )
}

/// Such a request means the buckets of a tenant's policy.
fn names_tenant(request: &Request<'_>) -> bool {
    request.word(1).eq_ignore_ascii_case(b"TENANT")
}

fn refund_plan<'a>(request: &Request<'a>) -> Result<(KeyRef<'a>, Cost), Error> {
    if !request.word(1).eq_ignore_ascii_case(b"KEY") {
        let right = "KEY key n, or TENANT tenant endpoint ...";
        return Err(Error::bad_word("RL.REFUND", request.word(1), right));
    }
    if request.args.len() != 4 {
        return Err(Error::wrong_arity("RL.REFUND"));
    }
    Ok((request.keys[0], Cost(number("n", request.word(3))?)))
}

/// Answers how much was really given back.
fn refund_key(
    view: &mut View<'_>,
    (key, cost): (KeyRef<'_>, Cost),
    reply: &mut Reply<'_>,
) -> Result<(), Error> {
    let given = view.edit(key, |value, now| {
        let state = state_mut(value)?;
        let given = refund(state, cost, now);
        let kept = if given == 0 {
            Kept::Unchanged
        } else {
            Kept::Changed { expires: Expires::At(state.expires_at()) }
        };
        Ok::<_, Error>((given, kept))
    })?;
    reply.integer(i64::try_from(given.unwrap_or(0)).unwrap_or(i64::MAX));
    Ok(())
}

/// `RL.RESET key [key ...]`, or with `KEY` before the keys.
fn reset_plan<'a>(request: &Request<'a>) -> Result<Vec<KeyRef<'a>>, Error> {
    let named = request.keys.len() > 1 && request.word(1).eq_ignore_ascii_case(b"KEY");
    Ok(request.keys.iter().skip(usize::from(named)).copied().collect())
}

/// Answers how many keys had something to forget. Only limiters are forgotten.
fn reset(view: &mut View<'_>, keys: Vec<KeyRef<'_>>, reply: &mut Reply<'_>) -> Result<(), Error> {
    for key in &keys {
        if let Some(found) = view.look(*key) {
            state(found.value)?;
        }
    }
    let forgotten = keys.into_iter().filter(|key| view.remove(*key)).count();
    reply.integer(forgotten as i64);
    Ok(())
}

/// The option words of RL.LIMIT, in any order and case.
struct Options {
    algorithm: Option<Algorithm>,
    align: Option<Align>,
    burst: u64,
    cost: Cost,
    peek: bool,
}

impl Options {
    const USAGE: &'static str = "ALGORITHM name, ALIGN epoch|first, BURST n, COST n or PEEK";

    /// The place of the first one.
    const FROM: usize = 4;

    const NONE: Self =
        Self { algorithm: None, align: None, burst: 0, cost: Cost::ONE, peek: false };

    fn parse(request: &Request<'_>) -> Result<Self, Error> {
        let mut options = Self::NONE;
        let mut at = Self::FROM;
        while let Some(word) = request.args.get(at) {
            if word.eq_ignore_ascii_case(b"PEEK") {
                options.peek = true;
                at += 1;
                continue;
            }
            let known = [b"COST".as_slice(), b"BURST", b"ALGORITHM", b"ALIGN"]
                .into_iter()
                .position(|name| name.eq_ignore_ascii_case(word))
                .ok_or_else(|| Error::bad_word("RL.LIMIT", word, Self::USAGE))?;
            let value = request
                .args
                .get(at + 1)
                .ok_or_else(|| Error::missing_value("RL.LIMIT", word, Self::USAGE))?;
            match known {
                0 => options.cost = Cost(number("COST", value)?),
                1 => options.burst = number("BURST", value)?,
                2 => options.algorithm = Some(algorithm(value)?),
                _ => options.align = Some(align(value)?),
            }
            at += 2;
        }
        Ok(options)
    }
}

fn algorithm(word: &[u8]) -> Result<Algorithm, Error> {
    Algorithm::parse(word).ok_or_else(|| {
        Error::bad_argument("ALGORITHM", word, &format!("one of {}", Algorithm::NAMES))
    })
}

fn align(word: &[u8]) -> Result<Align, Error> {
    Align::parse(word).ok_or_else(|| Error::bad_argument("ALIGN", word, "epoch or first"))
}

/// A whole number that is not negative and fits a signed reply.
pub(super) fn number(name: &'static str, word: &[u8]) -> Result<u64, Error> {
    parse_u64(word)
        .filter(|number| i64::try_from(*number).is_ok())
        .ok_or_else(|| Error::bad_argument(name, word, "a whole number from 0 to 2^63-1"))
}

pub(super) fn window(name: &'static str, word: &[u8]) -> Result<Duration, Error> {
    Duration::parse(word)
        .map_err(|error: ParseDurationError| Error::bad_argument(name, word, &error.to_string()))
}

fn state(value: &Value) -> Result<&State, Error> {
    value.as_limit().ok_or(Error::WrongType)
}

pub(super) fn state_mut(value: &mut Value) -> Result<&mut State, Error> {
    value.as_limit_mut().ok_or(Error::WrongType)
}

fn answer(decision: &Decision, reply: &mut Reply<'_>) {
    reply.integers(&[
        i64::from(!decision.is_allowed()),
        decision.limit as i64,
        decision.remaining as i64,
        decision.retry_after_ms(),
        decision.reset_after_ms(),
    ]);
}
