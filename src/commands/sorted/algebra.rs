//! Sorted sets made of others: ZUNION, ZINTER, ZDIFF, what stores them, and ZINTERCARD.
//!
//! The keys are looked at one after another, those with fewest members first where their order
//! does not matter; that is also the order in which Redis adds up scores. What is common is a
//! list that gets shorter with each key; only the result is a sorted set.

use std::convert::Infallible;

use super::super::request::Request;
use super::super::spec::{Arity, Flags, Keys, Spec, keyed};
use super::super::strings::STORE;
use super::inputs::{Input, Inputs, Options, Takes};
use super::{Shape, show, sorted};
use crate::collection::{Direction, SortedSet};
use crate::engine::{KeyRef, View};
use crate::protocol::{Error, Reply};

const COUNTED: Keys = Keys::Counted { count: 1, first: None };
/// Behind a destination.
const COUNTED_SECOND: Keys = Keys::Counted { count: 2, first: Some(1) };

const READ_SLOW: Flags = Flags::READONLY.and(Flags::SLOW);
const STORE_SLOW: Flags = STORE.and(Flags::SLOW);

const INTERSECTION: &str = "O(nk + m log m) for k keys, the smallest of n members, and m found";
const OTHERS: &str = "O(n log n) in the members of all keys";

pub(in super::super) const SPECS: &[Spec] = &[
    Spec {
        since: "6.2.0",
        complexity: OTHERS,
        summary: "Return the members of the first key that no other has.",
        handler: keyed!(
            |request| Inputs::read(request, 1, Takes::WithScores),
            |view, inputs, reply| answer(view, &inputs, difference, reply)
        ),
        ..sorted("ZDIFF", Arity::at_least(3), COUNTED, READ_SLOW)
    },
    Spec {
        since: "6.2.0",
        complexity: OTHERS,
        summary: "Store the members of the first key that no other has.",
        handler: keyed!(|request| store_plan(request, Takes::Nothing), |view, plan, reply| {
            store(view, &plan, difference, reply)
        }),
        ..sorted("ZDIFFSTORE", Arity::at_least(4), COUNTED_SECOND, STORE_SLOW)
    },
    Spec {
        since: "6.2.0",
        complexity: INTERSECTION,
        summary: "Return the members that all keys have.",
        handler: keyed!(
            |request| Inputs::read(request, 1, Takes::Scores),
            |view, inputs, reply| answer(view, &inputs, intersection, reply)
        ),
        ..sorted("ZINTER", Arity::at_least(3), COUNTED, READ_SLOW)
    },
    Spec {
        since: "7.0.0",
        complexity: INTERSECTION,
        summary: "Count the members that all keys have.",
        handler: keyed!(|request| Inputs::read(request, 1, Takes::Limit), |view, inputs, reply| {
            zintercard(view, &inputs, reply)
        }),
        ..sorted("ZINTERCARD", Arity::at_least(3), COUNTED, READ_SLOW)
    },
    Spec {
        since: "2.0.0",
        complexity: INTERSECTION,
        summary: "Store the members that all keys have.",
        handler: keyed!(|request| store_plan(request, Takes::Weights), |view, plan, reply| {
            store(view, &plan, intersection, reply)
        }),
        ..sorted("ZINTERSTORE", Arity::at_least(4), COUNTED_SECOND, STORE_SLOW)
    },
    Spec {
        since: "6.2.0",
        complexity: OTHERS,
        summary: "Return the members that any of the keys has.",
        handler: keyed!(
            |request| Inputs::read(request, 1, Takes::Scores),
            |view, inputs, reply| answer(view, &inputs, union, reply)
        ),
        ..sorted("ZUNION", Arity::at_least(3), COUNTED, READ_SLOW)
    },
    Spec {
        since: "2.0.0",
        complexity: OTHERS,
        summary: "Store the members that any of the keys has.",
        handler: keyed!(|request| store_plan(request, Takes::Weights), |view, plan, reply| {
            store(view, &plan, union, reply)
        }),
        ..sorted("ZUNIONSTORE", Arity::at_least(4), COUNTED_SECOND, STORE_SLOW)
    },
];

type Members = Vec<(Box<[u8]>, f64)>;

/// Makes a set of the inputs into one that is empty yet.
type Operation = fn(&mut View<'_>, &Inputs<'_>, SortedSet) -> Result<(SortedSet, bool), Error>;

