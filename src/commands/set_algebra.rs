//! Sets made of sets: SINTER, SDIFF, SUNION, their forms that store, and SINTERCARD.
//!
//! All sets are looked at before anything is answered, so that one key of another type is an
//! error whatever the others hold. A missing key is an empty set. What is stored replaces
//! whatever stood under the key; an empty result removes it.

use super::request::Request;
use super::sets::set;
use super::spec::{Arity, Flags, KeyList, Keys, Spec, keyed};
use super::strings::STORE;
use crate::collection::{Member, Set, difference, intersection, union};
use crate::engine::View;
use crate::protocol::{Error, Reply, parse_i64};

const READ_SLOW: Flags = Flags::READONLY.and(Flags::SLOW);
const STORE_SLOW: Flags = STORE.and(Flags::SLOW);

const COMPLEXITY: &str = "O(n) in the members of all sets";
const COMPLEXITY_INTER: &str = "O(n*m) in the members of the smallest set and the sets";

pub(super) const SPECS: &[Spec] = &[
    Spec {
        complexity: COMPLEXITY,
        summary: "List what the first set has and the others have not.",
        handler: keyed!(difference_plan, list),
        ..set("SDIFF", Arity::at_least(2), Keys::REST, READ_SLOW)
    },
    Spec {
        complexity: COMPLEXITY,
        summary: "Store what the first set has and the others have not.",
        handler: keyed!(difference_plan, store),
        ..set("SDIFFSTORE", Arity::at_least(3), Keys::REST, STORE_SLOW)
    },
    Spec {
        complexity: COMPLEXITY_INTER,
        summary: "List what all of the sets have.",
        handler: keyed!(intersection_plan, list),
        ..set("SINTER", Arity::at_least(2), Keys::REST, READ_SLOW)
    },
    Spec {
        since: "7.0.0",
        complexity: COMPLEXITY_INTER,
        summary: "Count what all of the sets have.",
        handler: keyed!(sintercard_plan, sintercard),
        ..set("SINTERCARD", Arity::at_least(3), COUNTED, READ_SLOW)
    },
    Spec {
        complexity: COMPLEXITY_INTER,
        summary: "Store what all of the sets have.",
        handler: keyed!(intersection_plan, store),
        ..set("SINTERSTORE", Arity::at_least(3), Keys::REST, STORE_SLOW)
    },
    Spec {
        complexity: COMPLEXITY,
        summary: "List what any of the sets has.",
        handler: keyed!(union_plan, list),
        ..set("SUNION", Arity::at_least(2), Keys::REST, READ_SLOW)
    },
    Spec {
        complexity: COMPLEXITY,
        summary: "Store what any of the sets has.",
        handler: keyed!(union_plan, store),
        ..set("SUNIONSTORE", Arity::at_least(3), Keys::REST, STORE_SLOW)
    },
];

const COUNTED: Keys = Keys::Counted { count: 1, first: None };

#[derive(Clone, Copy)]
enum Combine {
    Difference,
    Intersection,
    Union,
}

impl Combine {
    /// Of sets in their order; `None` is an empty one.
    fn members<'s>(self, sets: &[Option<&'s Set>], seed: u64) -> Vec<Member<'s>> {
        let there: Vec<&Set> = sets.iter().copied().flatten().collect();
        match (self, sets) {
            (Self::Difference, [Some(first), ..]) => difference(first, &there[1..], seed),
            (Self::Intersection, _) if there.len() == sets.len() => intersection(&there).collect(),
            (Self::Union, _) => union(&there, seed),
            (Self::Difference | Self::Intersection, _) => Vec::new(),
        }
    }
}

/// How to combine the sets of which keys.
type Combination<'a> = (Combine, KeyList<'a>);

fn difference_plan<'a>(request: &Request<'a>) -> Result<Combination<'a>, Error> {
    Ok((Combine::Difference, request.all_keys()?))
}

fn intersection_plan<'a>(request: &Request<'a>) -> Result<Combination<'a>, Error> {
    Ok((Combine::Intersection, request.all_keys()?))
}

fn union_plan<'a>(request: &Request<'a>) -> Result<Combination<'a>, Error> {
    Ok((Combine::Union, request.all_keys()?))
}

fn list(
    view: &mut View<'_>,
    (combine, keys): Combination<'_>,
    reply: &mut Reply<'_>,
) -> Result<(), Error> {
    let seed = view.dice()();
    let members = combine.members(&view.read_collections(&keys)?, seed);
    reply.set(members.len());
    for member in members {
        reply.bulk(member);
    }
    Ok(())
}

fn store(
    view: &mut View<'_>,
    (combine, keys): Combination<'_>,
    reply: &mut Reply<'_>,
) -> Result<(), Error> {
    let seed = view.dice()();
    let (to, from) = (keys[0], &keys[1..]);
    let mut stored = Set::new(to.hash());
    for member in combine.members(&view.read_collections(from)?, seed) {
        stored.add(&member);
    }
    reply.integer(stored.len() as i64);
    view.put_collection(to, stored);
    Ok(())
}

/// The sets, and after how many members the count ends.
type Counting<'a> = (KeyList<'a>, usize);

fn sintercard_plan<'a>(request: &Request<'a>) -> Result<Counting<'a>, Error> {
    let count = parse_i64(request.word(1)).and_then(|count| usize::try_from(count).ok());
    let count = count.filter(|count| *count > 0);
    let count = count.ok_or_else(|| Error::text("numkeys should be greater than 0"))?;
    if count > request.args.len() - 2 {
        return Err(Error::text("Number of keys can't be greater than number of args"));
    }
    let mut limit = 0;
    let mut options = request.args.skip(2 + count).iter();
    while let Some(word) = options.next() {
        let value = options.next().filter(|_| word.eq_ignore_ascii_case(b"LIMIT"));
        let value = parse_i64(value.ok_or(Error::Syntax)?);
        let value = value.and_then(|value| usize::try_from(value).ok());
        limit = value.ok_or_else(|| Error::text("LIMIT can't be negative"))?;
    }
    Ok((request.keys.clone(), if limit == 0 { usize::MAX } else { limit }))
}

fn sintercard(
    view: &mut View<'_>,
    (keys, limit): Counting<'_>,
    reply: &mut Reply<'_>,
) -> Result<(), Error> {
    let sets: Option<Vec<&Set>> = view.read_collections(&keys)?.into_iter().collect();
    let count = sets.map_or(0, |sets| intersection(&sets).take(limit).count());
    reply.integer(count as i64);
    Ok(())
}
