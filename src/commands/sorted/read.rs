//! Questions about a sorted set that are answered by numbers: ZCARD, ZCOUNT, ZSCORE, ZRANK.

use super::super::request::Request;
use super::super::spec::{Arity, Keys, Spec, keyed};
use super::super::strings::READ;
use super::bounds::{By, Span};
use super::sorted;
use crate::collection::{Direction, SortedSet};
use crate::engine::{KeyRef, View};
use crate::protocol::{Args, Error, Reply};

pub(in super::super) const SPECS: &[Spec] = &[
    Spec {
        complexity: "O(1)",
        summary: "Count the members of a sorted set.",
        handler: keyed!(Request::key, zcard),
        ..sorted("ZCARD", Arity::exactly(2), Keys::ONE, READ)
    },
    Spec {
        since: "2.0.0",
        summary: "Count the members whose scores lie in a range.",
        handler: keyed!(|request| span_plan(request, By::Score), count),
        ..sorted("ZCOUNT", Arity::exactly(4), Keys::ONE, READ)
    },
    Spec {
        since: "2.8.9",
        summary: "Count the members in a range of bytes, where all scores are equal.",
        handler: keyed!(|request| span_plan(request, By::Lex), count),
        ..sorted("ZLEXCOUNT", Arity::exactly(4), Keys::ONE, READ)
    },
    Spec {
        since: "6.2.0",
        complexity: "O(n) in the members asked for",
        summary: "Tell the scores of several members.",
        handler: keyed!(members_plan, zmscore),
        ..sorted("ZMSCORE", Arity::at_least(3), Keys::ONE, READ)
    },
    Spec {
        since: "2.0.0",
        summary: "Tell the place of a member from the lowest score on.",
        handler: keyed!(|request| rank_plan(request, Direction::Ascending), rank),
        ..sorted("ZRANK", Arity::between(3, 4), Keys::ONE, READ)
    },
    Spec {
        since: "2.0.0",
        summary: "Tell the place of a member from the highest score on.",
        handler: keyed!(|request| rank_plan(request, Direction::Descending), rank),
        ..sorted("ZREVRANK", Arity::between(3, 4), Keys::ONE, READ)
    },
    Spec {
        complexity: "O(1)",
        summary: "Tell the score of a member.",
        handler: keyed!(members_plan, zscore),
        ..sorted("ZSCORE", Arity::exactly(3), Keys::ONE, READ)
    },
];

fn zcard(view: &mut View<'_>, key: KeyRef<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let members = view.read_collection::<SortedSet>(key)?.map_or(0, SortedSet::len);
    reply.integer(members as i64);
    Ok(())
}

/// A key and the range between the next two words.
pub(super) fn span_plan<'a>(
    request: &Request<'a>,
    by: By,
) -> Result<(KeyRef<'a>, Span<'a>), Error> {
    Ok((request.keys[0], Span::parse(by, request.word(2), request.word(3))?))
}

fn count(
    view: &mut View<'_>,
    (key, span): (KeyRef<'_>, Span<'_>),
    reply: &mut Reply<'_>,
) -> Result<(), Error> {
    let set = view.read_collection::<SortedSet>(key)?;
    let ranks = set.map_or(0..0, |set| span.ranks(set, Direction::Ascending));
    reply.integer(ranks.len() as i64);
    Ok(())
}

/// A key and all words behind it.
pub(super) fn members_plan<'a>(request: &Request<'a>) -> Result<(KeyRef<'a>, Args<'a>), Error> {
    Ok((request.keys[0], request.args.skip(2)))
}

fn answer_score(set: Option<&SortedSet>, member: &[u8], reply: &mut Reply<'_>) {
    match set.and_then(|set| set.score(member)) {
        Some(score) => reply.double(score),
        None => reply.null(),
    }
}

fn zscore(
    view: &mut View<'_>,
    (key, members): (KeyRef<'_>, Args<'_>),
    reply: &mut Reply<'_>,
) -> Result<(), Error> {
    answer_score(view.read_collection(key)?, members.name(), reply);
    Ok(())
}

fn zmscore(
    view: &mut View<'_>,
    (key, members): (KeyRef<'_>, Args<'_>),
    reply: &mut Reply<'_>,
) -> Result<(), Error> {
    let set = view.read_collection(key)?;
    reply.array(members.len());
    members.iter().for_each(|member| answer_score(set, member, reply));
    Ok(())
}

/// What ZRANK asks.
#[derive(Clone, Copy)]
struct Rank<'a> {
    key: KeyRef<'a>,
    member: &'a [u8],
    direction: Direction,
    with_score: bool,
}

fn rank_plan<'a>(request: &Request<'a>, direction: Direction) -> Result<Rank<'a>, Error> {
    let with_score = match request.args.get(3) {
        Some(word) if word.eq_ignore_ascii_case(b"WITHSCORE") => true,
        Some(_) => return Err(Error::Syntax),
        None => false,
    };
    Ok(Rank { key: request.keys[0], member: request.word(2), direction, with_score })
}

fn rank(view: &mut View<'_>, asked: Rank<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let set = view.read_collection::<SortedSet>(asked.key)?;
    let found = set.and_then(|set| {
        let (rank, score) = set.rank(asked.member)?;
        Some(match asked.direction {
            Direction::Ascending => (rank, score),
            Direction::Descending => (set.len() - 1 - rank, score),
        })
    });
    match found {
        Some((rank, score)) => {
            if asked.with_score {
                reply.array(2);
            }
            reply.integer(rank as i64);
            if asked.with_score {
                reply.double(score);
            }
        }
        None if asked.with_score => reply.null_array(),
        None => reply.null(),
    }
    Ok(())
}