fn answer(
    view: &mut View<'_>,
    inputs: &Inputs<'_>,
    operation: Operation,
    reply: &mut Reply<'_>,
) -> Result<(), Error> {
    let seed = inputs.keys()[0].hash();
    let (set, with_scores) = operation(view, inputs, SortedSet::new(seed))?;
    let shape = Shape::of(with_scores, reply);
    show(&set, 0..set.len(), Direction::Ascending, shape, reply);
    Ok(())
}

fn store_plan<'a>(request: &Request<'a>, takes: Takes) -> Result<(KeyRef<'a>, Inputs<'a>), Error> {
    Ok((request.keys[0], Inputs::read(request, 2, takes)?))
}

fn store(
    view: &mut View<'_>,
    (to, inputs): &(KeyRef<'_>, Inputs<'_>),
    operation: Operation,
    reply: &mut Reply<'_>,
) -> Result<(), Error> {
    let (set, _) = operation(view, inputs, SortedSet::new(to.hash()))?;
    reply.integer(set.len() as i64);
    view.put_collection(*to, set);
    Ok(())
}

fn zintercard(
    view: &mut View<'_>,
    inputs: &Inputs<'_>,
    reply: &mut Reply<'_>,
) -> Result<(), Error> {
    let (members, options) = common(view, inputs)?;
    let counted = match options.limit {
        0 => members.len(),
        limit => members.len().min(limit),
    };
    reply.integer(counted as i64);
    Ok(())
}

/// Numbers of the keys, that with fewest members first; and what the request says besides.
fn by_size<'i>(
    view: &mut View<'_>,
    inputs: &'i Inputs<'_>,
) -> Result<(Vec<usize>, &'i Options), Error> {
    let members = inputs.members(view)?;
    let options = inputs.options.as_ref().map_err(Clone::clone)?;
    let mut numbers: Vec<usize> = (0..members.len()).collect();
    numbers.sort_by_key(|number| members[*number]);
    Ok((numbers, options))
}

fn union(
    view: &mut View<'_>,
    inputs: &Inputs<'_>,
    mut set: SortedSet,
) -> Result<(SortedSet, bool), Error> {
    let (numbers, options) = by_size(view, inputs)?;
    for number in numbers {
        Input::of(view.look(inputs.keys()[number]))?.visit(|member, score| {
            let score = options.weighed(number, score);
            let Ok(_) = set.change(member, |old| {
                let sum = old.map_or(score, |old| options.aggregate.of(old, score));
                Ok::<_, Infallible>(Some(sum))
            });
        });
    }
    Ok((set, options.with_scores))
}

fn intersection(
    view: &mut View<'_>,
    inputs: &Inputs<'_>,
    set: SortedSet,
) -> Result<(SortedSet, bool), Error> {
    let (members, options) = common(view, inputs)?;
    Ok((filled(set, members), options.with_scores))
}

/// The members that all keys have.
fn common<'i>(
    view: &mut View<'_>,
    inputs: &'i Inputs<'_>,
) -> Result<(Members, &'i Options), Error> {
    let (numbers, options) = by_size(view, inputs)?;
    let mut members = Members::new();
    for (place, number) in numbers.into_iter().enumerate() {
        let input = Input::of(view.look(inputs.keys()[number]))?;
        let weighed = |score| options.weighed(number, score);
        if place == 0 {
            input.visit(|member, score| members.push((member.into(), weighed(score))));
            continue;
        }
        members.retain_mut(|(member, sum)| {
            let score = input.score(member).map(weighed);
            *sum = score.map_or(*sum, |score| options.aggregate.of(*sum, score));
            score.is_some()
        });
    }
    Ok((members, options))
}

fn difference(
    view: &mut View<'_>,
    inputs: &Inputs<'_>,
    set: SortedSet,
) -> Result<(SortedSet, bool), Error> {
    inputs.members(view)?;
    let options = inputs.options.as_ref().map_err(Clone::clone)?;
    let mut members = Members::new();
    for (number, key) in inputs.keys().iter().enumerate() {
        let input = Input::of(view.look(*key))?;
        if number == 0 {
            input.visit(|member, score| members.push((member.into(), score)));
        } else {
            members.retain(|(member, _)| input.score(member).is_none());
        }
    }
    Ok((filled(set, members), options.with_scores))
}

fn filled(mut set: SortedSet, members: Members) -> SortedSet {
    for (member, score) in members {
        set.set(&member, score);
    }
    set
}
