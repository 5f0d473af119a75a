//! Random traces of buckets that are held, in credit, or bound in concurrency, against a slow and
//! obvious reference: it keeps every hold in a list, works out by its definition what a credit
//! has left, and finds a wait by trying one microsecond after another.
//!
//! Windows are of some microseconds, so that it can. Seeds are fixed.

use crate::time::{Duration, Timestamp};

use super::reference::{Model, Random};
use super::{
    Algorithm, Align, Bound, Cost, Credit, HoldId, Ledger, Level, Quota, Remembered, State, Taking,
    combined, judge, level,
};

const BURST: u64 = 3;

#[derive(Clone, Debug)]
struct Reference {
    model: Model,
    holds: Vec<(u64, HoldId, u64)>,
    /// What is taken from the credit, in nanoseconds of its filling, at a moment.
    debt_ns: u128,
    debt_at_us: u64,
}

/// What the reference says of one request.
#[derive(Debug, Eq, PartialEq)]
struct Answer {
    allowed: bool,
    remaining: u64,
    retry_us: Option<u64>,
    reset_us: u64,
}

impl Reference {
    fn new() -> Self {
        Self { model: Model::new(), holds: Vec::new(), debt_ns: 0, debt_at_us: 0 }
    }

    fn used(&self, bound: &Bound, at_us: u64) -> u64 {
        bound.quota().map_or(0, |quota| self.model.used(quota, at_us))
    }

    fn held(&self, at_us: u64) -> u64 {
        self.holds.iter().filter(|(until_us, ..)| *until_us > at_us).map(|hold| hold.2).sum()
    }

    fn debt_ns(&self, at_us: u64) -> u128 {
        self.debt_ns.saturating_sub(u128::from(at_us - self.debt_at_us) * 1_000)
    }

    /// Ten windows fill the burst.
    fn interval_ns(quota: &Quota) -> u128 {
        (u128::from(quota.window().as_micros()) * 10_000).div_ceil(u128::from(BURST))
    }

    /// What of an amount lies above the limit.
    fn above(quota: &Quota, amount: u64) -> u64 {
        amount.saturating_sub(quota.limit())
    }

    fn fits(&self, bound: &Bound, cost: u64, at_us: u64) -> bool {
        let (used, held) = (self.used(bound, at_us), self.held(at_us));
        if cost > 0 && used + held + cost > bound.capacity() {
            return false;
        }
        let Bound::Credit(credit) = bound else { return true };
        let quota = credit.quota();
        let beyond = Self::above(quota, used + held + cost) - Self::above(quota, used);
        let taken = self.debt_ns(at_us).div_ceil(Self::interval_ns(quota)) as u64;
        let left = BURST.saturating_sub(taken);
        cost == 0 || beyond <= left
    }

    fn judge(&self, bound: &Bound, cost: u64, taking: Taking, now_us: u64) -> Answer {
        let allowed = self.fits(bound, cost, now_us);
        let retry_us = (!allowed && cost <= bound.capacity()).then(|| {
            let mut at_us = now_us + 1;
            while !self.fits(bound, cost, at_us) {
                at_us += 1;
            }
            at_us - now_us
        });
        let mut after = self.clone();
        let taken = if allowed { cost } else { 0 };
        match taking {
            Taking::Spend => after.spend(bound, taken, now_us),
            Taking::Hold { until } => after.hold(HoldId(0), taken, until.as_micros()),
        }
        let most = (0..=bound.capacity()).rev();
        Answer {
            allowed,
            remaining: most
                .map(|more| (more, after.fits(bound, more, now_us)))
                .find(|most| most.1)
                .map_or(0, |most| most.0),
            retry_us,
            reset_us: after.reset_us(bound, now_us),
        }
    }

    fn reset_us(&self, bound: &Bound, now_us: u64) -> u64 {
        let spent = bound.quota().map_or(0, |quota| self.model.reset(quota, now_us));
        let held = self.holds.iter().map(|hold| hold.0.saturating_sub(now_us)).max();
        let credit = self.debt_ns(now_us).div_ceil(1_000) as u64;
        spent.max(held.unwrap_or(0)).max(if let Bound::Credit(_) = bound { credit } else { 0 })
    }

