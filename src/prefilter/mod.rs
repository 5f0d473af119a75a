//! A short memory of denials, asked before the engine.
//!
//! A bucket that is over its limit stays so until a moment that is known when it denies; until
//! then the answer can be repeated without a lock. What is remembered is one answer for one
//! bucket and cost, in a table of fixed size: see [`Record`] for what it holds and `table` for
//! how it is kept. The bucket is known by 128 bits of hash under two secret seeds.
//!
//! Invariants: an answer is a denial that the engine would give, too. With one quota all five
//! figures are the engine's; with several the verdict is, the wait is never longer, and the
//! quota is the one that denied first. Nothing is answered once the tenant's revision, the
//! quota's fingerprint or the shard's generation has moved, and nothing from `until` on.
//! Jitter only shortens. A torn or displaced record is a miss, never a wrong answer.
//!
//! Who asks leaves out what cannot be remembered: rules that count what they deny, that are
//! not enforced for everyone, or that limit concurrency; and questions for DETAIL and EXPLAIN.

mod counts;
mod options;
mod record;
mod table;

#[cfg(test)]
mod differential;
#[cfg(test)]
mod torture;

use std::hash::{BuildHasher, Hash};
use std::sync::Arc;

use foldhash::fast::FixedState;
use parking_lot::Mutex;

pub(crate) use self::counts::{Counts, Lane};
pub(crate) use self::options::Options;
use self::record::{Kind, Record};
use self::table::{Put, Table};
use crate::engine::{KeyHasher, KeyRef};
use crate::limit::{Cost, Decision, Verdict};
use crate::time::{Duration, Timestamp};

/// A denial that ends sooner is not worth its record.
pub(crate) const SPAN_MIN: Duration = Duration::from_millis(2);

/// At most one part in so many of a span is cut, so that keys denied together do not all come
/// back to the engine together.
const JITTER_PART: u64 = 20;

/// The remembered denials of one server.
#[derive(Debug)]
pub(crate) struct Prefilter {
    /// `None` where nothing is to be remembered.
    table: Option<Table>,
    /// The other half of a bucket's hash; the first is the engine's.
    second: KeyHasher,
    lanes: Mutex<Vec<Arc<Lane>>>,
}

/// What a request asks of one bucket.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Question<'a> {
    /// The bucket's whole name, hashed by the engine.
    pub(crate) bucket: KeyRef<'a>,
    pub(crate) quota: Fingerprint,
    /// Of the tenant whose quota it is.
    pub(crate) revision: u64,
    pub(crate) cost: Cost,
    pub(crate) accept: Accept,
}

/// Which memories are good enough.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Accept {
    /// Those whose figures are the engine's.
    Exact,
    /// Also those of which only the verdict is: for a server that is short of time.
    Verdict,
}

/// A quota as a number: another quota has another one.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Fingerprint(u64);

impl Fingerprint {
    /// Of everything that decides: algorithm, limit, window, burst and what else there is.
    pub(crate) fn of(quota: &impl Hash) -> Self {
        // Quotas are written by operators, so the seed need not be secret.
        Self(FixedState::with_seed(0).hash_one(quota))
    }
}

/// What the engine found when it denied, read within its transaction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Denial {
    /// Of the quota that denied first.
    pub(crate) decision: Decision,
    /// Until a cost of one passes; for a cost of one, the decision's own wait. `None` while the
    /// state is still counted by another quota: what was spent then counts as spent at each
    /// request's own moment, so that the end moves.
    pub(crate) opens_after: Option<Duration>,
    /// By reservations and leases: they may end, and open the quota, before any wait is over.
    pub(crate) held: u64,
    /// Which of the request's quotas denied, by the caller's count.
    pub(crate) place: u16,
    /// Where the bucket lives.
    pub(crate) shard: u16,
    /// The limiter generation of that shard.
    pub(crate) generation: u64,
}

impl Denial {
    /// How long all figures of it follow from themselves, whatever is spent; `None` where that is
    /// not known, or too short to be of use.
    pub(crate) fn frozen_for(&self) -> Option<Duration> {
        lasting(self, Accept::Exact).map(|(_, _, span)| span)
    }
}

/// A denial repeated.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Repeated {
    pub(crate) decision: Decision,
    /// As [`Denial::place`] said.
    pub(crate) place: u16,
}

impl Prefilter {
    /// `seed` is secret, and not the engine's.
    pub(crate) fn new(options: &Options, seed: u64) -> Self {
        let table = options.enabled.then(|| Table::new(options.entries_max.number()));
        Self { table, second: KeyHasher::new(seed), lanes: Mutex::default() }
    }

    /// Where one thread counts: it alone may ask and remember with it.
    pub(crate) fn new_lane(&self) -> Arc<Lane> {
        let lane = Arc::new(Lane::default());
        self.lanes.lock().push(Arc::clone(&lane));
        lane
    }

