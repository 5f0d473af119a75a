//! Hashes, read and written: HSET, HGET, HGETALL, HDEL and the like.
//!
//! HINCRBY and HINCRBYFLOAT stand in `hash_numbers.rs`, HRANDFIELD in `random_elements.rs`, HSCAN
//! in `element_scan.rs`. A hash that loses its last field is removed by the engine.

use super::request::Request;
use super::spec::{Arity, Flags, Group, Keys, Spec, keyed};
use super::strings::{READ, STORE_FAST, WRITE};
use crate::collection::Hash;
use crate::engine::{KeyRef, View};
use crate::protocol::{Args, Error, Reply};

/// A row of this family.
pub(super) const fn hash(name: &'static str, arity: Arity, flags: Flags) -> Spec {
    Spec { since: "2.0.0", ..Spec::of(Group::Hash, name, arity, Keys::ONE, flags) }
}

pub(super) const SPECS: &[Spec] = &[
    Spec {
        complexity: "O(n) in the fields named",
        summary: "Delete fields of a hash.",
        handler: keyed!(words_plan, hdel),
        ..hash("HDEL", Arity::at_least(3), WRITE)
    },
    Spec {
        summary: "Tell whether a hash has a field.",
        handler: keyed!(field_plan, hexists),
        ..hash("HEXISTS", Arity::exactly(3), READ)
    },
    Spec {
        summary: "Read a field of a hash.",
        handler: keyed!(field_plan, hget),
        ..hash("HGET", Arity::exactly(3), READ)
    },
    Spec {
        complexity: "O(n) in the fields",
        summary: "Read all fields of a hash and their values.",
        handler: keyed!(Request::key, hgetall),
        ..hash("HGETALL", Arity::exactly(2), Flags::READONLY)
    },
    Spec {
        complexity: "O(n) in the fields",
        summary: "List the fields of a hash.",
        handler: keyed!(Request::key, hkeys),
        ..hash("HKEYS", Arity::exactly(2), Flags::READONLY)
    },
    Spec {
        summary: "Count the fields of a hash.",
        handler: keyed!(Request::key, hlen),
        ..hash("HLEN", Arity::exactly(2), READ)
    },
    Spec {
        complexity: "O(n) in the fields named",
        summary: "Read several fields of a hash.",
        handler: keyed!(words_plan, hmget),
        ..hash("HMGET", Arity::at_least(3), READ)
    },
    Spec {
        complexity: "O(n) in the fields named",
        summary: "Set fields of a hash, by HSET's older name.",
        handler: keyed!(pairs_plan, hmset),
        ..hash("HMSET", Arity::at_least(4), STORE_FAST)
    },
    Spec {
        complexity: "O(n) in the fields named",
        summary: "Set fields of a hash.",
        handler: keyed!(pairs_plan, hset),
        ..hash("HSET", Arity::at_least(4), STORE_FAST)
    },
    Spec {
        summary: "Set a field of a hash unless it is there.",
        handler: keyed!(words_plan, hsetnx),
        ..hash("HSETNX", Arity::exactly(4), STORE_FAST)
    },
    Spec {
        since: "3.2.0",
        summary: "Tell the length of a field's value.",
        handler: keyed!(field_plan, hstrlen),
        ..hash("HSTRLEN", Arity::exactly(3), READ)
    },
    Spec {
        complexity: "O(n) in the fields",
        summary: "List the values of a hash.",
        handler: keyed!(Request::key, hvals),
        ..hash("HVALS", Arity::exactly(2), Flags::READONLY)
    },
];

/// A hash, and one of its fields.
type Field<'a> = (KeyRef<'a>, &'a [u8]);

fn field_plan<'a>(request: &Request<'a>) -> Result<Field<'a>, Error> {
    Ok((request.keys[0], request.word(2)))
}

/// A key, and the words behind it.
pub(super) type Words<'a> = (KeyRef<'a>, Args<'a>);

pub(super) fn words_plan<'a>(request: &Request<'a>) -> Result<Words<'a>, Error> {
    Ok((request.keys[0], request.args.skip(2)))
}