    fn spend(&mut self, bound: &Bound, cost: u64, now_us: u64) {
        let Some(quota) = bound.quota() else { return };
        if let Bound::Credit(_) = bound {
            let used = self.used(bound, now_us);
            let beyond = Self::above(quota, used + cost) - Self::above(quota, used);
            self.debt_ns = self.debt_ns(now_us) + u128::from(beyond) * Self::interval_ns(quota);
            self.debt_at_us = now_us;
        }
        if cost > 0 {
            self.model.admit(quota, cost, now_us);
        }
    }

    fn hold(&mut self, id: HoldId, amount: u64, until_us: u64) {
        if amount > 0 {
            self.holds.push((until_us, id, amount));
        }
    }

    fn advance(&mut self, bound: &Bound, now_us: u64) {
        if let Some(quota) = bound.quota() {
            self.model.advance(quota, now_us);
        }
        self.holds.retain(|hold| hold.0 > now_us);
    }
}

fn bound(random: &mut Random, seed: u64) -> Bound {
    let limit = random.pick(&[1, 2, 3, 5, 8]);
    let window = Duration::from_micros(random.pick(&[3, 7, 20, 101]));
    let quota = |algorithm, align| {
        let quota = Quota::new(algorithm, limit, window).expect("a valid quota");
        quota.with_align(align)
    };
    match seed % 11 {
        10 => Bound::Concurrency(limit),
        kind => {
            let algorithm = Algorithm::ALL[(kind % 5) as usize];
            let quota = quota(algorithm, random.pick(&[Align::Epoch, Align::First]));
            match Credit::new(quota, BURST) {
                Ok(credit) if kind >= 5 => Bound::Credit(credit),
                _ => Bound::Window(quota),
            }
        }
    }
}

/// A bucket in the form that it has between two requests: a state where that is enough.
struct Bucket {
    state: Option<State>,
    ledger: Option<Ledger>,
}

impl Bucket {
    fn remembered(&self) -> Remembered<'_> {
        match (&self.ledger, &self.state) {
            (Some(ledger), _) => Remembered::Ledger(ledger),
            (None, Some(state)) => Remembered::State(state),
            (None, None) => Remembered::Nothing,
        }
    }

    fn change<R>(&mut self, change: impl FnOnce(&mut Ledger) -> R) -> R {
        let mut ledger = self.ledger.take().unwrap_or_else(|| Ledger::new(self.state.take()));
        let result = change(&mut ledger);
        self.state = ledger.take_plain();
        if self.state.is_none() {
            self.ledger = Some(ledger);
        }
        result
    }
}

struct Trace {
    random: Random,
    bound: Bound,
    bucket: Bucket,
    reference: Reference,
    now_us: u64,
    /// Holds that were made, the last of them first over or not.
    made: Vec<(HoldId, Timestamp)>,
}

impl Trace {
    fn new(seed: u64) -> Self {
        let mut random = Random::seeded(seed);
        let bound = bound(&mut random, seed);
        let now_us = random.pick(&[0, 1_000, 1_700_000_000_000_000]);
        let bucket = Bucket { state: None, ledger: None };
        Self { random, bound, bucket, reference: Reference::new(), now_us, made: Vec::new() }
    }

    fn now(&self) -> Timestamp {
        Timestamp::from_micros(self.now_us)
    }

    fn step(&mut self, id: u64) {
        self.now_us += self.random.pick(&[0, 0, 1, 1, 2, 5, 30, 150]);
        let (bound, now) = (self.bound, self.now());
        self.reference.advance(&bound, self.now_us);
        match self.random.below(10) {
            0 => self.settle(),
            1 => self.restart(),
            _ => self.ask(id),
        }
        let used = self.reference.used(&bound, self.now_us);
        let held = self.reference.held(self.now_us);
        assert_eq!(level(&bound, self.bucket.remembered(), now), Level { used, held });
    }

