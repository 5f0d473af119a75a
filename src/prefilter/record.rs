//! One remembered denial: what it is the answer to, until when, and the answer.
//!
//! As words it can stand in atomics. Moments are absolute, so that the same record answers any
//! moment before its end; they are microseconds, as everywhere.

use super::{Accept, Fingerprint, Question};
use crate::limit::{Cost, Decision, Verdict};
use crate::time::Timestamp;

/// Words of a record.
pub(super) const WORDS: usize = 12;

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Record {
    /// The bucket's name, hashed under two seeds.
    pub(super) bucket: [u64; 2],
    pub(super) quota: Fingerprint,
    /// Of the tenant.
    pub(super) revision: u64,
    /// Of the shard, read within the transaction that denied.
    pub(super) generation: u64,
    pub(super) cost: Cost,
    /// From here on it is no answer.
    pub(super) until: Timestamp,
    pub(super) retry_at: Timestamp,
    pub(super) reset_at: Timestamp,
    pub(super) limit: u64,
    pub(super) remaining: u64,
    pub(super) kind: Kind,
    pub(super) place: u16,
    pub(super) shard: u16,
}

/// How much of a denial stays as it was.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Kind {
    /// All of it: nothing is left, so nothing can be admitted that would change it.
    Frozen,
    /// That this cost is denied, and any larger one.
    Partial,
}

impl Record {
    /// Whether it is about this question, apart from the bucket and from time.
    pub(super) fn answers(&self, question: &Question<'_>) -> bool {
        let costs = match self.kind {
            Kind::Frozen => question.cost == self.cost,
            Kind::Partial => question.accept == Accept::Verdict && question.cost >= self.cost,
        };
        costs && self.quota == question.quota && self.revision == question.revision
    }

    /// The answer at a moment before `until`.
    pub(super) fn decision(&self, now: Timestamp) -> Decision {
        Decision {
            verdict: Verdict::Deny { retry_after: Some(self.retry_at.since(now)) },
            limit: self.limit,
            remaining: self.remaining,
            reset_after: self.reset_at.since(now),
        }
    }

    pub(super) fn to_words(self) -> [u64; WORDS] {
        let partial = u64::from(self.kind == Kind::Partial);
        [
            self.bucket[0],
            self.bucket[1],
            self.quota.0,
            self.revision,
            self.generation,
            self.cost.0,
            self.until.as_micros(),
            self.retry_at.as_micros(),
            self.reset_at.as_micros(),
            self.limit,
            self.remaining,
            partial << 32 | u64::from(self.place) << 16 | u64::from(self.shard),
        ]
    }

    pub(super) fn from_words(words: [u64; WORDS]) -> Self {
        let [first, second, quota, revision, generation, cost, ends @ .., limit, remaining, rest] =
            words;
        let [until, retry_at, reset_at] = ends.map(Timestamp::from_micros);
        Self {
            bucket: [first, second],
            quota: Fingerprint(quota),
            revision,
            generation,
            cost: Cost(cost),
            until,
            retry_at,
            reset_at,
            limit,
            remaining,
            kind: if rest >> 32 == 0 { Kind::Frozen } else { Kind::Partial },
            place: (rest >> 16) as u16,
            shard: rest as u16,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn record_comes_back_from_its_words() {
        let distinct: [u64; WORDS] = std::array::from_fn(|at| at as u64 + 1);
        for rest in [0, 1, 0xffff, 0xffff_0000, 0x1_0000_0000, 0x1_abcd_1234] {
            let mut words = distinct;
            words[WORDS - 1] = rest;
            assert_eq!(Record::from_words(words).to_words(), words);
        }
    }
}
