//! The same requests with the memory of denials and without it are answered the same.
//!
//! Each bucket has two states of the limiter: one is asked every time, the other only when
//! nothing is remembered. With one quota every figure of every answer is compared, with several
//! the verdict, the wait and the quota. Between requests quotas change, spent quota is given
//! back, forgotten or charged beyond the limit, and time passes.

use std::sync::Arc;

use super::{Accept, Denial, Fingerprint, Lane, Options, Prefilter, Question, Repeated};
use crate::engine::KeyHasher;
use crate::limit::{Algorithm, Align, Cost, Decision, Quota, State, charge, check, peek, refund};
use crate::time::{Duration, Timestamp};

const BUCKETS: usize = 16;
const SHARDS: usize = 4;

/// A generator of fixed seed: what fails once fails again.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (bits ^ bits >> 31) % bound
    }

    fn quota(&mut self) -> Quota {
        let algorithm = Algorithm::ALL[self.below(Algorithm::ALL.len() as u64) as usize];
        let window = Duration::from_millis([20, 100, 1_000, 30_000][self.below(4) as usize]);
        let align = [Align::Epoch, Align::First][self.below(2) as usize];
        let quota = Quota::new(algorithm, self.below(12), window).expect("a valid quota");
        quota.with_burst(self.below(2) * 3).expect("a valid burst").with_align(align)
    }

    fn cost(&mut self) -> Cost {
        Cost([1, 1, 1, 1, 2, 3, 5, 0, 40, 1][self.below(10) as usize])
    }

    /// Nearly always next to nothing, so that buckets fill; now and then past most windows.
    fn pause(&mut self) -> Duration {
        Duration::from_micros(match self.below(1_000) {
            0..600 => 0,
            600..900 => self.below(500),
            900..999 => self.below(5_000),
            _ => self.below(3_000_000),
        })
    }
}

struct Bucket {
    name: [u8; 4],
    quota: Quota,
    revision: u64,
    shard: u16,
    /// Asked every time.
    plain: State,
    /// Asked when nothing is remembered.
    spared: State,
}

struct World {
    prefilter: Prefilter,
    lane: Arc<Lane>,
    hasher: KeyHasher,
    accept: Accept,
    generations: [u64; SHARDS],
    buckets: Vec<Bucket>,
    dice: Dice,
    now: Timestamp,
}

impl World {
    fn new(seed: u64, accept: Accept) -> Self {
        let prefilter = Prefilter::new(&Options::small(true), seed);
        let lane = prefilter.new_lane();
        let mut dice = Dice(seed);
        let now = Timestamp::from_millis(1_700_000_000_000);
        let buckets = (0..BUCKETS as u32)
            .map(|number| {
                let quota = dice.quota();
                Bucket {
                    name: number.to_le_bytes(),
                    quota,
                    revision: 1,
                    shard: (number as usize % SHARDS) as u16,
                    plain: State::new(&quota, now),
                    spared: State::new(&quota, now),
                }
            })
            .collect();
        let (hasher, generations) = (KeyHasher::new(seed), [0; SHARDS]);
        Self { prefilter, lane, hasher, accept, generations, buckets, dice, now }
    }

    fn question(&self, at: usize, cost: Cost) -> Question<'_> {
        let bucket = &self.buckets[at];
        Question {
            bucket: self.hasher.key(&bucket.name),
            quota: Fingerprint::of(&bucket.quota),
            revision: bucket.revision,
            cost,
            accept: self.accept,
        }
    }

    fn ask(&self, at: usize, cost: Cost) -> Option<Repeated> {
        let question = self.question(at, cost);
        let generation = |shard: u16| self.generations[usize::from(shard)];
        self.prefilter.ask(&self.lane, &question, self.now, generation)
    }

    fn remember(&self, at: usize, cost: Cost, decision: Decision) {
        let bucket = &self.buckets[at];
        let opens = peek(&bucket.quota, &bucket.spared, Cost::ONE, self.now);
        let settled = bucket.spared.is_counted_by(&bucket.quota);
        let denial = Denial {
            decision,
            opens_after: settled.then(|| opens.retry_after().unwrap_or_default()),
            held: 0,
            place: at as u16,
            shard: bucket.shard,
            generation: self.generations[usize::from(bucket.shard)],
        };
        self.prefilter.remember(&self.lane, &self.question(at, cost), &denial, self.now);
    }

    /// Something other than a check happens to a bucket.
    fn disturb(&mut self, at: usize) {
        let (quota, now) = (self.dice.quota(), self.now);
        let cost = self.dice.cost();
        let bucket = &mut self.buckets[at];
        let generation = &mut self.generations[usize::from(bucket.shard)];
        match self.dice.below(4) {
            0 => {
                bucket.quota = quota;
                bucket.revision += 1;
            }
            1 => {
                let given = refund(&mut bucket.plain, cost, now);
                assert_eq!(refund(&mut bucket.spared, cost, now), given);
                *generation += 1;
            }
            2 => {
                charge(&bucket.quota, &mut bucket.plain, cost, now);
                charge(&bucket.quota, &mut bucket.spared, cost, now);
                *generation += 1;
            }
            _ => {
                bucket.plain = State::new(&bucket.quota, now);
                bucket.spared = bucket.plain.clone();
                *generation += 1;
            }
        }
    }

    /// The answer with the memory, and whether it came from there.
    fn spared_answer(&mut self, at: usize, cost: Cost) -> (Decision, bool) {
        if let Some(repeated) = self.ask(at, cost) {
            assert_eq!(usize::from(repeated.place), at);
            return (repeated.decision, true);
        }
        let bucket = &mut self.buckets[at];
        let decision = check(&bucket.quota, &mut bucket.spared, cost, self.now);
        if !decision.is_allowed() {
            self.remember(at, cost, decision);
        }
        (decision, false)
    }

    /// One request to one bucket; both answers, and whether the second was remembered.
    fn step(&mut self) -> (Decision, Decision, bool) {
        self.now = self.now + self.dice.pause();
        let at = self.dice.below(BUCKETS as u64) as usize;
        if self.dice.below(400) == 0 {
            self.disturb(at);
        }
        let cost = self.dice.cost();
        if self.dice.below(20) == 0 {
            let bucket = &self.buckets[at];
            let plain = peek(&bucket.quota, &bucket.plain, cost, self.now);
            let asked = self.ask(at, cost).map(|repeated| repeated.decision);
            let looked = || peek(&bucket.quota, &bucket.spared, cost, self.now);
            return (plain, asked.unwrap_or_else(looked), asked.is_some());
        }
        let bucket = &mut self.buckets[at];
        let plain = check(&bucket.quota, &mut bucket.plain, cost, self.now);
        let (spared, repeated) = self.spared_answer(at, cost);
        (plain, spared, repeated)
    }
}

