//! The commands that wait for an element or a member: BLPOP, BLMOVE, BZPOPMIN and the like.
//!
//! Each reads here what it wishes for; `waiting.rs` does the rest, by the same functions with
//! which the commands that do not wait take it. As from 7.2 on, scripts may give them, too.

use super::list_ends::{self, TWO};
use super::lists::list;
use super::request::Request;
use super::sorted::{self, sorted};
use super::spec::{Arity, Flags, Handler, Keys, Spec};
use super::waiting::{Plan, Wish, read_timeout};
use crate::collection::{Direction, End};
use crate::protocol::Error;

const WAITS: Flags = Flags::WRITE.and(Flags::BLOCKING);
const WAITS_FAST: Flags = WAITS.and(Flags::FAST);
const STORES: Flags = WAITS.and(Flags::DENYOOM);

/// All arguments but the last, which is the time.
const ALL_BUT_LAST: Keys = Keys::Range { first: 1, last: -2, step: 1 };
/// Counted behind the time.
const COUNTED: Keys = Keys::Counted { count: 2, first: None };

pub(super) const SPECS: &[Spec] = &[
    Spec {
        since: "6.2.0",
        keys: TWO,
        summary: "Move an element from one list to another, and wait for one.",
        handler: Handler::Blocking(|request| shift(request, list_ends::read_ends(request)?, 5)),
        ..list("BLMOVE", Arity::exactly(6), STORES)
    },
    Spec {
        since: "7.0.0",
        keys: COUNTED,
        complexity: "O(n) in the keys and in the elements returned",
        summary: "Take elements from the first of several lists that has any, and wait for some.",
        handler: Handler::Blocking(|request| {
            plan(request, Wish::Elements(list_ends::read_counted(request, 2)?), 1)
        }),
        ..list("BLMPOP", Arity::at_least(5), WAITS)
    },
    Spec {
        since: "2.0.0",
        keys: ALL_BUT_LAST,
        complexity: "O(n) in the keys",
        summary: "Take an element from the left end of a list, and wait for one.",
        handler: Handler::Blocking(|request| last(request, Wish::Element(End::Left))),
        ..list("BLPOP", Arity::at_least(3), WAITS)
    },
    Spec {
        since: "2.0.0",
        keys: ALL_BUT_LAST,
        complexity: "O(n) in the keys",
        summary: "Take an element from the right end of a list, and wait for one.",
        handler: Handler::Blocking(|request| last(request, Wish::Element(End::Right))),
        ..list("BRPOP", Arity::at_least(3), WAITS)
    },
    Spec {
        since: "2.2.0",
        keys: TWO,
        summary: "Move an element from the right end of a list to the left end of another, and \
                  wait for one.",
        handler: Handler::Blocking(|request| shift(request, (End::Right, End::Left), 3)),
        ..list("BRPOPLPUSH", Arity::exactly(4), STORES)
    },
    Spec {
        since: "7.0.0",
        complexity: "O(k + m log n) for k keys and m members popped",
        summary: "Pop members from the first sorted set that has any, and wait for some.",
        handler: Handler::Blocking(|request| {
            let (from, count) = sorted::read_counted(request, 2)?;
            plan(request, Wish::Members { from, count }, 1)
        }),
        ..sorted("BZMPOP", Arity::at_least(5), COUNTED, WAITS)
    },
    Spec {
        since: "5.0.0",
        summary: "Pop the member with the highest score, and wait for one.",
        handler: Handler::Blocking(|request| last(request, Wish::Member(Direction::Descending))),
        ..sorted("BZPOPMAX", Arity::at_least(3), ALL_BUT_LAST, WAITS_FAST)
    },
    Spec {
        since: "5.0.0",
        summary: "Pop the member with the lowest score, and wait for one.",
        handler: Handler::Blocking(|request| last(request, Wish::Member(Direction::Ascending))),
        ..sorted("BZPOPMIN", Arity::at_least(3), ALL_BUT_LAST, WAITS_FAST)
    },
];

/// The time stands at this place.
fn plan(request: &Request<'_>, wish: Wish, time_at: usize) -> Result<Plan, Error> {
    Ok(Plan { wish, timeout: read_timeout(request.word(time_at))? })
}

fn last(request: &Request<'_>, wish: Wish) -> Result<Plan, Error> {
    plan(request, wish, request.args.len().saturating_sub(1))
}

fn shift(request: &Request<'_>, (taken, put): (End, End), time_at: usize) -> Result<Plan, Error> {
    plan(request, Wish::Move { to: request.word(2).into(), taken, put }, time_at)
}