    fn ask(&mut self, id: u64) {
        let (bound, now) = (self.bound, self.now());
        let cost = self.random.pick(&[0, 1, 1, 1, 2, 4, 12]);
        let until = now + Duration::from_micros(self.random.pick(&[1, 4, 30, 200]));
        let holds = self.random.below(3) == 0 || bound.quota().is_none();
        let taking = if holds { Taking::Hold { until } } else { Taking::Spend };
        let expected = self.reference.judge(&bound, cost, taking, self.now_us);
        let decision = judge(&bound, self.bucket.remembered(), Cost(cost), taking, now);
        let answer = Answer {
            allowed: decision.is_allowed(),
            remaining: decision.remaining,
            retry_us: decision.retry_after().map(Duration::as_micros),
            reset_us: decision.reset_after.as_micros(),
        };
        assert_eq!(answer, expected, "{cost} {taking:?} at {now:?} of {bound:?}");
        if !decision.is_allowed() {
            return;
        }
        match taking {
            Taking::Spend => {
                self.bucket.change(|ledger| ledger.spend(&bound, Cost(cost), now));
                self.reference.spend(&bound, cost, self.now_us);
            }
            Taking::Hold { until } => {
                let hold = (HoldId(id), Cost(cost));
                self.bucket.change(|ledger| ledger.hold(&bound, hold, until, now));
                self.reference.hold(HoldId(id), cost, until.as_micros());
                self.made.push((HoldId(id), until));
            }
        }
    }

    /// Ends some hold, which may be over, with another cost than it held.
    fn settle(&mut self) {
        let Some((id, until)) = self.made.pop() else { return };
        let (bound, now) = (self.bound, self.now());
        let actual = self.random.pick(&[0, 1, 3, 9]);
        let held = self.bucket.change(|ledger| {
            let held = ledger.release(id, until, now);
            match bound.quota() {
                // In a credit, what goes beyond is known by the bound only.
                Some(_) if matches!(bound, Bound::Window(_)) && actual == 3 => {
                    ledger.spend_as_counted(Cost(actual), now);
                }
                Some(_) | None => ledger.spend(&bound, Cost(actual), now),
            }
            held
        });
        let at = self.reference.holds.iter().position(|hold| hold.1 == id);
        assert_eq!(held, at.map(|at| self.reference.holds.remove(at).2));
        self.reference.spend(&bound, actual, self.now_us);
    }

    fn restart(&mut self) {
        let now = self.now();
        let level_before = level(&self.bound, self.bucket.remembered(), now);
        self.bucket.change(|ledger| {
            let mut bytes = Vec::new();
            ledger.encode(&mut bytes);
            *ledger = Ledger::decode(&bytes).expect("what was written");
            let mut again = Vec::new();
            ledger.encode(&mut again);
            assert_eq!(again, bytes);
            assert!(Ledger::decode(&bytes[..bytes.len() - 1]).is_err());
        });
        assert_eq!(level(&self.bound, self.bucket.remembered(), now), level_before);
    }
}

#[test]
fn every_answer_is_that_of_the_reference() {
    for seed in 0..1_100 {
        let mut trace = Trace::new(seed);
        for id in 1..60 {
            trace.step(id);
        }
    }
}

#[test]
fn bucket_equals_a_fresh_one_from_its_expiry() {
    for seed in 0..440 {
        let mut trace = Trace::new(seed);
        (1..40).for_each(|id| trace.step(id));
        let (bound, bucket) = (trace.bound, trace.bucket);
        let Some(ledger) = bucket.ledger else { continue };
        let expiry = ledger.expires_at();
        for cost in [0, 1, 8] {
            let judged = |remembered| judge(&bound, remembered, Cost(cost), Taking::Spend, expiry);
            assert_eq!(judged(Remembered::Ledger(&ledger)), judged(Remembered::Nothing));
        }
    }
}

