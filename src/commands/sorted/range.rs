//! Members shown in order: ZRANGE, its older forms, and ZRANGESTORE.
//!
//! All of them are one command with the same words. The older ones say by their name what is
//! counted and in which direction, and then take no word for it.

use std::ops::Range;

use super::super::request::Request;
use super::super::spec::{Arity, Flags, Handler, Keys, Spec, keyed};
use super::super::strings::STORE;
use super::bounds::{By, Limit, Span};
use super::{Shape, show, sorted};
use crate::collection::{
    Direction::{self, Ascending, Descending},
    SortedSet,
};
use crate::engine::{KeyRef, View};
use crate::protocol::{Error, Reply, parse_i64};

/// The destination and the source.
const TWO: Keys = Keys::Range { first: 1, last: 2, step: 1 };

pub(in super::super) const SPECS: &[Spec] = &[
    range("ZRANGE", "1.2.0", "Return the members in a range.", {
        keyed!(|request| Asked::read(request, Form::free(2)), answer)
    }),
    range("ZRANGEBYLEX", "2.8.9", "Return the members in a range of bytes.", {
        keyed!(|request| Asked::read(request, Form::of(By::Lex, Ascending)), answer)
    }),
    range("ZRANGEBYSCORE", "1.0.5", "Return the members whose scores lie in a range.", {
        keyed!(|request| Asked::read(request, Form::of(By::Score, Ascending)), answer)
    }),
    range("ZREVRANGE", "1.2.0", "Return the members in a range of places, highest first.", {
        keyed!(|request| Asked::read(request, Form::of(By::Rank, Descending)), answer)
    }),
    range("ZREVRANGEBYLEX", "2.8.9", "Return the members in a range of bytes, last first.", {
        keyed!(|request| Asked::read(request, Form::of(By::Lex, Descending)), answer)
    }),
    range(
        "ZREVRANGEBYSCORE",
        "2.2.0",
        "Return the members of a range of scores, highest first.",
        keyed!(|request| Asked::read(request, Form::of(By::Score, Descending)), answer),
    ),
    Spec {
        since: "6.2.0",
        complexity: "O(log n + m log m) for m members stored",
        summary: "Store the members of a range under another key.",
        handler: keyed!(store_plan, store),
        ..sorted("ZRANGESTORE", Arity::at_least(5), TWO, STORE)
    },
];

/// A row of a command that shows a range.
const fn range(
    name: &'static str,
    since: &'static str,
    summary: &'static str,
    handler: Handler,
) -> Spec {
    Spec {
        since,
        complexity: "O(log n + m) for m members returned",
        summary,
        handler,
        ..sorted(name, Arity::at_least(4), Keys::ONE, Flags::READONLY)
    }
}

/// What the name of the command has said already.
#[derive(Clone, Copy)]
struct Form {
    /// Where the first bound stands.
    at: usize,
    by: Option<By>,
    direction: Option<Direction>,
    /// Where the members are stored, no scores are shown.
    shows: bool,
}

impl Form {
    const fn free(at: usize) -> Self {
        Self { at, by: None, direction: None, shows: true }
    }

    const fn of(by: By, direction: Direction) -> Self {
        Self { at: 2, by: Some(by), direction: Some(direction), shows: true }
    }
}

/// What a request asks for.
#[derive(Clone, Copy)]
struct Asked<'a> {
    /// Where the set stands.
    key: KeyRef<'a>,
    span: Span<'a>,
    direction: Direction,
    limit: Limit,
    with_scores: bool,
}

impl<'a> Asked<'a> {
    fn read(request: &Request<'a>, form: Form) -> Result<Self, Error> {
        let Form { mut by, mut direction, .. } = form;
        let (mut limit, mut with_scores) = (Limit::NONE, false);
        let mut at = form.at + 2;
        while let Some(word) = request.args.get(at) {
            let is = |name: &[u8]| word.eq_ignore_ascii_case(name);
            if form.shows && is(b"WITHSCORES") {
                with_scores = true;
            } else if is(b"LIMIT") && request.args.len() > at + 2 {
                let number = |at| parse_i64(request.word(at)).ok_or(Error::NotInteger);
                limit = Limit { offset: number(at + 1)?, count: number(at + 2)? };
                at += 2;
            } else if direction.is_none() && is(b"REV") {
                direction = Some(Descending);
            } else if by.is_none() && is(b"BYLEX") {
                by = Some(By::Lex);
            } else if by.is_none() && is(b"BYSCORE") {
                by = Some(By::Score);
            } else {
                return Err(Error::Syntax);
            }
            at += 1;
        }
        let (by, direction) = (by.unwrap_or(By::Rank), direction.unwrap_or(Ascending));
        if limit.count != Limit::NONE.count && by == By::Rank {
            return Err(Error::text(
                "syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX",
            ));
        }
        if with_scores && by == By::Lex {
            return Err(Error::text(
                "syntax error, WITHSCORES not supported in combination with BYLEX",
            ));
        }
        let (first, last) = match (by, direction) {
            (By::Score | By::Lex, Descending) => (form.at + 1, form.at),
            (By::Rank, _) | (_, Ascending) => (form.at, form.at + 1),
        };
        let span = Span::parse(by, request.word(first), request.word(last))?;
        let key = request.keys[form.at - 2];
        Ok(Self { key, span, direction, limit, with_scores })
    }

    fn ranks(&self, set: &SortedSet) -> Range<usize> {
        self.limit.of(self.span.ranks(set, self.direction), self.direction)
    }
}

fn answer(view: &mut View<'_>, asked: Asked<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    match view.read_collection::<SortedSet>(asked.key)? {
        Some(set) => {
            let shape = Shape::of(asked.with_scores, reply);
            show(set, asked.ranks(set), asked.direction, shape, reply);
        }
        None => reply.array(0),
    }
    Ok(())
}

fn store_plan<'a>(request: &Request<'a>) -> Result<(KeyRef<'a>, Asked<'a>), Error> {
    let asked = Asked::read(request, Form { shows: false, ..Form::free(3) })?;
    Ok((request.keys[0], asked))
}

fn store(
    view: &mut View<'_>,
    (to, asked): (KeyRef<'_>, Asked<'_>),
    reply: &mut Reply<'_>,
) -> Result<(), Error> {
    let mut stored = SortedSet::new(to.hash());
    if let Some(set) = view.read_collection::<SortedSet>(asked.key)? {
        set.visit(asked.ranks(set), Ascending, |member, score| {
            stored.set(member, score);
        });
    }
    reply.integer(stored.len() as i64);
    view.put_collection(to, stored);
    Ok(())
}
