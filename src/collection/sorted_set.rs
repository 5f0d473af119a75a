//! A sorted set: members with scores, by score and then by bytes.

use std::collections::BTreeSet;

use foldhash::fast::FixedState;
use hashbrown::HashMap;

use super::coded::{DecodeError, Pieces, put_bytes, put_len};

type Member = Box<[u8]>;

/// A score as a number that sorts as the score does.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
struct Rank(u64);

impl Rank {
    /// The two zeros are one.
    fn of(score: f64) -> Self {
        let bits = (score + 0.0).to_bits();
        Self(if bits >> 63 == 0 { bits | 1 << 63 } else { !bits })
    }
}

#[derive(Clone, Debug)]
pub(crate) struct SortedSet {
    scores: HashMap<Member, f64, FixedState>,
    order: BTreeSet<(Rank, Member)>,
    /// Inverses of the latest changes: a member, and its score.
    undo: Option<Vec<(Member, Option<f64>)>>,
    owned_bytes: usize,
}

impl SortedSet {
    /// Nothing yet. The seed makes it unpredictable from outside how it is kept.
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            scores: HashMap::with_hasher(FixedState::with_seed(seed)),
            order: BTreeSet::new(),
            undo: None,
            owned_bytes: 0,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.scores.len()
    }

    pub(crate) fn score(&self, member: &[u8]) -> Option<f64> {
        self.scores.get(member).copied()
    }

    /// Returns the score before. The score is a number.
    pub(crate) fn set(&mut self, member: &[u8], score: f64) -> Option<f64> {
        let old = self.scores.insert(member.into(), score);
        match old {
            Some(old) => drop(self.order.remove(&(Rank::of(old), member.into()))),
            None => self.owned_bytes += 2 * member.len(),
        }
        self.order.insert((Rank::of(score), member.into()));
        if let Some(undo) = &mut self.undo {
            undo.push((member.into(), old));
        }
        old
    }

    /// Returns the score of the member that was there.
    pub(crate) fn remove(&mut self, member: &[u8]) -> Option<f64> {
        let old = self.scores.remove(member)?;
        self.order.remove(&(Rank::of(old), member.into()));
        self.owned_bytes -= 2 * member.len();
        if let Some(undo) = &mut self.undo {
            undo.push((member.into(), Some(old)));
        }
        Some(old)
    }

    /// What OBJECT ENCODING answers: Redis's name for how it would keep such a collection.
    #[expect(clippy::unused_self, reason = "it will depend on what is held")]
    pub(crate) fn encoding(&self) -> &'static str {
        "skiplist"
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        let tree = self.order.len() * size_of::<(Rank, Member)>() * 3 / 2;
        size_of::<Self>() + self.scores.allocation_size() + tree + self.owned_bytes
    }

    /// From here on every change can be taken back. False where that is so already.
    pub(crate) fn begin_undo(&mut self) -> bool {
        let begins = self.undo.is_none();
        self.undo.get_or_insert_default();
        begins
    }

    pub(crate) fn forget_undo(&mut self) {
        self.undo = None;
    }

    pub(crate) fn roll_back(&mut self) {
        for (member, old) in self.undo.take().unwrap_or_default().into_iter().rev() {
            match old {
                Some(score) => self.set(&member, score),
                None => self.remove(&member),
            };
        }
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        put_len(self.len(), out);
        for (_, member) in &self.order {
            put_bytes(member, out);
            out.extend_from_slice(&self.scores[member].to_le_bytes());
        }
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