    /// What all threads have counted.
    pub(crate) fn counts(&self) -> Counts {
        let mut sum = Counts::default();
        self.lanes.lock().iter().for_each(|lane| lane.add_to(&mut sum));
        sum
    }

    /// The denial that the engine would answer at this moment, if it is remembered. `generation`
    /// tells the present one of a shard.
    #[inline]
    pub(crate) fn ask(
        &self,
        lane: &Lane,
        question: &Question<'_>,
        now: Timestamp,
        generation: impl Fn(u16) -> u64,
    ) -> Option<Repeated> {
        let table = self.table.as_ref()?;
        let first = question.bucket.hash();
        if !table.may_have(first) {
            lane.missed();
            return None;
        }
        let second = self.second(question);
        let holds = |record: &Record| {
            record.bucket == [first, second]
                && record.answers(question)
                && now < record.until
                && record.generation == generation(record.shard)
        };
        let found = table.find(first, holds);
        if found.is_some() {
            lane.answered();
        } else {
            lane.missed();
        }
        found.map(|record| Repeated { decision: record.decision(now), place: record.place })
    }

    /// Remembers a denial of this moment, where that is of use and the same will hold.
    pub(crate) fn remember(
        &self,
        lane: &Lane,
        question: &Question<'_>,
        denial: &Denial,
        now: Timestamp,
    ) {
        let Some(table) = &self.table else { return };
        let Some((kind, retry_after, span)) = lasting(denial, question.accept) else { return };
        let second = self.second(question);
        let record = Record {
            bucket: [question.bucket.hash(), second],
            quota: question.quota,
            revision: question.revision,
            generation: denial.generation,
            cost: question.cost,
            until: now + shortened(span, second ^ now.as_micros()),
            retry_at: now + retry_after,
            reset_at: now + denial.decision.reset_after,
            limit: denial.decision.limit,
            remaining: denial.decision.remaining,
            kind,
            place: denial.place,
            shard: denial.shard,
        };
        match table.put(&record, now) {
            Put::Free => lane.remembered(),
            Put::Displaced => lane.displaced(),
            // Another thread writes there: it remembers its own, and ours is asked for again.
            Put::Busy => {}
        }
    }

    fn second(&self, question: &Question<'_>) -> u64 {
        self.second.key(question.bucket.bytes()).hash()
    }
}

/// How a denial lasts, and how long: with nothing left it is frozen until a cost of one passes;
/// else, that this cost is denied is all that is sure. `None` where it is not worth remembering.
fn lasting(denial: &Denial, accept: Accept) -> Option<(Kind, Duration, Duration)> {
    let Verdict::Deny { retry_after: Some(retry_after) } = denial.decision.verdict else {
        return None;
    };
    let opens_after = denial.opens_after?;
    let (kind, span) = if denial.decision.remaining == 0 {
        (Kind::Frozen, opens_after.min(retry_after))
    } else {
        (Kind::Partial, retry_after)
    };
    let fits = accept == Accept::Verdict || kind == Kind::Frozen;
    (denial.held == 0 && fits && span >= SPAN_MIN).then_some((kind, retry_after, span))
}

