//! Members taken out of a sorted set: ZREM, and ZREMRANGEBY- rank, score and lex.

use super::super::spec::{Arity, Flags, Handler, Keys, Spec, keyed};
use super::super::strings::WRITE;
use super::bounds::{By, Span};
use super::read::{members_plan, span_plan};
use super::sorted;
use crate::collection::{Direction, SortedSet};
use crate::engine::{KeyRef, View};
use crate::protocol::{Args, Error, Reply};

pub(in super::super) const SPECS: &[Spec] = &[
    Spec {
        complexity: "O(log n) for each member",
        summary: "Remove members.",
        handler: keyed!(members_plan, zrem),
        ..sorted("ZREM", Arity::at_least(3), Keys::ONE, WRITE)
    },
    range("ZREMRANGEBYLEX", "2.8.9", "Remove the members in a range of bytes.", {
        keyed!(|request| span_plan(request, By::Lex), remove)
    }),
    range("ZREMRANGEBYRANK", "2.0.0", "Remove the members in a range of places.", {
        keyed!(|request| span_plan(request, By::Rank), remove)
    }),
    range("ZREMRANGEBYSCORE", "1.2.0", "Remove the members whose scores lie in a range.", {
        keyed!(|request| span_plan(request, By::Score), remove)
    }),
];

/// A row of a command that removes a range.
const fn range(
    name: &'static str,
    since: &'static str,
    summary: &'static str,
    handler: Handler,
) -> Spec {
    Spec {
        since,
        complexity: "O(log n + m) for m members removed",
        summary,
        handler,
        ..sorted(name, Arity::exactly(4), Keys::ONE, Flags::WRITE)
    }
}

fn zrem(
    view: &mut View<'_>,
    (key, members): (KeyRef<'_>, Args<'_>),
    reply: &mut Reply<'_>,
) -> Result<(), Error> {
    let removed = view.change_existing::<SortedSet, _>(key, |set| {
        let removed = members.iter().filter(|member| set.remove(member).is_some()).count();
        Ok((removed, removed > 0))
    })?;
    reply.integer(removed.unwrap_or(0) as i64);
    Ok(())
}

fn remove(
    view: &mut View<'_>,
    (key, span): (KeyRef<'_>, Span<'_>),
    reply: &mut Reply<'_>,
) -> Result<(), Error> {
    let removed = view.change_existing::<SortedSet, _>(key, |set| {
        let ranks = span.ranks(set, Direction::Ascending);
        let removed = ranks.len();
        set.remove_ranks(ranks);
        Ok((removed, removed > 0))
    })?;
    reply.integer(removed.unwrap_or(0) as i64);
    Ok(())
}