/// The example of the definition: a thousand a second and fifty more, which fill in ten seconds.
#[test]
fn credit_is_taken_above_the_limit_and_fills_in_ten_windows() {
    let second = Duration::from_secs(1);
    let quota = Quota::new(Algorithm::SlidingLog, 1_000, second).expect("a valid quota");
    let bound = Bound::Credit(Credit::new(quota, 50).expect("a valid credit"));
    let mut ledger = Ledger::new(None);
    let mut pass = |at_s: u64, offered: u64| {
        let now = Timestamp::from_micros(1_700_000_000_000_000 + at_s * 1_000_000);
        let allowed = (0..offered).filter(|_| {
            let remembered = Remembered::Ledger(&ledger);
            let decision = judge(&bound, remembered, Cost::ONE, Taking::Spend, now);
            if decision.is_allowed() {
                ledger.spend(&bound, Cost::ONE, now);
            }
            decision.is_allowed()
        });
        allowed.count()
    };
    assert_eq!(pass(0, 2_000), 1_050);
    assert_eq!(pass(1, 2_000), 1_005, "a tenth of the credit has come back");
    assert_eq!(pass(2, 1_000), 1_000, "within the limit nothing is taken from it");
    assert_eq!(pass(12, 2_000), 1_050);
    let sum: usize = (13..113).map(|at_s| pass(at_s, 2_000)).sum();
    assert_eq!(sum, 100 * 1_005, "in the long run the limit and a burst per ten windows");
}

#[test]
fn credit_of_a_bucket_that_drains_evenly_is_refused() {
    let quota = Quota::new(Algorithm::Gcra, 5, Duration::from_secs(1)).expect("a valid quota");
    assert_eq!(Credit::new(quota, 1), Err(super::QuotaError::CreditOfGcra));
}

#[test]
fn refund_gives_a_credit_back_what_it_had_paid() {
    let quota = Quota::new(Algorithm::SlidingLog, 3, Duration::from_secs(1)).expect("valid");
    let bound = Bound::Credit(Credit::new(quota, BURST).expect("valid"));
    let now = Timestamp::from_millis(1_000);
    let mut ledger = Ledger::new(None);
    ledger.spend(&bound, Cost(6), now);
    assert_eq!(ledger.refund(Some(&bound), Cost(2), now), 2);
    let free = |ledger: &Ledger| {
        judge(&bound, Remembered::Ledger(ledger), Cost::ZERO, Taking::Spend, now).remaining
    };
    assert_eq!(free(&ledger), 2);
    assert_eq!(ledger.refund(Some(&bound), Cost(9), now), 4);
    assert_eq!(free(&ledger), 6, "never more than there was");
}

#[test]
fn retry_of_a_lease_ends_with_the_earliest_that_makes_room() {
    let (bound, now) = (Bound::Concurrency(3), Timestamp::from_millis(5_000));
    let mut ledger = Ledger::new(None);
    for (id, millis) in [(1, 900), (2, 300), (3, 600)] {
        ledger.hold(&bound, (HoldId(id), Cost::ONE), now + Duration::from_millis(millis), now);
    }
    let retry_ms = |cost| {
        let taking = Taking::Hold { until: now + Duration::from_secs(9) };
        judge(&bound, Remembered::Ledger(&ledger), Cost(cost), taking, now).retry_after_ms()
    };
    assert_eq!([retry_ms(1), retry_ms(2), retry_ms(3), retry_ms(4)], [300, 600, 900, -1]);
}

#[test]
fn combined_answer_is_the_tightest_or_the_first_that_fails_with_the_longest_times() {
    let answer = |remaining, verdict, reset_ms| super::Decision {
        verdict,
        limit: remaining + 100,
        remaining,
        reset_after: Duration::from_millis(reset_ms),
    };
    let allow = |remaining| answer(remaining, super::Verdict::Allow, 9_000);
    let deny = |remaining, retry_ms: Option<u64>, reset_ms| {
        let retry_after = retry_ms.map(Duration::from_millis);
        answer(remaining, super::Verdict::Deny { retry_after }, reset_ms)
    };
    let numbers = |decisions: &[super::Decision]| {
        let answer = combined(decisions.iter())?;
        let times = (answer.retry_after_ms(), answer.reset_after_ms());
        Some((answer.is_allowed(), answer.remaining, times))
    };
    assert_eq!(numbers(&[]), None);
    assert_eq!(numbers(&[allow(5), allow(2), allow(3)]), Some((true, 2, (-1, 9_000))));
    let failing = [allow(0), deny(4, Some(70), 10), deny(1, Some(200), 8)];
    assert_eq!(numbers(&failing), Some((false, 4, (200, 10))));
    let never = [deny(4, Some(70), 10), deny(1, None, 8), deny(1, Some(90), 30)];
    assert_eq!(numbers(&never), Some((false, 4, (-1, 30))));
}
