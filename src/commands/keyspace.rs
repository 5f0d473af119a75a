//! The keyspace as a whole: SCAN, KEYS, RANDOMKEY, DBSIZE, FLUSHDB, FLUSHALL, SWAPDB.
//!
//! SCAN locks one shard at a time and looks at a bounded number of keys. The others see the
//! whole keyspace at one moment, and hold up everyone for as long as that takes.

use super::connection::database;
use super::glob;
use super::keys::generic;
use super::request::{Ground, Request};
use super::scan_options::{ScanOptions, Scanned, cursor};
use super::spec::{Arity, Flags, Group, Handler, Keys, Spec, keyed};
use super::strings::{READ, WRITE};
use crate::engine::{BUCKETS, Cursor, DATABASES, Flushed, Key, View};
use crate::protocol::{Error, Reply, parse_i64};

const READ_SLOW: Flags = Flags::READONLY.and(Flags::SLOW);
const WRITE_SLOW: Flags = Flags::WRITE.and(Flags::SLOW);

pub(super) const SPECS: &[Spec] = &[
    Spec {
        group: Group::Server,
        complexity: "O(n) in the shards",
        summary: "Count the keys of the database.",
        handler: keyed!(Request::nothing, dbsize),
        ..generic("DBSIZE", Arity::exactly(1), Keys::All, READ)
    },
    Spec {
        group: Group::Server,
        complexity: "O(n) in the keys of all databases",
        summary: "Delete every key of every database.",
        handler: Handler::Keyed(flushall),
        ..generic("FLUSHALL", Arity::at_least(1), Keys::All, WRITE_SLOW)
    },
    Spec {
        group: Group::Server,
        complexity: "O(n) in the keys of the database",
        summary: "Delete every key of the database.",
        handler: Handler::Keyed(flushdb),
        ..generic("FLUSHDB", Arity::at_least(1), Keys::All, WRITE_SLOW)
    },
    Spec {
        complexity: "O(n) in the keys of the database",
        summary: "List the keys that match a pattern.",
        handler: keyed!(keys_plan, keys),
        ..generic("KEYS", Arity::exactly(2), Keys::All, READ_SLOW)
    },
    Spec {
        complexity: "O(n) in the shards",
        summary: "Return some key of the database.",
        handler: keyed!(Request::nothing, randomkey),
        ..generic("RANDOMKEY", Arity::exactly(1), Keys::All, Flags::READONLY)
    },
    Spec {
        since: "2.8.0",
        complexity: "O(n) in COUNT for each call",
        summary: "List the keys of the database bit by bit.",
        handler: Handler::Keyed(scan),
        ..generic("SCAN", Arity::at_least(2), Keys::All, READ_SLOW)
    },
    Spec {
        group: Group::Server,
        since: "4.0.0",
        complexity: "O(n) in the shards",
        summary: "Exchange two databases.",
        handler: keyed!(swapdb_plan, swapdb),
        ..generic("SWAPDB", Arity::exactly(3), Keys::All, WRITE)
    },
];

fn dbsize(view: &mut View<'_>, (): (), reply: &mut Reply<'_>) -> Result<(), Error> {
    reply.integer(view.len() as i64);
    Ok(())
}

fn randomkey(view: &mut View<'_>, (): (), reply: &mut Reply<'_>) -> Result<(), Error> {
    match view.random_key() {
        Some(key) => reply.bulk(key.as_bytes()),
        None => reply.null(),
    }
    Ok(())
}

fn keys_plan<'a>(request: &Request<'a>) -> Result<&'a [u8], Error> {
    Ok(request.word(1))
}

fn keys(view: &mut View<'_>, pattern: &[u8], reply: &mut Reply<'_>) -> Result<(), Error> {
    let mut found = Vec::new();
    view.scan(Cursor::default(), &mut { usize::MAX }, |key, _| {
        if glob::matches(pattern, key) {
            found.push(Key::new(key));
        }
    });
    answer(&found, reply);
    Ok(())
}

fn answer(keys: &[Key], reply: &mut Reply<'_>) {
    reply.array(keys.len());
    for key in keys {
        reply.bulk(key.as_bytes());
    }
}

fn swapdb_plan(request: &Request<'_>) -> Result<(usize, usize), Error> {
    let number = |place, which| {
        let number = parse_i64(request.word(place)).and_then(|number| i32::try_from(number).ok());
        number.ok_or_else(|| Error::text(format!("invalid {which} DB index")))
    };
    let (first, second) = (number(1, "first")?, number(2, "second")?);
    Ok((database(first.into())?, database(second.into())?))
}

fn swapdb(
    view: &mut View<'_>,
    (first, second): (usize, usize),
    reply: &mut Reply<'_>,
) -> Result<(), Error> {
    if first != second {
        let home = view.db();
        view.select(first);
        view.swap(second);
        view.select(home);
    }
    reply.ok();
    Ok(())
}

fn flushdb(
    request: &Request<'_>,
    ground: Ground<'_, '_>,
    reply: &mut Reply<'_>,
) -> Result<(), Error> {
    check_flush_mode(request)?;
    // Freed here, when no shard is locked.
    drop(ground.transact(request, |view| Ok(view.flush()))?);
    reply.ok();
    Ok(())
}

fn flushall(
    request: &Request<'_>,
    ground: Ground<'_, '_>,
    reply: &mut Reply<'_>,
) -> Result<(), Error> {
    check_flush_mode(request)?;
    let gone = ground.transact(request, |view| {
        let home = view.db();
        let flush = |db| {
            view.select(db);
            view.flush()
        };
        let gone: Vec<Flushed> = (0..DATABASES).chain([BUCKETS]).map(flush).collect();
        view.select(home);
        Ok(gone)
    })?;
    drop(gone);
    reply.ok();
    Ok(())
}

/// ASYNC and SYNC are the same here: other connections wait for neither.
fn check_flush_mode(request: &Request<'_>) -> Result<(), Error> {
    let mode = request.word(1);
    let known = mode.eq_ignore_ascii_case(b"ASYNC") || mode.eq_ignore_ascii_case(b"SYNC");
    match request.args.len() {
        1 => Ok(()),
        2 if known => Ok(()),
        _ => Err(Error::Syntax),
    }
}

/// Goes from shard to shard until COUNT keys were looked at, matching or not.
fn scan(
    request: &Request<'_>,
    mut ground: Ground<'_, '_>,
    reply: &mut Reply<'_>,
) -> Result<(), Error> {
    let cursor = cursor(request.word(1))?;
    let options = ScanOptions::read(request.args.skip(2), Scanned::Keys)?;
    let mut count = options.count;
    let mut found = Vec::new();
    let mut next = Some(Cursor::from_number(cursor));
    while let Some(at) = next
        && count > 0
    {
        next = ground.transact_over(at.scope(), request, |view| {
            view.scan(at, &mut count, |key, value| {
                if options.wants(key) && options.wants_type(value.type_name()) {
                    found.push(Key::new(key));
                }
            })
        })?;
    }
    reply.array(2);
    reply.bulk(next.map_or(0, Cursor::number).to_string());
    answer(&found, reply);
    Ok(())
}