/// The words are fields and values in turn.
fn pairs_plan<'a>(request: &Request<'a>) -> Result<Words<'a>, Error> {
    if request.args.len().is_multiple_of(2) {
        words_plan(request)
    } else {
        Err(Error::wrong_arity(&String::from_utf8_lossy(request.args.name())))
    }
}

fn hget(view: &mut View<'_>, (key, field): Field<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    answer(view.read_collection::<Hash>(key)?.and_then(|hash| hash.get(field)), reply);
    Ok(())
}

fn answer(value: Option<&[u8]>, reply: &mut Reply<'_>) {
    match value {
        Some(value) => reply.bulk(value),
        None => reply.null(),
    }
}

fn hmget(
    view: &mut View<'_>,
    (key, fields): Words<'_>,
    reply: &mut Reply<'_>,
) -> Result<(), Error> {
    let hash = view.read_collection::<Hash>(key)?;
    reply.array(fields.len());
    for field in fields.iter() {
        answer(hash.and_then(|hash| hash.get(field)), reply);
    }
    Ok(())
}

fn hexists(
    view: &mut View<'_>,
    (key, field): Field<'_>,
    reply: &mut Reply<'_>,
) -> Result<(), Error> {
    let value = view.read_collection::<Hash>(key)?.and_then(|hash| hash.get(field));
    reply.integer(value.is_some().into());
    Ok(())
}

fn hstrlen(
    view: &mut View<'_>,
    (key, field): Field<'_>,
    reply: &mut Reply<'_>,
) -> Result<(), Error> {
    let value = view.read_collection::<Hash>(key)?.and_then(|hash| hash.get(field));
    reply.integer(value.map_or(0, <[u8]>::len) as i64);
    Ok(())
}

fn hlen(view: &mut View<'_>, key: KeyRef<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    reply.integer(view.read_collection::<Hash>(key)?.map_or(0, Hash::len) as i64);
    Ok(())
}

fn hgetall(view: &mut View<'_>, key: KeyRef<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let hash = view.read_collection::<Hash>(key)?;
    reply.map(hash.map_or(0, Hash::len));
    for (field, value) in hash.into_iter().flat_map(Hash::iter) {
        reply.bulk(field);
        reply.bulk(value);
    }
    Ok(())
}

fn hkeys(view: &mut View<'_>, key: KeyRef<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let hash = view.read_collection::<Hash>(key)?;
    reply.array(hash.map_or(0, Hash::len));
    for (field, _) in hash.into_iter().flat_map(Hash::iter) {
        reply.bulk(field);
    }
    Ok(())
}

fn hvals(view: &mut View<'_>, key: KeyRef<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let hash = view.read_collection::<Hash>(key)?;
    reply.array(hash.map_or(0, Hash::len));
    for (_, value) in hash.into_iter().flat_map(Hash::iter) {
        reply.bulk(value);
    }
    Ok(())
}

fn hset(view: &mut View<'_>, pairs: Words<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    reply.integer(set_pairs(view, pairs)? as i64);
    Ok(())
}

fn hmset(view: &mut View<'_>, pairs: Words<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    set_pairs(view, pairs)?;
    reply.ok();
    Ok(())
}

/// Returns how many of the fields are new.
fn set_pairs(view: &mut View<'_>, (key, pairs): Words<'_>) -> Result<usize, Error> {
    view.change(key, |hash: &mut Hash| {
        let mut words = pairs.iter();
        let mut added = 0;
        while let (Some(field), Some(value)) = (words.next(), words.next()) {
            added += usize::from(hash.set(field, value));
        }
        Ok((added, true))
    })
}

fn hsetnx(view: &mut View<'_>, (key, pair): Words<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let [field, value] = [0, 1].map(|at| pair.get(at).unwrap_or_default());
    let set = view.change(key, |hash: &mut Hash| {
        let set = hash.get(field).is_none() && hash.set(field, value);
        Ok((set, set))
    })?;
    reply.integer(set.into());
    Ok(())
}

fn hdel(view: &mut View<'_>, (key, fields): Words<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let removed = view.change_existing(key, |hash: &mut Hash| {
        let removed = fields.iter().filter(|field| hash.remove(field)).count();
        Ok((removed, removed > 0))
    })?;
    reply.integer(removed.unwrap_or(0) as i64);
    Ok(())
}
