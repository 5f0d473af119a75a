//! ZADD and ZINCRBY: the door into a sorted set, one member or many at a time.
//!
//! All scores are read before anything is changed, so a request changes all or nothing.

use smallvec::SmallVec;

use super::super::request::Request;
use super::super::spec::{Arity, Keys, Spec, keyed};
use super::super::strings::STORE_FAST;
use super::sorted;
use crate::collection::SortedSet;
use crate::engine::{KeyRef, View};
use crate::protocol::{Error, Reply, parse_f64};

pub(in super::super) const SPECS: &[Spec] = &[
    Spec {
        complexity: "O(log n) for each member",
        summary: "Add members, or change their scores.",
        handler: keyed!(zadd_plan, zadd),
        ..sorted("ZADD", Arity::at_least(4), Keys::ONE, STORE_FAST)
    },
    Spec {
        summary: "Add to the score of a member.",
        handler: keyed!(zincrby_plan, increase),
        ..sorted("ZINCRBY", Arity::exactly(4), Keys::ONE, STORE_FAST)
    },
];

/// Which members a request may touch, and whether it counts those it has changed.
#[derive(Clone, Copy, Default)]
#[expect(clippy::struct_excessive_bools, reason = "words of the wire, each on its own")]
struct Terms {
    nx: bool,
    xx: bool,
    gt: bool,
    lt: bool,
    ch: bool,
    incr: bool,
}

impl Terms {
    /// Takes the word where it is one of the terms.
    fn take(&mut self, word: &[u8]) -> bool {
        let term = match word.len() {
            2 if word.eq_ignore_ascii_case(b"NX") => &mut self.nx,
            2 if word.eq_ignore_ascii_case(b"XX") => &mut self.xx,
            2 if word.eq_ignore_ascii_case(b"GT") => &mut self.gt,
            2 if word.eq_ignore_ascii_case(b"LT") => &mut self.lt,
            2 if word.eq_ignore_ascii_case(b"CH") => &mut self.ch,
            4 if word.eq_ignore_ascii_case(b"INCR") => &mut self.incr,
            _ => return false,
        };
        *term = true;
        true
    }

    fn check(self, pairs: usize) -> Result<(), Error> {
        if self.nx && self.xx {
            return Err(Error::text("XX and NX options at the same time are not compatible"));
        }
        if self.gt && (self.nx || self.lt) || self.lt && self.nx {
            let text = "GT, LT, and/or NX options at the same time are not compatible";
            return Err(Error::text(text));
        }
        if self.incr && pairs > 1 {
            return Err(Error::text("INCR option supports a single increment-element pair"));
        }
        Ok(())
    }

    /// Whether a member that has, or has not, a score may be touched at all.
    fn admit(self, old: Option<f64>) -> bool {
        if old.is_some() { !self.nx } else { !self.xx }
    }

    /// Whether it may be moved from one score to the other.
    fn let_move(self, old: f64, new: f64) -> bool {
        (!self.gt || new > old) && (!self.lt || new < old)
    }
}

/// Most requests add one member.
type Pairs<'a> = SmallVec<[(f64, &'a [u8]); 2]>;

fn zadd_plan<'a>(request: &Request<'a>) -> Result<(KeyRef<'a>, Terms, Pairs<'a>), Error> {
    let mut terms = Terms::default();
    let mut at = 2;
    while request.args.get(at).is_some_and(|word| terms.take(word)) {
        at += 1;
    }
    let words = request.args.skip(at);
    if words.is_empty() || !words.len().is_multiple_of(2) {
        return Err(Error::Syntax);
    }
    terms.check(words.len() / 2)?;
    let mut pairs = Pairs::with_capacity(words.len() / 2);
    let mut words = words.iter();
    while let (Some(score), Some(member)) = (words.next(), words.next()) {
        pairs.push((parse_f64(score).ok_or(Error::NotFloat)?, member));
    }
    Ok((request.keys[0], terms, pairs))
}

fn zadd(
    view: &mut View<'_>,
    (key, terms, pairs): (KeyRef<'_>, Terms, Pairs<'_>),
    reply: &mut Reply<'_>,
) -> Result<(), Error> {
    if terms.incr {
        return increase(view, (key, terms, pairs), reply);
    }
    let counted = view.change::<SortedSet, _>(key, |set| {
        let (mut added, mut moved) = (0, 0);
        for (score, member) in pairs {
            set.change(member, |old| {
                let wanted = terms.admit(old)
                    && old != Some(score)
                    && old.is_none_or(|old| terms.let_move(old, score));
                if wanted {
                    *if old.is_some() { &mut moved } else { &mut added } += 1;
                }
                Ok::<_, Error>(wanted.then_some(score))
            })?;
        }
        Ok((if terms.ch { added + moved } else { added }, added + moved > 0))
    })?;
    reply.integer(counted);
    Ok(())
}

fn zincrby_plan<'a>(request: &Request<'a>) -> Result<(KeyRef<'a>, Terms, Pairs<'a>), Error> {
    let by = parse_f64(request.word(2)).ok_or(Error::NotFloat)?;
    let pairs = Pairs::from_slice(&[(by, request.word(3))]);
    Ok((request.keys[0], Terms::default(), pairs))
}

/// Adds to the score of the one member; null where the terms do not let it.
fn increase(
    view: &mut View<'_>,
    (key, terms, pairs): (KeyRef<'_>, Terms, Pairs<'_>),
    reply: &mut Reply<'_>,
) -> Result<(), Error> {
    let (by, member) = pairs[0];
    let score = view.change::<SortedSet, _>(key, |set| {
        let mut answer = None;
        let old = set.change(member, |old| {
            if !terms.admit(old) {
                return Ok(None);
            }
            let new = old.map_or(by, |old| old + by);
            if new.is_nan() {
                return Err(Error::ScoreNotNumber);
            }
            if old.is_none_or(|old| terms.let_move(old, new)) {
                answer = Some(new);
            }
            Ok(answer.filter(|_| old != Some(new)))
        })?;
        Ok((answer, answer.is_some() && answer != old))
    })?;
    match score {
        Some(score) => reply.double(score),
        None => reply.null(),
    }
    Ok(())
}
