//! Sets, read and written: SADD, SREM, SISMEMBER, SMEMBERS, SMOVE and the like.
//!
//! What combines sets stands in `set_algebra.rs`, SPOP and SRANDMEMBER in `random_elements.rs`,
//! SSCAN in `element_scan.rs`. A set that loses its last member is removed by the engine.

use super::hashes::{Words, words_plan};
use super::request::Request;
use super::spec::{Arity, Flags, Group, Keys, Spec, keyed};
use super::strings::{READ, STORE_FAST, WRITE};
use crate::collection::Set;
use crate::engine::{KeyRef, View};
use crate::protocol::{Error, Reply};

/// A row of this family.
pub(super) const fn set(name: &'static str, arity: Arity, keys: Keys, flags: Flags) -> Spec {
    Spec::of(Group::Set, name, arity, keys, flags)
}

/// Two keys, the first arguments.
const TWO: Keys = Keys::Range { first: 1, last: 2, step: 1 };

pub(super) const SPECS: &[Spec] = &[
    Spec {
        complexity: "O(n) in the members named",
        summary: "Add members to a set.",
        handler: keyed!(words_plan, sadd),
        ..set("SADD", Arity::at_least(3), Keys::ONE, STORE_FAST)
    },
    Spec {
        summary: "Count the members of a set.",
        handler: keyed!(Request::key, scard),
        ..set("SCARD", Arity::exactly(2), Keys::ONE, READ)
    },
    Spec {
        summary: "Tell whether a set has a member.",
        handler: keyed!(words_plan, sismember),
        ..set("SISMEMBER", Arity::exactly(3), Keys::ONE, READ)
    },
    Spec {
        complexity: "O(n) in the members",
        summary: "List the members of a set.",
        handler: keyed!(Request::key, smembers),
        ..set("SMEMBERS", Arity::exactly(2), Keys::ONE, Flags::READONLY)
    },
    Spec {
        since: "6.2.0",
        complexity: "O(n) in the members named",
        summary: "Tell which of several members a set has.",
        handler: keyed!(words_plan, smismember),
        ..set("SMISMEMBER", Arity::at_least(3), Keys::ONE, READ)
    },
    Spec {
        summary: "Move a member from one set to another.",
        handler: keyed!(smove_plan, smove),
        ..set("SMOVE", Arity::exactly(4), TWO, WRITE.and(Flags::MAKES_KEYS))
    },
    Spec {
        complexity: "O(n) in the members named",
        summary: "Remove members from a set.",
        handler: keyed!(words_plan, srem),
        ..set("SREM", Arity::at_least(3), Keys::ONE, WRITE)
    },
];

fn sadd(
    view: &mut View<'_>,
    (key, members): Words<'_>,
    reply: &mut Reply<'_>,
) -> Result<(), Error> {
    let added = view.change(key, |set: &mut Set| {
        let added = members.iter().filter(|member| set.add(member)).count();
        Ok((added, added > 0))
    })?;
    reply.integer(added as i64);
    Ok(())
}

fn srem(
    view: &mut View<'_>,
    (key, members): Words<'_>,
    reply: &mut Reply<'_>,
) -> Result<(), Error> {
    let removed = view.change_existing(key, |set: &mut Set| {
        let removed = members.iter().filter(|member| set.remove(member)).count();
        Ok((removed, removed > 0))
    })?;
    reply.integer(removed.unwrap_or(0) as i64);
    Ok(())
}

fn scard(view: &mut View<'_>, key: KeyRef<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    reply.integer(view.read_collection::<Set>(key)?.map_or(0, Set::len) as i64);
    Ok(())
}

fn smembers(view: &mut View<'_>, key: KeyRef<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let set = view.read_collection::<Set>(key)?;
    reply.set(set.map_or(0, Set::len));
    for member in set.into_iter().flat_map(Set::iter) {
        reply.bulk(member);
    }
    Ok(())
}

fn sismember(
    view: &mut View<'_>,
    (key, member): Words<'_>,
    reply: &mut Reply<'_>,
) -> Result<(), Error> {
    let set = view.read_collection::<Set>(key)?;
    reply.integer(set.is_some_and(|set| set.contains(member.name())).into());
    Ok(())
}

fn smismember(
    view: &mut View<'_>,
    (key, members): Words<'_>,
    reply: &mut Reply<'_>,
) -> Result<(), Error> {
    let set = view.read_collection::<Set>(key)?;
    reply.array(members.len());
    for member in members.iter() {
        reply.integer(set.is_some_and(|set| set.contains(member)).into());
    }
    Ok(())
}

/// A member that moves.
struct Move<'a> {
    from: KeyRef<'a>,
    to: KeyRef<'a>,
    member: &'a [u8],
}

fn smove_plan<'a>(request: &Request<'a>) -> Result<Move<'a>, Error> {
    Ok(Move { from: request.keys[0], to: request.keys[1], member: request.word(3) })
}

fn smove(
    view: &mut View<'_>,
    Move { from, to, member }: Move<'_>,
    reply: &mut Reply<'_>,
) -> Result<(), Error> {
    // Both sets are looked at before either is changed.
    let Some(set) = view.look_at_collection::<Set>(from)? else {
        reply.integer(0);
        return Ok(());
    };
    let moves = set.contains(member);
    view.look_at_collection::<Set>(to)?;
    if moves && from.bytes() != to.bytes() {
        // Added first: where memory has no room for a new set, nothing is lost.
        view.change(to, |set: &mut Set| Ok(((), set.add(member))))?;
        view.change_existing(from, |set: &mut Set| Ok(((), set.remove(member))))?;
    }
    reply.integer(moves.into());
    Ok(())
}
