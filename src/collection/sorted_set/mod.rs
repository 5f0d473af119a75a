//! A sorted set: members with scores, by score and then by bytes.
//!
//! A small one lies flat in one allocation, a larger one has an index and a tree; the sizes at
//! which it changes over, once and for good, are those of Redis, so that OBJECT ENCODING tells
//! how it is really kept. Ranks count from zero in ascending order. Every question about a range
//! becomes one about ranks, by [`SortedSet::rank_where`].
//!
//! Invariants: a score is a number; a member stands once; equal scores, the two zeros among them,
//! are ordered by the members' bytes.

mod flat;
mod indexed;
#[cfg(test)]
mod tests;
mod tree;

use std::cmp::Ordering;
use std::convert::Infallible;
use std::ops::Range;

use super::coded::{DecodeError, Pieces, put_bytes, put_len};
use super::inverses::Inverses;
use crate::size::{allocated_bytes, malloc_bytes};
use flat::Flat;
use indexed::Indexed;

/// Which way a range is shown.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Direction {
    Ascending,
    Descending,
}

#[derive(Clone, Debug)]
pub(crate) struct SortedSet {
    form: Form,
    undo: Inverses<Inverse>,
    seed: u64,
}

/// The inverse of a change: a member, and its score.
type Inverse = (Box<[u8]>, Option<f64>);

#[derive(Clone, Debug)]
enum Form {
    Flat(Flat),
    Indexed(Box<Indexed>),
}

impl SortedSet {
    /// Nothing yet. The seed makes it unpredictable from outside how it is kept.
    pub(crate) fn new(seed: u64) -> Self {
        Self { form: Form::Flat(Flat::default()), undo: Inverses::default(), seed }
    }

    pub(crate) fn len(&self) -> usize {
        match &self.form {
            Form::Flat(flat) => flat.len(),
            Form::Indexed(indexed) => indexed.len(),
        }
    }

    pub(crate) fn score(&self, member: &[u8]) -> Option<f64> {
        match &self.form {
            Form::Flat(flat) => flat.find(member).map(|entry| entry.score),
            Form::Indexed(indexed) => indexed.find(member).map(|slot| indexed.score(slot)),
        }
    }

    /// The rank and the score of a member.
    pub(crate) fn rank(&self, member: &[u8]) -> Option<(usize, f64)> {
        match &self.form {
            Form::Flat(flat) => {
                let (rank, entry) =
                    flat.entries().enumerate().find(|(_, entry)| entry.member == member)?;
                Some((rank, entry.score))
            }
            Form::Indexed(indexed) => {
                let slot = indexed.find(member)?;
                Some((indexed.rank_of(slot), indexed.score(slot)))
            }
        }
    }

    /// The rank behind those that are `before`: it is so of all up to some rank, and of none
    /// from there on. Where it is not, the answer is some rank.
    pub(crate) fn rank_where(&self, before: impl Fn(f64, &[u8]) -> bool) -> usize {
        match &self.form {
            Form::Flat(flat) => flat.rank(before),
            Form::Indexed(indexed) => indexed.rank(before),
        }
    }

    /// Shows the members of these ranks, which are there.
    pub(crate) fn visit(
        &self,
        ranks: Range<usize>,
        direction: Direction,
        visit: impl FnMut(&[u8], f64),
    ) {
        if ranks.is_empty() {
            return;
        }
        match &self.form {
            Form::Flat(flat) => flat.visit(ranks, direction, visit),
            Form::Indexed(indexed) => indexed.visit(ranks, direction, visit),
        }
    }

    /// The score at this rank, where there is one.
    pub(crate) fn score_at(&self, rank: usize) -> Option<f64> {
        if let Form::Flat(flat) = &self.form
            && rank + 1 == flat.len()
        {
            return flat.last_score();
        }
        let mut found = None;
        let ranks = rank..rank.saturating_add(1).min(self.len());
        self.visit(ranks, Direction::Ascending, |_, score| found = Some(score));
        found
    }

    /// Shows all members, in ascending order.
    pub(crate) fn visit_all(&self, visit: impl FnMut(&[u8], f64)) {
        self.visit(0..self.len(), Direction::Ascending, visit);
    }

    /// Shows some members, about `steps` of them, from a cursor on; zero begins. Returns where to
    /// go on; zero is the end. A member that is there throughout is shown at least once.
    pub(crate) fn scan(&self, cursor: u64, steps: usize, visit: impl FnMut(&[u8], f64)) -> u64 {
        match &self.form {
            Form::Flat(_) => {
                self.visit_all(visit);
                0
            }
            Form::Indexed(indexed) => indexed.scan(cursor, steps, visit),
        }
    }

