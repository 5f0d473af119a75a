//! The words of ZUNION, ZINTER, ZDIFF and their kin: how many keys, which, and what to make of
//! their scores.
//!
//! A key may hold a sorted set or a set, whose members all have the score 1. As in Redis, a key
//! that holds something else is found out before what is wrong with the words behind the keys.

use super::super::request::Request;
use super::super::spec::KeyList;
use crate::collection::{Set, SortedSet};
use crate::engine::{Found, KeyRef, View};
use crate::protocol::{Args, Error, parse_f64, parse_i64};

/// What a command takes behind its keys.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Takes {
    /// WEIGHTS, AGGREGATE, WITHSCORES.
    Scores,
    /// WEIGHTS, AGGREGATE: the result is stored.
    Weights,
    /// WITHSCORES.
    WithScores,
    Nothing,
    /// LIMIT.
    Limit,
}

/// How the scores of one member become one.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Aggregate {
    Sum,
    Min,
    Max,
}

impl Aggregate {
    pub(super) fn of(self, one: f64, other: f64) -> f64 {
        match self {
            Self::Sum => number(one + other),
            Self::Min if other < one => other,
            Self::Max if other > one => other,
            Self::Min | Self::Max => one,
        }
    }
}

/// What would be no number, as infinities that cancel out, is zero.
fn number(score: f64) -> f64 {
    if score.is_nan() { 0.0 } else { score }
}

#[derive(Debug)]
pub(super) struct Options {
    /// One for each key, or none at all where each is 1.
    weights: Vec<f64>,
    pub(super) aggregate: Aggregate,
    pub(super) with_scores: bool,
    /// Zero for none.
    pub(super) limit: usize,
}

/// What a request names. What is wrong with its options is told when its keys have been looked at.
pub(super) struct Inputs<'a> {
    keys: KeyList<'a>,
    pub(super) options: Result<Options, Error>,
}

impl<'a> Inputs<'a> {
    /// From the word on that counts the keys; where it is not the first, a destination stands
    /// before it.
    pub(super) fn read(request: &Request<'a>, at: usize, takes: Takes) -> Result<Self, Error> {
        let count = parse_i64(request.word(at)).ok_or(Error::NotInteger)?;
        if count < 1 {
            let name = String::from_utf8_lossy(request.args.name()).to_lowercase();
            let text = format!("at least 1 input key is needed for '{name}' command");
            return Err(Error::text(text));
        }
        let words = request.args.skip(at + 1);
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        if count > words.len() {
            return Err(Error::Syntax);
        }
        let keys = request.keys[at - 1..].iter().copied().collect();
        Ok(Self { keys, options: Options::read(words.skip(count), count, takes) })
    }

    /// How many members each of the keys holds; a key that holds something else is refused.
    pub(super) fn members(&self, view: &mut View<'_>) -> Result<Vec<usize>, Error> {
        self.keys.iter().map(|key| Input::of(view.read(*key)).map(Input::len)).collect()
    }

    pub(super) fn keys(&self) -> &[KeyRef<'a>] {
        &self.keys
    }
}

impl Options {
    fn read(words: Args<'_>, keys: usize, takes: Takes) -> Result<Self, Error> {
        let mut options =
            Self { weights: Vec::new(), aggregate: Aggregate::Sum, with_scores: false, limit: 0 };
        let weighs = matches!(takes, Takes::Scores | Takes::Weights);
        let shows = matches!(takes, Takes::Scores | Takes::WithScores);
        let mut at = 0;
        while let Some(word) = words.get(at) {
            let is = |name: &[u8]| word.eq_ignore_ascii_case(name);
            let left = words.skip(at + 1);
            if weighs && is(b"WEIGHTS") && left.len() >= keys {
                let weight = |word| {
                    parse_f64(word).ok_or_else(|| Error::text("weight value is not a float"))
                };
                options.weights = left.iter().take(keys).map(weight).collect::<Result<_, _>>()?;
                at += keys;
            } else if weighs && is(b"AGGREGATE") && !left.is_empty() {
                options.aggregate = aggregate(left.name()).ok_or(Error::Syntax)?;
                at += 1;
            } else if shows && is(b"WITHSCORES") {
                options.with_scores = true;
            } else if takes == Takes::Limit && is(b"LIMIT") && !left.is_empty() {
                let limit = parse_i64(left.name()).and_then(|limit| usize::try_from(limit).ok());
                options.limit = limit.ok_or_else(|| Error::text("LIMIT can't be negative"))?;
                at += 1;
            } else {
                return Err(Error::Syntax);
            }
            at += 1;
        }
        Ok(options)
    }

    /// A score of the key of this number.
    pub(super) fn weighed(&self, key: usize, score: f64) -> f64 {
        self.weights.get(key).map_or(score, |weight| number(weight * score))
    }
}

fn aggregate(word: &[u8]) -> Option<Aggregate> {
    let all = [(b"SUM", Aggregate::Sum), (b"MIN", Aggregate::Min), (b"MAX", Aggregate::Max)];
    all.into_iter().find(|(name, _)| word.eq_ignore_ascii_case(*name)).map(|(_, found)| found)
}

/// What stands under one of the keys.
#[derive(Clone, Copy, Debug)]
pub(super) enum Input<'v> {
    Nothing,
    Sorted(&'v SortedSet),
    Set(&'v Set),
}

impl<'v> Input<'v> {
    pub(super) fn of(found: Option<Found<'v>>) -> Result<Self, Error> {
        let Some(found) = found else { return Ok(Self::Nothing) };
        let sorted = found.value.as_collection().map(Self::Sorted);
        sorted.or(found.value.as_collection().map(Self::Set)).ok_or(Error::WrongType)
    }

    pub(super) fn len(self) -> usize {
        match self {
            Self::Nothing => 0,
            Self::Sorted(set) => set.len(),
            Self::Set(set) => set.len(),
        }
    }

    pub(super) fn score(self, member: &[u8]) -> Option<f64> {
        match self {
            Self::Nothing => None,
            Self::Sorted(set) => set.score(member),
            Self::Set(set) => set.contains(member).then_some(1.0),
        }
    }

    pub(super) fn visit(self, mut visit: impl FnMut(&[u8], f64)) {
        match self {
            Self::Nothing => {}
            Self::Sorted(set) => set.visit_all(visit),
            Self::Set(set) => {
                for member in set.iter() {
                    visit(AsRef::<[u8]>::as_ref(&member), 1.0);
                }
            }
        }
    }
}