#[test]
fn million_requests_are_answered_the_same_with_and_without_it() {
    let mut world = World::new(1, Accept::Exact);
    let mut repeated = 0_u64;
    for turn in 0..1_000_000 {
        let (plain, spared, from_memory) = world.step();
        assert_eq!(plain, spared, "turn {turn}, from memory: {from_memory}");
        repeated += u64::from(from_memory);
    }
    assert!(repeated > 200_000, "only {repeated} answers came from memory");
}

#[test]
fn short_of_time_every_verdict_is_the_same_and_no_wait_is_longer() {
    let mut world = World::new(2, Accept::Verdict);
    let mut repeated = 0_u64;
    for turn in 0..200_000 {
        let (plain, spared, from_memory) = world.step();
        assert_eq!(plain.is_allowed(), spared.is_allowed(), "turn {turn}");
        assert!(is_no_longer(&spared, &plain), "turn {turn}: {spared:?} for {plain:?}");
        repeated += u64::from(from_memory);
    }
    assert!(repeated > 50_000, "only {repeated} answers came from memory");
}

/// Whether who waits as told by the one comes no later than by the other, which may be never.
fn is_no_longer(one: &Decision, other: &Decision) -> bool {
    match (one.retry_after(), other.retry_after()) {
        (_, None) => true,
        (None, Some(_)) => false,
        (Some(one), Some(other)) => one <= other,
    }
}

/// All quotas or none: the failing one that comes first, and the longest wait of those failing.
fn judge(
    world: &mut World,
    places: [usize; 3],
    cost: Cost,
    state: fn(&mut Bucket) -> &mut State,
) -> Option<(usize, Decision, Option<Duration>)> {
    let now = world.now;
    let mut first = None;
    let mut wait = Some(Duration::ZERO);
    for at in places {
        let bucket = &mut world.buckets[at];
        let quota = bucket.quota;
        let decision = peek(&quota, state(bucket), cost, now);
        if !decision.is_allowed() {
            first = first.or(Some((at, decision)));
            wait = wait.zip(decision.retry_after()).map(|(one, other)| one.max(other));
        }
    }
    if first.is_none() {
        for at in places {
            let bucket = &mut world.buckets[at];
            let quota = bucket.quota;
            check(&quota, state(bucket), cost, now);
        }
    }
    first.map(|(at, decision)| (at, decision, wait))
}

#[test]
fn several_quotas_have_the_same_verdict_and_no_longer_wait() {
    let mut world = World::new(3, Accept::Exact);
    let mut repeated = 0_u64;
    for turn in 0..300_000 {
        world.now = world.now + world.dice.pause();
        if world.dice.below(400) == 0 {
            let at = world.dice.below(BUCKETS as u64) as usize;
            world.disturb(at);
        }
        let start = world.dice.below(BUCKETS as u64) as usize;
        let places = [start, (start + 5) % BUCKETS, (start + 9) % BUCKETS];
        let cost = world.dice.cost();
        let plain = judge(&mut world, places, cost, |bucket| &mut bucket.plain);
        if let Some(answer) = places.iter().find_map(|at| world.ask(*at, cost)) {
            let (_, _, wait) = plain.unwrap_or_else(|| panic!("turn {turn}: allowed by all"));
            assert!(wait.is_none_or(|wait| answer.decision.retry_after() <= Some(wait)));
            assert!(places.contains(&usize::from(answer.place)));
            repeated += 1;
            continue;
        }
        let spared = judge(&mut world, places, cost, |bucket| &mut bucket.spared);
        assert_eq!(plain, spared, "turn {turn}");
        if let Some((at, decision, _)) = spared {
            world.remember(at, cost, decision);
        }
    }
    assert!(repeated > 50_000, "only {repeated} answers came from memory");
}