    /// Gives a member the score that `decide` makes of the one it has; `None` leaves all as it
    /// is. Returns the score before. The new score is a number.
    pub(crate) fn change<E>(
        &mut self,
        member: &[u8],
        decide: impl FnOnce(Option<f64>) -> Result<Option<f64>, E>,
    ) -> Result<Option<f64>, E> {
        let old = match &mut self.form {
            Form::Flat(flat) => {
                let found = flat.find(member).map(|entry| (entry.score, entry.place()));
                let old = found.map(|(score, _)| score);
                let Some(score) = decide(old)? else { return Ok(old) };
                debug_assert!(!score.is_nan());
                if let Some((_, place)) = found {
                    flat.remove(place);
                }
                if flat.takes(member) {
                    flat.insert(member, score);
                } else {
                    self.indexed().insert(member, score);
                }
                old
            }
            Form::Indexed(indexed) => {
                let slot = indexed.find(member);
                let old = slot.map(|slot| indexed.score(slot));
                let Some(score) = decide(old)? else { return Ok(old) };
                debug_assert!(!score.is_nan());
                match slot {
                    Some(slot) => indexed.rescore(slot, score),
                    None => indexed.insert(member, score),
                }
                old
            }
        };
        note(&mut self.undo, member, old);
        Ok(old)
    }

    /// Returns the score before. The score is a number.
    pub(crate) fn set(&mut self, member: &[u8], score: f64) -> Option<f64> {
        let Ok(old) = self.change(member, |_| Ok::<_, Infallible>(Some(score)));
        old
    }

    /// Returns the score of the member that was there.
    pub(crate) fn remove(&mut self, member: &[u8]) -> Option<f64> {
        let score = match &mut self.form {
            Form::Flat(flat) => {
                let (score, place) = flat.find(member).map(|entry| (entry.score, entry.place()))?;
                flat.remove(place);
                score
            }
            Form::Indexed(indexed) => {
                let slot = indexed.find(member)?;
                let (rank, score) = (indexed.rank_of(slot), indexed.score(slot));
                indexed.drain(rank..rank + 1, |_, _| {});
                score
            }
        };
        note(&mut self.undo, member, Some(score));
        self.shrink();
        Some(score)
    }

    /// Takes out the members of these ranks, which are there.
    pub(crate) fn remove_ranks(&mut self, ranks: Range<usize>) {
        if ranks.is_empty() {
            return;
        }
        let undo = &mut self.undo;
        let gone = |member: &[u8], score| note(undo, member, Some(score));
        match &mut self.form {
            Form::Flat(flat) => flat.drain(ranks, gone),
            Form::Indexed(indexed) => indexed.drain(ranks, gone),
        }
        self.shrink();
    }

    /// The indexed form from here on.
    fn indexed(&mut self) -> &mut Indexed {
        if let Form::Flat(flat) = &self.form {
            let mut indexed = Box::new(Indexed::new(self.seed));
            flat.entries().for_each(|entry| indexed.insert(entry.member, entry.score));
            self.form = Form::Indexed(indexed);
        }
        match &mut self.form {
            Form::Indexed(indexed) => indexed,
            Form::Flat(_) => unreachable!("it has just been made"),
        }
    }

    /// Not while changes may be taken back: members come back into the slots that they had.
    fn shrink(&mut self) {
        if let (Form::Indexed(indexed), false) = (&mut self.form, self.undo.are_noted()) {
            indexed.shrink();
        }
    }

    /// What OBJECT ENCODING answers: Redis's name for how it would keep such a collection.
    pub(crate) fn encoding(&self) -> &'static str {
        match self.form {
            Form::Flat(_) => "listpack",
            Form::Indexed(_) => "skiplist",
        }
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        let form = match &self.form {
            Form::Flat(flat) => flat.heap_bytes(),
            Form::Indexed(indexed) => malloc_bytes(size_of::<Indexed>()) + indexed.heap_bytes(),
        };
        malloc_bytes(size_of::<Self>()) + form
    }

    /// Reads what the next request will; the result means nothing.
    pub(crate) fn prefetch(&self) -> u64 {
        match &self.form {
            Form::Flat(flat) => flat.prefetch(),
            Form::Indexed(indexed) => indexed.len() as u64,
        }
    }

    /// From here on every change can be taken back. False where that is so already.
    pub(crate) fn begin_undo(&mut self) -> bool {
        self.undo.begin()
    }

    /// What is kept to take changes back.
    pub(crate) fn undo_bytes(&self) -> usize {
        self.undo.bytes()
    }

    pub(crate) fn forget_undo(&mut self) {
        self.undo.forget();
        self.shrink();
    }

    pub(crate) fn roll_back(&mut self) {
        for (member, old) in self.undo.take() {
            match old {
                Some(score) => self.set(&member, score),
                None => self.remove(&member),
            };
        }
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        put_len(self.len(), out);
        self.visit_all(|member, score| {
            put_bytes(member, out);
            out.extend_from_slice(&score.to_le_bytes());
        });
    }

    pub(crate) fn decode(bytes: &[u8], seed: u64) -> Result<Self, DecodeError> {
        let mut pieces = Pieces(bytes);
        let mut set = Self::new(seed);
        for _ in 0..pieces.len()? {
            let (member, score) = (pieces.bytes()?, f64::from_le_bytes(pieces.array()?));
            if score.is_nan() || set.set(member, score).is_some() {
                return Err(DecodeError);
            }
        }
        pieces.end().map(|()| set)
    }
}

fn note(undo: &mut Inverses<Inverse>, member: &[u8], old: Option<f64>) {
    undo.note(|| ((member.into(), old), allocated_bytes(member.len())));
}

/// The order of members; the two zeros are equal.
fn compare(one: (f64, &[u8]), other: (f64, &[u8])) -> Ordering {
    (one.0 + 0.0).total_cmp(&(other.0 + 0.0)).then_with(|| one.1.cmp(other.1))
}