/// The span less up to a twentieth of it, by 32 bits of chance.
fn shortened(span: Duration, seed: u64) -> Duration {
    // Only the spread matters: the bits are those of a keyed hash already.
    let chance = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    let part_us = u128::from(span.as_micros() / JITTER_PART);
    let cut_us = (part_us * u128::from(chance)) >> 32;
    Duration::from_micros(span.as_micros() - cut_us as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_millis(1_000_000);

    struct Desk {
        prefilter: Prefilter,
        lane: Arc<Lane>,
        hasher: KeyHasher,
    }

    impl Desk {
        fn new(enabled: bool) -> Self {
            let prefilter = Prefilter::new(&Options::small(enabled), 7);
            let lane = prefilter.new_lane();
            Self { prefilter, lane, hasher: KeyHasher::new(1) }
        }

        fn question(&self, cost: u64) -> Question<'static> {
            Question {
                bucket: self.hasher.key(b"acme/login"),
                quota: Fingerprint(5),
                revision: 3,
                cost: Cost(cost),
                accept: Accept::Exact,
            }
        }

        fn remember(&self, cost: u64, denial: &Denial) {
            self.prefilter.remember(&self.lane, &self.question(cost), denial, NOW);
        }

        fn ask(&self, question: &Question<'_>, now: Timestamp) -> Option<Repeated> {
            self.prefilter.ask(&self.lane, question, now, |shard| u64::from(shard) + 40)
        }
    }

    fn denial(remaining: u64, retry_ms: u64) -> Denial {
        let retry_after = Some(Duration::from_millis(retry_ms));
        Denial {
            decision: Decision {
                verdict: Verdict::Deny { retry_after },
                limit: 10,
                remaining,
                reset_after: Duration::from_millis(900),
            },
            opens_after: Some(Duration::from_millis(retry_ms.min(100))),
            held: 0,
            place: 2,
            shard: 9,
            generation: 49,
        }
    }

    #[test]
    fn denial_is_repeated_with_the_figures_of_the_moment() {
        let desk = Desk::new(true);
        desk.remember(1, &denial(0, 100));
        let later = NOW + Duration::from_millis(40);
        let repeated = desk.ask(&desk.question(1), later).expect("it is remembered");
        assert_eq!(repeated.place, 2);
        assert_eq!(repeated.decision.retry_after(), Some(Duration::from_millis(60)));
        assert_eq!(repeated.decision.reset_after, Duration::from_millis(860));
        assert_eq!((repeated.decision.limit, repeated.decision.remaining), (10, 0));
    }

    #[test]
    fn whatever_has_moved_ends_a_memory() {
        let desk = Desk::new(true);
        desk.remember(3, &denial(0, 500));
        let same = desk.question(3);
        assert!(desk.ask(&same, NOW).is_some());
        let others = [
            Question { bucket: desk.hasher.key(b"acme/logout"), ..same },
            Question { quota: Fingerprint(6), ..same },
            Question { revision: 4, ..same },
            Question { cost: Cost(2), ..same },
            Question { cost: Cost(4), ..same },
        ];
        for other in others {
            assert_eq!(desk.ask(&other, NOW), None, "{other:?}");
        }
        let moved = desk.prefilter.ask(&desk.lane, &same, NOW, |_| 50);
        assert_eq!(moved, None);
        // A cost of one passes after 100 ms, and from then on the bucket may change.
        assert_eq!(desk.ask(&same, NOW + Duration::from_millis(100)), None);
    }

    #[test]
    fn what_cannot_last_is_not_remembered() {
        let never = Verdict::Deny { retry_after: None };
        let rows = [
            ("not frozen", denial(1, 100)),
            ("too short", denial(0, 1)),
            ("held", Denial { held: 1, ..denial(0, 100) }),
            ("not settled", Denial { opens_after: None, ..denial(0, 100) }),
            (
                "never",
                Denial {
                    decision: Decision { verdict: never, ..denial(0, 100).decision },
                    ..denial(0, 100)
                },
            ),
        ];
        for (name, denial) in rows {
            let desk = Desk::new(true);
            desk.remember(1, &denial);
            assert_eq!(desk.ask(&desk.question(1), NOW), None, "{name}");
        }
    }

    #[test]
    fn short_of_time_a_partial_denial_answers_its_cost_and_any_larger() {
        let desk = Desk::new(true);
        let in_need = |cost| Question { accept: Accept::Verdict, ..desk.question(cost) };
        desk.prefilter.remember(&desk.lane, &in_need(3), &denial(2, 100), NOW);
        assert_eq!(desk.ask(&in_need(2), NOW), None);
        assert!(desk.ask(&in_need(3), NOW).is_some());
        assert!(desk.ask(&in_need(4), NOW).is_some());
        assert_eq!(desk.ask(&desk.question(3), NOW), None);
    }

    #[test]
    fn jitter_cuts_at_most_a_twentieth_and_adds_nothing() {
        let span = Duration::from_secs(100);
        let all: Vec<u64> = (0..1_000).map(|seed| shortened(span, seed).as_micros()).collect();
        let (least, most) = (all.iter().min().expect("some"), all.iter().max().expect("some"));
        assert!(*least >= 95_000_000 && *least < 95_100_000, "{least}");
        assert!(*most <= 100_000_000 && *most > 99_900_000, "{most}");
        assert!(!shortened(Duration::from_micros(u64::MAX), 1).is_zero());
    }

    #[test]
    fn turned_off_it_remembers_nothing() {
        let desk = Desk::new(false);
        desk.remember(1, &denial(0, 100));
        assert_eq!(desk.ask(&desk.question(1), NOW), None);
        assert_eq!(desk.prefilter.counts(), Counts::default());
    }

    #[test]
    fn counts_are_those_of_all_threads() {
        let desk = Desk::new(true);
        let other = desk.prefilter.new_lane();
        desk.remember(1, &denial(0, 100));
        let question = desk.question(1);
        desk.ask(&question, NOW);
        desk.prefilter.ask(&other, &question, NOW, |_| 49);
        desk.ask(&desk.question(2), NOW);
        other.repeated();
        let expected = Counts { answered: 2, missed: 1, repeated: 1, remembered: 1, displaced: 0 };
        assert_eq!(desk.prefilter.counts(), expected);
    }
}
