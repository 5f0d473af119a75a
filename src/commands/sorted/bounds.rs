//! Ranges of a sorted set: by rank, by score, or by the members' bytes.
//!
//! Every range becomes ascending ranks, in two searches; what takes them from there knows nothing
//! of bounds.

use std::ops::Range;

use crate::collection::{Direction, SortedSet};
use crate::protocol::{Error, parse_bound, parse_i64};

/// What a range counts in.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum By {
    Rank,
    Score,
    Lex,
}

/// A range that a request names.
#[derive(Clone, Copy, Debug)]
pub(super) enum Span<'a> {
    /// First and last, both included; negative ones count from the end.
    Ranks(i64, i64),
    Scores(Edge<f64>, Edge<f64>),
    Lex(Edge<Bytes<'a>>, Edge<Bytes<'a>>),
}

/// An end of a range.
#[derive(Clone, Copy, Debug)]
pub(super) struct Edge<T> {
    at: T,
    included: bool,
}

/// Where among all byte strings.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum Bytes<'a> {
    /// `-`
    BeforeAll,
    At(&'a [u8]),
    /// `+`
    BehindAll,
}

impl<T: PartialOrd> Edge<T> {
    /// Whether something stands before a range that begins here.
    fn begins_behind(&self, other: &T) -> bool {
        if self.included { *other < self.at } else { *other <= self.at }
    }

    /// Whether something stands before the end of a range that ends here.
    fn ends_behind(&self, other: &T) -> bool {
        if self.included { *other <= self.at } else { *other < self.at }
    }
}

impl Edge<f64> {
    fn score(text: &[u8]) -> Result<Self, Error> {
        let (included, number) = match text {
            [b'(', number @ ..] => (false, number),
            number => (true, number),
        };
        Ok(Self { at: parse_bound(number).ok_or(Error::BoundNotFloat)?, included })
    }
}

impl<'a> Edge<Bytes<'a>> {
    fn lex(text: &'a [u8]) -> Result<Self, Error> {
        match text {
            b"-" => Ok(Self { at: Bytes::BeforeAll, included: false }),
            b"+" => Ok(Self { at: Bytes::BehindAll, included: false }),
            [b'(', bytes @ ..] => Ok(Self { at: Bytes::At(bytes), included: false }),
            [b'[', bytes @ ..] => Ok(Self { at: Bytes::At(bytes), included: true }),
            _ => Err(Error::BoundNotLex),
        }
    }
}

impl<'a> Span<'a> {
    pub(super) fn parse(by: By, first: &'a [u8], last: &'a [u8]) -> Result<Self, Error> {
        let rank = |text| parse_i64(text).ok_or(Error::NotInteger);
        match by {
            By::Rank => Ok(Self::Ranks(rank(first)?, rank(last)?)),
            By::Score => Ok(Self::Scores(Edge::score(first)?, Edge::score(last)?)),
            By::Lex => Ok(Self::Lex(Edge::lex(first)?, Edge::lex(last)?)),
        }
    }

    /// The ranks in it, ascending; those that a request counted stand in this direction.
    pub(super) fn ranks(&self, set: &SortedSet, direction: Direction) -> Range<usize> {
        let (start, end) = match self {
            Self::Ranks(first, last) => return ranks(*first, *last, set.len(), direction),
            Self::Scores(min, max) => (
                set.rank_where(|score, _| min.begins_behind(&score)),
                set.rank_where(|score, _| max.ends_behind(&score)),
            ),
            Self::Lex(min, max) => (
                set.rank_where(|_, member| min.begins_behind(&Bytes::At(member))),
                set.rank_where(|_, member| max.ends_behind(&Bytes::At(member))),
            ),
        };
        start..end.max(start)
    }
}

fn ranks(first: i64, last: i64, len: usize, direction: Direction) -> Range<usize> {
    let from_start = |rank: i64| if rank < 0 { rank.saturating_add(len as i64) } else { rank };
    let (first, last) = (from_start(first).max(0), from_start(last).min(len as i64 - 1));
    if first > last {
        return 0..0;
    }
    let (first, last) = (first as usize, last as usize);
    match direction {
        Direction::Ascending => first..last + 1,
        Direction::Descending => len - 1 - last..len - first,
    }
}

/// LIMIT: how many to pass over, and how many to take. A negative offset finds nothing, a
/// negative count takes all.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limit {
    pub(super) offset: i64,
    pub(super) count: i64,
}

impl Limit {
    pub(super) const NONE: Self = Self { offset: 0, count: -1 };

    pub(super) fn of(self, ranks: Range<usize>, direction: Direction) -> Range<usize> {
        let offset = usize::try_from(self.offset).unwrap_or(usize::MAX).min(ranks.len());
        let count = usize::try_from(self.count).unwrap_or(usize::MAX).min(ranks.len() - offset);
        match direction {
            Direction::Ascending => ranks.start + offset..ranks.start + offset + count,
            Direction::Descending => ranks.end - offset - count..ranks.end - offset,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(by: By, first: &str, last: &str) -> Range<usize> {
        let mut set = SortedSet::new(7);
        for (member, score) in [("a", 1.0), ("b", 2.0), ("c", 2.0), ("d", 3.0)] {
            set.set(member.as_bytes(), score);
        }
        let span = Span::parse(by, first.as_bytes(), last.as_bytes()).expect("a range");
        span.ranks(&set, Direction::Ascending)
    }

    #[test]
    fn edges_are_included_or_not() {
        assert_eq!(found(By::Score, "1", "2"), 0..3);
        assert_eq!(found(By::Score, "(1", "2"), 1..3);
        assert_eq!(found(By::Score, "1", "(2"), 0..1);
        assert_eq!(found(By::Score, "(2", "(2"), 3..3);
        assert_eq!(found(By::Score, "-inf", "+inf"), 0..4);
        assert_eq!(found(By::Lex, "-", "+"), 0..4);
        assert_eq!(found(By::Lex, "+", "-"), 4..4);
        assert_eq!(found(By::Lex, "[b", "(d"), 1..3);
        assert_eq!(found(By::Rank, "-3", "-2"), 1..3);
        assert_eq!(found(By::Rank, "-9223372036854775808", "9223372036854775807"), 0..4);
        assert!(found(By::Score, "3", "1").is_empty());
        assert!(found(By::Rank, "3", "2").is_empty());
    }

    #[test]
    fn limits_count_from_where_the_answer_begins() {
        use Direction::{Ascending, Descending};
        let of = |offset, count, direction| Limit { offset, count }.of(10..20, direction);
        assert_eq!(of(0, -1, Ascending), 10..20);
        assert_eq!(of(2, 3, Ascending), 12..15);
        assert_eq!(of(2, 3, Descending), 15..18);
        assert_eq!(of(8, 9, Descending), 10..12);
        assert!(of(10, 1, Ascending).is_empty() && of(-1, 1, Ascending).is_empty());
        assert_eq!(of(0, i64::MIN, Descending), 10..20);
    }
}
