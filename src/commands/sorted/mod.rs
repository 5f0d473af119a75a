//! Sorted sets: members with scores, the heart of sliding logs.
//!
//! A file for each thing that is done with them. Whatever names a range (`bounds.rs`) ends as
//! ranks, and whatever shows members ([`show`]) writes them from the set into the reply.

mod add;
mod algebra;
mod bounds;
mod inputs;
mod pop;
mod random;
mod range;
mod read;
mod remove;

use std::ops::Range;

pub(super) use add::SPECS as ADDING;
pub(super) use algebra::SPECS as ALGEBRA;
pub(super) use pop::{SPECS as POPPING, pop_one, pop_some, read_counted};
pub(super) use random::SPECS as RANDOM;
pub(super) use range::SPECS as RANGES;
pub(super) use read::SPECS as READING;
pub(super) use remove::SPECS as REMOVING;

use super::spec::{Arity, Flags, Group, Keys, Spec};
use crate::collection::{Direction, SortedSet};
use crate::protocol::{Reply, Resp};

/// A row of this family.
pub(super) const fn sorted(name: &'static str, arity: Arity, keys: Keys, flags: Flags) -> Spec {
    let row = Spec::of(Group::SortedSet, name, arity, keys, flags);
    Spec { since: "1.2.0", complexity: "O(log n)", ..row }
}

/// How members are written.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Shape {
    Members,
    /// Members and scores in turn.
    Flat,
    /// Each member with its score in an array of two.
    Pairs,
}

impl Shape {
    /// What WITHSCORES asks for.
    fn with_scores(reply: &Reply<'_>) -> Self {
        match reply.resp() {
            Resp::V2 => Self::Flat,
            Resp::V3 => Self::Pairs,
        }
    }

    fn of(with_scores: bool, reply: &Reply<'_>) -> Self {
        if with_scores { Self::with_scores(reply) } else { Self::Members }
    }

    /// The head of an array of so many members.
    fn head(self, members: usize, reply: &mut Reply<'_>) {
        match self {
            Self::Members | Self::Pairs => reply.array(members),
            Self::Flat => reply.array(members * 2),
        }
    }

    fn member(self, member: &[u8], score: f64, reply: &mut Reply<'_>) {
        if self == Self::Pairs {
            reply.array(2);
        }
        reply.bulk(member);
        if self != Self::Members {
            reply.double(score);
        }
    }
}

/// Answers the members of these ranks, which are there.
fn show(
    set: &SortedSet,
    ranks: Range<usize>,
    direction: Direction,
    shape: Shape,
    reply: &mut Reply<'_>,
) {
    shape.head(ranks.len(), reply);
    set.visit(ranks, direction, |member, score| shape.member(member, score, reply));
}
