//! RL.DEGRADE and RL.SIGNAL: look at the load manager, pin its level, tell it what it cannot see.
//!
//! Both are for operators and answered at any time: under strain and while a script runs for long
//! they are what helps.

use super::call::{Answer, Call};
use super::limits::{number, window};
use super::overload::{SignalStatus, Status};
use super::session::Outcome;
use super::spec::{Arity, Flags, Group, Handler, Keys, Plain, Spec};
use crate::load::{Freshness, Level, Reported, Tier};
use crate::protocol::{Error, Reply};

const FLAGS: Flags = Flags::ADMIN
    .and(Flags::NOSCRIPT)
    .and(Flags::LOADING)
    .and(Flags::STALE)
    .and(Flags::FAST)
    .and(Flags::ALLOW_BUSY);

const fn spec(name: &'static str, arity: Arity, summary: &'static str, handler: Plain) -> Spec {
    Spec {
        name,
        arity,
        keys: Keys::None,
        flags: FLAGS,
        group: Group::RateLimit,
        since: "0.1.0",
        complexity: "O(n) in the signals",
        summary,
        subcommands: &[],
        handler: Handler::Plain(handler),
    }
}

pub(super) const SPECS: &[Spec] = &[
    spec(
        "RL.DEGRADE",
        Arity::between(1, 3),
        "Show the load manager, pin its level, or let it follow its signals again.",
        degrade,
    ),
    spec("RL.SIGNAL", Arity::between(3, 7), "Report the value of a declared signal.", signal),
];

const DEGRADE_USAGE: &str = "STATUS, FORCE level or AUTO";
const SIGNAL_USAGE: &str = "TENANT t or TTL window";

/// `RL.DEGRADE [STATUS | FORCE level | AUTO]`
fn degrade(call: &mut Call<'_, '_>, reply: &mut Reply<'_>) -> Answer {
    let word = call.args.get(1).unwrap_or(b"STATUS");
    let level = call.args.get(2);
    let is = |name: &[u8]| word.eq_ignore_ascii_case(name);
    let overload = call.service.overload();
    match level {
        Some(level) if is(b"FORCE") => {
            overload.force(Some(level_of(level)?), call.now);
            reply.ok();
        }
        None if is(b"FORCE") => {
            return Err(Error::missing_value("RL.DEGRADE", word, "FORCE level"));
        }
        None if is(b"AUTO") => {
            overload.force(None, call.now);
            reply.ok();
        }
        None if is(b"STATUS") => show(&overload.status(call.now), reply),
        Some(extra) if is(b"AUTO") || is(b"STATUS") => {
            return Err(Error::bad_word("RL.DEGRADE", extra, DEGRADE_USAGE));
        }
        Some(_) | None => return Err(Error::bad_word("RL.DEGRADE", word, DEGRADE_USAGE)),
    }
    Ok(Outcome::Reply)
}

fn level_of(word: &[u8]) -> Result<Level, Error> {
    let number = number("level", word).ok().and_then(|number| u8::try_from(number).ok());
    let level = number.and_then(Level::of_number);
    level.ok_or_else(|| Error::bad_argument("level", word, "a whole number from 0 to 3"))
}

/// `RL.SIGNAL name value [TENANT t] [TTL window]`
fn signal(call: &mut Call<'_, '_>, reply: &mut Reply<'_>) -> Answer {
    let [name, value] = [1, 2].map(|place| call.args.get(place).unwrap_or_default());
    let value = std::str::from_utf8(value)
        .ok()
        .and_then(|text| text.parse().ok())
        .ok_or_else(|| Error::bad_argument("value", value, "a finite number, not below 0"))?;
    let mut reported = Reported { name, value, tenant: None, ttl: None };
    let mut at = 3;
    while let Some(word) = call.args.get(at) {
        let missing = || Error::missing_value("RL.SIGNAL", word, SIGNAL_USAGE);
        let value = call.args.get(at + 1).ok_or_else(missing);
        if word.eq_ignore_ascii_case(b"TENANT") {
            reported.tenant = Some(value?);
        } else if word.eq_ignore_ascii_case(b"TTL") {
            reported.ttl = Some(window("TTL", value?)?);
        } else {
            return Err(Error::bad_word("RL.SIGNAL", word, SIGNAL_USAGE));
        }
        at += 2;
    }
    let taken = call.service.overload().report(reported, call.now);
    taken.map_err(|err| Error::text(err.to_string()))?;
    reply.ok();
    Ok(Outcome::Reply)
}

/// A map; `signals` in it are an array of maps.
fn show(status: &Status, reply: &mut Reply<'_>) {
    reply.map(9);
    for (name, level) in [("level", Some(status.level)), ("own_level", Some(status.own_level))] {
        reply.bulk(name);
        write_level(level, reply);
    }
    reply.bulk("forced");
    write_level(status.forced, reply);
    reply.bulk("gives_up");
    reply.bulk(status.level.name());
    reply.bulk("pressure");
    reply.double(rounded(status.estimate));
    reply.bulk("highest");
    write_text(status.highest.as_ref().map(|(name, _)| name.as_str()), reply);
    reply.bulk("admitted");
    reply.double(rounded(status.admit));
    reply.bulk("cut_at");
    write_text(status.cut_at.map(Tier::name), reply);
    reply.bulk("signals");
    reply.array(status.signals.len());
    status.signals.iter().for_each(|signal| show_signal(signal, reply));
}

fn show_signal(signal: &SignalStatus, reply: &mut Reply<'_>) {
    reply.map(6);
    for (name, text) in [
        ("name", signal.name.as_str()),
        ("kind", signal.kind.name()),
        ("state", state(signal.freshness)),
    ] {
        reply.bulk(name);
        reply.bulk(text);
    }
    for (name, number) in [("value", signal.value), ("pressure", signal.pressure)] {
        reply.bulk(name);
        match number {
            Some(number) => reply.double(rounded(number)),
            None => reply.null(),
        }
    }
    reply.bulk("tenants");
    reply.integer(signal.tenants as i64);
}

/// As STATUS, INFO and metrics call it.
pub(super) const fn state(freshness: Freshness) -> &'static str {
    match freshness {
        Freshness::Silent => "silent",
        Freshness::Fresh => "fresh",
        Freshness::Expired(_) => "expired",
    }
}

fn write_level(level: Option<Level>, reply: &mut Reply<'_>) {
    match level {
        Some(level) => reply.integer(i64::from(level.number())),
        None => reply.null(),
    }
}

fn write_text(text: Option<&str>, reply: &mut Reply<'_>) {
    match text {
        Some(text) => reply.bulk(text),
        None => reply.null(),
    }
}

/// Three decimals are enough for people.
fn rounded(number: f64) -> f64 {
    (number * 1_000.0).round() / 1_000.0
}
