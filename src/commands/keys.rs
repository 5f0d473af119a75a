//! Keys, whatever they hold: DEL, EXISTS, TYPE, RENAME, COPY, MOVE and the like.
//!
//! A limiter's state goes with its key: RENAME, COPY and MOVE carry it and its deadline.

use super::connection::database;
use super::request::Request;
use super::spec::{Arity, Flags, Group, KeyList, Keys, Spec, keyed};
use super::strings::{READ, STORE, WRITE};
use crate::engine::{KeyRef, View};
use crate::protocol::{Error, Reply, parse_i64};

/// A row of this family.
pub(super) const fn generic(name: &'static str, arity: Arity, keys: Keys, flags: Flags) -> Spec {
    Spec::of(Group::Generic, name, arity, keys, flags)
}

/// Two keys, the first arguments.
const TWO: Keys = Keys::Range { first: 1, last: 2, step: 1 };

pub(super) const SPECS: &[Spec] = &[
    Spec {
        since: "6.2.0",
        complexity: "O(n) in the size of the value",
        summary: "Copy a key, its value and its deadline.",
        handler: keyed!(copy_plan, copy),
        ..generic("COPY", Arity::at_least(3), TWO, STORE)
    },
    Spec {
        complexity: "O(n) in the keys",
        summary: "Delete keys.",
        handler: keyed!(Request::all_keys, delete),
        ..generic("DEL", Arity::at_least(2), Keys::REST, Flags::WRITE)
    },
    Spec {
        complexity: "O(n) in the keys",
        summary: "Count how many of the keys exist.",
        handler: keyed!(Request::all_keys, exists),
        ..generic("EXISTS", Arity::at_least(2), Keys::REST, READ)
    },
    Spec {
        summary: "Move a key to another database.",
        handler: keyed!(move_plan, relocate),
        ..generic("MOVE", Arity::exactly(3), Keys::ONE, WRITE)
    },
    Spec {
        summary: "Rename a key, over one that may be there.",
        handler: keyed!(two_keys, rename),
        ..generic("RENAME", Arity::exactly(3), TWO, Flags::WRITE)
    },
    Spec {
        summary: "Rename a key unless the new name is taken.",
        handler: keyed!(two_keys, renamenx),
        ..generic("RENAMENX", Arity::exactly(3), TWO, WRITE)
    },
    Spec {
        since: "3.2.1",
        complexity: "O(n) in the keys",
        summary: "Count keys as used now.",
        handler: keyed!(Request::all_keys, touch),
        ..generic("TOUCH", Arity::at_least(2), Keys::REST, READ)
    },
    Spec {
        summary: "Tell the type of a key's value.",
        handler: keyed!(Request::key, type_of),
        ..generic("TYPE", Arity::exactly(2), Keys::ONE, READ)
    },
    Spec {
        since: "4.0.0",
        complexity: "O(n) in the keys",
        summary: "Delete keys, as DEL does.",
        handler: keyed!(Request::all_keys, delete),
        ..generic("UNLINK", Arity::at_least(2), Keys::REST, WRITE)
    },
];

fn delete(view: &mut View<'_>, keys: KeyList<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let deleted = keys.into_iter().filter(|key| view.remove(*key)).count();
    reply.integer(deleted as i64);
    Ok(())
}

fn exists(view: &mut View<'_>, keys: KeyList<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let there = keys.into_iter().filter(|key| view.glance(*key).is_some()).count();
    reply.integer(there as i64);
    Ok(())
}

fn touch(view: &mut View<'_>, keys: KeyList<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let there = keys.into_iter().filter(|key| view.read(*key).is_some()).count();
    reply.integer(there as i64);
    Ok(())
}

fn type_of(view: &mut View<'_>, key: KeyRef<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    reply.simple(view.glance(key).map_or("none", |found| found.value.type_name()));
    Ok(())
}

type Pair<'a> = (KeyRef<'a>, KeyRef<'a>);

fn two_keys<'a>(request: &Request<'a>) -> Result<Pair<'a>, Error> {
    Ok((request.keys[0], request.keys[1]))
}

fn rename(view: &mut View<'_>, (from, to): Pair<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    carry(view, from, to)?;
    reply.ok();
    Ok(())
}

fn renamenx(view: &mut View<'_>, (from, to): Pair<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    view.look(from).ok_or(Error::NoSuchKey)?;
    let free = view.look(to).is_none();
    if free {
        carry(view, from, to)?;
    }
    reply.integer(i64::from(free));
    Ok(())
}

fn carry(view: &mut View<'_>, from: KeyRef<'_>, to: KeyRef<'_>) -> Result<(), Error> {
    let (value, expires) = view.take(from).ok_or(Error::NoSuchKey)?;
    view.insert(to, value, expires);
    Ok(())
}

/// A database as COPY and MOVE name it.
fn other_database(word: &[u8]) -> Result<usize, Error> {
    let number = parse_i64(word).ok_or(Error::NotInteger)?;
    if i32::try_from(number).is_err() {
        return Err(Error::out_of_range(i32::MIN.into(), i32::MAX.into()));
    }
    database(number)
}

fn move_plan<'a>(request: &Request<'a>) -> Result<(KeyRef<'a>, usize), Error> {
    let to = other_database(request.word(2))?;
    if to == request.db { Err(Error::SameObject) } else { Ok((request.keys[0], to)) }
}

fn relocate(
    view: &mut View<'_>,
    (key, to): (KeyRef<'_>, usize),
    reply: &mut Reply<'_>,
) -> Result<(), Error> {
    let from = view.db();
    view.select(to);
    let taken = view.look(key).is_some();
    view.select(from);
    let moved = if taken { None } else { view.take(key) };
    reply.integer(i64::from(moved.is_some()));
    if let Some((value, expires)) = moved {
        view.select(to);
        view.insert(key, value, expires);
        view.select(from);
    }
    Ok(())
}

/// What COPY asks.
#[derive(Clone, Copy)]
struct Copying<'a> {
    from: KeyRef<'a>,
    to: KeyRef<'a>,
    db: usize,
    replace: bool,
}

fn copy_plan<'a>(request: &Request<'a>) -> Result<Copying<'a>, Error> {
    let (from, to) = (request.keys[0], request.keys[1]);
    let mut plan = Copying { from, to, db: request.db, replace: false };
    let mut at = 3;
    while let Some(word) = request.args.get(at) {
        if word.eq_ignore_ascii_case(b"REPLACE") {
            plan.replace = true;
            at += 1;
        } else if word.eq_ignore_ascii_case(b"DB")
            && let Some(number) = request.args.get(at + 1)
        {
            plan.db = other_database(number)?;
            at += 2;
        } else {
            return Err(Error::Syntax);
        }
    }
    let same = plan.db == request.db && from.bytes() == to.bytes();
    if same { Err(Error::SameObject) } else { Ok(plan) }
}

fn copy(view: &mut View<'_>, plan: Copying<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let home = view.db();
    let exists = view.read(plan.from).is_some();
    view.select(plan.db);
    let free = plan.replace || view.look(plan.to).is_none();
    view.select(home);
    let copied = if exists && free {
        view.look(plan.from).map(|found| (found.value.clone(), found.expires))
    } else {
        None
    };
    reply.integer(i64::from(copied.is_some()));
    if let Some((value, expires)) = copied {
        view.select(plan.db);
        view.insert(plan.to, value, expires);
        view.select(home);
    }
    Ok(())
}
