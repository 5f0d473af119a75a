//! MEMORY: what keys and values take.
//!
//! Counted is what the engine charges for entries and their values, the figure that the memory
//! bound is compared with; the allocator's own bookkeeping is not looked into.

use super::call::{Answer, Call};
use super::command;
use super::info_sections::percent;
use super::request::Request;
use super::session::Outcome;
use super::spec::{Arity, Flags, Group, Handler, Keys, Spec, Sub, keyed};
use crate::engine::{KeyRef, View};
use crate::protocol::{Error, Reply, parse_i64};

pub(super) const SPECS: &[Spec] = &[Spec {
    name: "MEMORY",
    arity: Arity::at_least(2),
    keys: Keys::None,
    flags: Flags::SLOW,
    group: Group::Server,
    since: "4.0.0",
    complexity: "O(1) for a key, O(n) in the shards for the rest",
    summary: "Tell what memory is used for.",
    subcommands: &[
        Sub::plain("DOCTOR", Arity::exactly(2), "Return advice on memory.", doctor),
        Sub::plain("HELP", Arity::exactly(2), "Return helpful text.", command::help),
        Sub::plain("PURGE", Arity::exactly(2), "Free what can be freed: nothing is held.", purge),
        Sub {
            keys: Keys::All,
            ..Sub::plain("STATS", Arity::exactly(2), "Return figures of memory.", stats)
        },
        Sub {
            name: "USAGE",
            arity: Arity::at_least(3),
            keys: Keys::Range { first: 2, last: 2, step: 1 },
            summary: "Return the bytes that a key takes.",
            handler: keyed!(usage_plan, usage),
        },
    ],
    handler: Handler::Parent,
}];

/// MEMORY USAGE key [SAMPLES count]: sizes are known, nothing is ever sampled.
fn usage_plan<'a>(request: &Request<'a>) -> Result<KeyRef<'a>, Error> {
    let mut at = 3;
    while let Some(option) = request.args.get(at) {
        match request.args.get(at + 1) {
            Some(count) if option.eq_ignore_ascii_case(b"SAMPLES") => {
                if parse_i64(count).ok_or(Error::NotInteger)? < 0 {
                    return Err(Error::Syntax);
                }
            }
            _ => return Err(Error::Syntax),
        }
        at += 2;
    }
    Ok(request.keys[0])
}

fn usage(view: &mut View<'_>, key: KeyRef<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    match view.look(key) {
        Some(found) => reply.integer(found.charge_bytes as i64),
        None => reply.null(),
    }
    Ok(())
}

fn doctor(call: &mut Call<'_, '_>, reply: &mut Reply<'_>) -> Answer {
    let engine = call.service.engine();
    let (used, max) = (engine.used_bytes(), engine.memory_max());
    reply.verbatim(if max == 0 {
        format!("Keys and values take {used} bytes. There is no bound; set maxmemory to one.\n")
    } else if engine.is_full() {
        format!("Memory is full: keys and values take {used} of {max} bytes. Raise maxmemory.\n")
    } else {
        format!("All is well: keys and values take {used} of {max} bytes.\n")
    });
    Ok(Outcome::Reply)
}

fn purge(_: &mut Call<'_, '_>, reply: &mut Reply<'_>) -> Answer {
    reply.ok();
    Ok(Outcome::Reply)
}

fn stats(call: &mut Call<'_, '_>, reply: &mut Reply<'_>) -> Answer {
    let (facts, stats) = (call.host.facts(), call.stats());
    let keys: usize = stats.databases.iter().map(|database| database.keys).sum();
    let (used, resident) = (stats.used_bytes as i64, facts.resident_bytes as i64);
    let whole = [
        ("peak.allocated", facts.used_peak_bytes as i64),
        ("total.allocated", used),
        ("keys.count", keys as i64),
        ("keys.bytes-per-key", stats.used_bytes.checked_div(keys).unwrap_or(0) as i64),
        ("dataset.bytes", used),
        ("allocator.resident", resident),
        ("fragmentation.bytes", resident - used),
    ];
    let parts = [
        ("peak.percentage", percent(stats.used_bytes as u64, facts.used_peak_bytes as u64)),
        ("fragmentation", percent(facts.resident_bytes, stats.used_bytes as u64) / 100.0),
    ];
    reply.map(whole.len() + parts.len());
    for (name, value) in whole {
        reply.bulk(name);
        reply.integer(value);
    }
    for (name, value) in parts {
        reply.bulk(name);
        reply.double(value);
    }
    Ok(Outcome::Reply)
}
