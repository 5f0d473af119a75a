//! ZRANDMEMBER: members chosen by dice.

use super::super::request::Request;
use super::super::spec::{Arity, Flags, Keys, Spec, keyed};
use super::{Shape, show, sorted};
use crate::collection::{Direction, SortedSet, one_place, places as places_of};
use crate::engine::{KeyRef, View};
use crate::protocol::{Error, Reply, parse_i64};

/// Members of one answer that may repeat: a request of a few bytes must not fill the memory.
const REPEATED_MAX: i64 = 1 << 20;

pub(in super::super) const SPECS: &[Spec] = &[Spec {
    since: "6.2.0",
    complexity: "O(m log n) for m members returned",
    summary: "Return members chosen at random.",
    handler: keyed!(plan, zrandmember),
    ..sorted("ZRANDMEMBER", Arity::at_least(2), Keys::ONE, Flags::READONLY)
}];

/// What a request asks for.
#[derive(Clone, Copy)]
struct Asked<'a> {
    key: KeyRef<'a>,
    /// Without it, one member and no array; negative where members may repeat.
    count: Option<i64>,
    with_scores: bool,
}

fn plan<'a>(request: &Request<'a>) -> Result<Asked<'a>, Error> {
    let key = request.keys[0];
    let Some(count) = request.args.get(2) else {
        return Ok(Asked { key, count: None, with_scores: false });
    };
    let count = parse_i64(count).ok_or(Error::NotInteger)?;
    let with_scores = match (request.args.get(3), request.args.len()) {
        (None, _) => false,
        (Some(word), 4) if word.eq_ignore_ascii_case(b"WITHSCORES") => true,
        (Some(_), _) => return Err(Error::Syntax),
    };
    if count < -REPEATED_MAX || with_scores && count > i64::MAX / 2 {
        return Err(Error::OutOfRange);
    }
    Ok(Asked { key, count: Some(count), with_scores })
}

fn zrandmember(view: &mut View<'_>, asked: Asked<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let members = view.read_collection::<SortedSet>(asked.key)?.map(SortedSet::len);
    let places = match (members, asked.count) {
        (None, None) => {
            reply.null();
            return Ok(());
        }
        (None, Some(_)) => {
            reply.array(0);
            return Ok(());
        }
        (Some(members), None) => vec![one_place(members, &mut view.dice())],
        (Some(members), Some(count)) if count < 0 => {
            let mut dice = view.dice();
            (count..0).map(|_| one_place(members, &mut dice)).collect()
        }
        (Some(members), Some(count)) => {
            places_of(members, usize::try_from(count).unwrap_or(usize::MAX), &mut view.dice())
        }
    };
    let Some(set) = view.look(asked.key).and_then(|found| found.value.as_collection()) else {
        unreachable!("it was there, and nothing has been changed since")
    };
    answer(set, &places, &asked, reply);
    Ok(())
}

fn answer(set: &SortedSet, places: &[usize], asked: &Asked<'_>, reply: &mut Reply<'_>) {
    let shape = Shape::of(asked.with_scores, reply);
    if places.len() == set.len() && asked.count.is_some_and(|count| count >= 0) {
        return show(set, 0..set.len(), Direction::Descending, shape, reply);
    }
    if asked.count.is_some() {
        shape.head(places.len(), reply);
    }
    for place in places {
        set.visit(*place..place + 1, Direction::Ascending, |member, score| {
            shape.member(member, score, reply);
        });
    }
}
