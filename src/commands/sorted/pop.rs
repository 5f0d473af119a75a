//! Members taken from an end of a sorted set and answered: ZPOPMIN, ZPOPMAX, ZMPOP.

use std::ops::Range;

use super::super::request::Request;
use super::super::spec::{Arity, Flags, KeyList, Keys, Spec, keyed};
use super::super::strings::WRITE;
use super::bounds::Limit;
use super::{Shape, show, sorted};
use crate::collection::{Direction, SortedSet};
use crate::engine::{KeyRef, View};
use crate::protocol::{Error, Reply, parse_i64};

pub(in super::super) const SPECS: &[Spec] = &[
    Spec {
        since: "7.0.0",
        complexity: "O(k + m log n) for k keys and m members popped",
        summary: "Pop members from the first sorted set that has any.",
        handler: keyed!(zmpop_plan, zmpop),
        ..sorted("ZMPOP", Arity::at_least(4), Keys::Counted { count: 1, first: None }, Flags::WRITE)
    },
    Spec {
        since: "5.0.0",
        complexity: "O(m log n) for m members popped",
        summary: "Pop the members with the highest scores.",
        handler: keyed!(|request| pop_plan(request, Direction::Descending), zpop),
        ..sorted("ZPOPMAX", Arity::at_least(2), Keys::ONE, WRITE)
    },
    Spec {
        since: "5.0.0",
        complexity: "O(m log n) for m members popped",
        summary: "Pop the members with the lowest scores.",
        handler: keyed!(|request| pop_plan(request, Direction::Ascending), zpop),
        ..sorted("ZPOPMIN", Arity::at_least(2), Keys::ONE, WRITE)
    },
];

/// Takes up to `count` members, the lowest where ascending and else the highest, after `answer`
/// has been shown them by their ranks. False, and no answer, where there is no set.
fn pop(
    view: &mut View<'_>,
    key: KeyRef<'_>,
    (from, count): (Direction, usize),
    answer: impl FnOnce(&SortedSet, Range<usize>),
) -> Result<bool, Error> {
    let popped = view.change_existing::<SortedSet, _>(key, |set| {
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        let ranks = Limit { offset: 0, count }.of(0..set.len(), from);
        answer(set, ranks.clone());
        let changed = !ranks.is_empty();
        set.remove_ranks(ranks);
        Ok(((), changed))
    })?;
    Ok(popped.is_some())
}

/// What ZPOPMIN and ZPOPMAX ask; a count that is not given is answered otherwise than one.
#[derive(Clone, Copy)]
struct Popping<'a> {
    key: KeyRef<'a>,
    from: Direction,
    count: Option<usize>,
}

fn pop_plan<'a>(request: &Request<'a>, from: Direction) -> Result<Popping<'a>, Error> {
    if request.args.len() > 3 {
        return Err(Error::Syntax);
    }
    let count = request.args.get(2).map(|word| {
        let count = parse_i64(word).and_then(|count| usize::try_from(count).ok());
        count.ok_or(Error::NotPositive)
    });
    Ok(Popping { key: request.keys[0], from, count: count.transpose()? })
}

fn zpop(view: &mut View<'_>, popping: Popping<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let Popping { key, from, count } = popping;
    let shape = if count.is_some() { Shape::with_scores(reply) } else { Shape::Flat };
    let answer = |set: &SortedSet, ranks| show(set, ranks, from, shape, reply);
    if !pop(view, key, (from, count.unwrap_or(1)), answer)? {
        reply.array(0);
    }
    Ok(())
}

/// What ZMPOP asks.
struct PoppingFirst<'a> {
    keys: KeyList<'a>,
    from: Direction,
    count: usize,
}

fn zmpop_plan<'a>(request: &Request<'a>) -> Result<PoppingFirst<'a>, Error> {
    let (from, count) = read_counted(request, 1)?;
    Ok(PoppingFirst { keys: request.keys.clone(), from, count })
}

/// `numkeys key [key ...] MIN | MAX [COUNT count]` from this place on; the keys are those of the
/// request.
pub(in super::super) fn read_counted(
    request: &Request<'_>,
    at: usize,
) -> Result<(Direction, usize), Error> {
    let positive = |at, name| {
        let number = parse_i64(request.word(at)).and_then(|number| usize::try_from(number).ok());
        number
            .filter(|number| *number > 0)
            .ok_or_else(|| Error::text(format!("{name} should be greater than 0")))
    };
    let keys = positive(at, "numkeys")?;
    let words = request.args.skip(at + 1).skip(keys);
    let from = match words.get(0) {
        Some(word) if word.eq_ignore_ascii_case(b"MIN") => Direction::Ascending,
        Some(word) if word.eq_ignore_ascii_case(b"MAX") => Direction::Descending,
        Some(_) | None => return Err(Error::Syntax),
    };
    let count = match (words.get(1), words.len()) {
        (None, _) => 1,
        (Some(word), 3) if word.eq_ignore_ascii_case(b"COUNT") => positive(at + keys + 3, "count")?,
        (Some(_), _) => return Err(Error::Syntax),
    };
    Ok((from, count))
}

fn zmpop(view: &mut View<'_>, asked: PoppingFirst<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    for key in asked.keys {
        if pop_some(view, key, (asked.from, asked.count), reply)? {
            return Ok(());
        }
    }
    reply.null_array();
    Ok(())
}

/// Pops members and answers the key, and them in pairs. False, and no answer, where there is no
/// set.
pub(in super::super) fn pop_some(
    view: &mut View<'_>,
    key: KeyRef<'_>,
    (from, count): (Direction, usize),
    reply: &mut Reply<'_>,
) -> Result<bool, Error> {
    pop(view, key, (from, count), |set, ranks| {
        reply.array(2);
        reply.bulk(key.bytes());
        show(set, ranks, from, Shape::Pairs, reply);
    })
}

/// Pops a member and answers the key, it, and its score. False, and no answer, where there is no
/// set.
pub(in super::super) fn pop_one(
    view: &mut View<'_>,
    key: KeyRef<'_>,
    from: Direction,
    reply: &mut Reply<'_>,
) -> Result<bool, Error> {
    pop(view, key, (from, 1), |set, ranks| {
        reply.array(3);
        reply.bulk(key.bytes());
        set.visit(ranks, from, |member, score| Shape::Flat.member(member, score, reply));
    })
}
