//! Policy buckets: several quotas together against one after another, holds and their ends,
//! tenants' bounds, and what happens at once.

mod holds;
mod tenants;
mod together;

use std::collections::BTreeMap;

use super::tests::START;
use super::*;
use crate::limit::{Algorithm, Bound, Cost, Credit, Decision, HoldId, Quota};
use crate::time::Duration;

/// The name of a bucket of a tenant of one letter.
fn name(tenant: u8, bucket: u8) -> Vec<u8> {
    vec![1, tenant, b'/', bucket]
}

const TENANT: &[u8] = &[1, b'a'];

const SECOND: Duration = Duration::from_secs(1);

fn window(algorithm: Algorithm, limit: u64, window_ms: u64) -> Bound {
    let window = Duration::from_millis(window_ms);
    Bound::Window(Quota::new(algorithm, limit, window).expect("a valid quota"))
}

fn log(limit: u64) -> Bound {
    window(Algorithm::SlidingLog, limit, 1_000)
}

/// A request in plain words: buckets of tenant `a` with what they are held to.
#[derive(Clone)]
struct Request {
    asked: Vec<(u8, Bound, u64)>,
    manner: Manner,
    keys_max: Option<u64>,
    shadow: bool,
    count_denied: bool,
}

impl Request {
    fn new(asked: &[(u8, Bound, u64)]) -> Self {
        let manner = Manner::Spend;
        Self { asked: asked.to_vec(), manner, keys_max: None, shadow: false, count_denied: false }
    }

    fn manner(self, manner: Manner) -> Self {
        Self { manner, ..self }
    }

    fn at(&self, engine: &Engine, now: Timestamp) -> Result<Answers, Full> {
        let names: Vec<Vec<u8>> = self.asked.iter().map(|asked| name(b'a', asked.0)).collect();
        let mut asked = Vec::new();
        for (bucket, (_, bound, cost)) in names.iter().zip(&self.asked) {
            asked.push(Asked {
                key: engine.key(bucket),
                bound: *bound,
                cost: Cost(*cost),
                enforced: !self.shadow,
                count_denied: self.count_denied,
            });
        }
        let mut keys: Vec<KeyRef<'_>> = asked.iter().map(|asked| asked.key).collect();
        let ticket = match self.manner {
            Manner::Reserve(hold) | Manner::Lease(hold) => ticket_name(hold.id),
            Manner::Peek | Manner::Spend => ticket_name(HoldId(0)),
        };
        keys.push(engine.key(&ticket));
        engine.transact(Scope::Keys(&keys), 0, now, |view| {
            view.check_buckets(&asked, self.manner, self.keys_max)
        })
    }

    fn passes(&self, engine: &Engine, now: Timestamp) -> bool {
        self.at(engine, now).expect("there is room").iter().all(Decision::is_allowed)
    }
}

fn hold(id: u64, until: Timestamp) -> Hold {
    Hold { id: HoldId(id), until }
}

fn settle(engine: &Engine, id: u64, actual: u64, now: Timestamp) -> Option<Settled> {
    engine.transact(Scope::All, 0, now, |view| view.settle(HoldId(id), Cost(actual), |_, _| None))
}

fn level(engine: &Engine, bucket: u8, bound: Bound, now: Timestamp) -> (u64, u64) {
    engine.transact(Scope::All, 0, now, |view| {
        let bucket = name(b'a', bucket);
        let level = view.bucket_level(view.key(&bucket), &bound);
        (level.used, level.held)
    })
}

/// All that the space of buckets holds, as it is encoded.
fn buckets(engine: &Engine, now: Timestamp) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let mut all = BTreeMap::new();
    engine.transact(Scope::All, BUCKETS, now, |view| {
        view.scan(Cursor::default(), &mut { usize::MAX }, |key, value| {
            let mut encoded = Vec::new();
            value.encode(&mut encoded);
            all.insert(key.to_vec(), encoded);
        });
    });
    all
}

/// A small generator of numbers, the same on every run.
fn dice(seed: u64) -> impl FnMut(u64) -> u64 {
    let engine = Engine::new(1, seed);
    move |below| engine.dice() % below
}

#[test]
fn denied_request_changes_nothing_in_any_bucket() {
    let engine = Engine::new(4, 7);
    assert!(Request::new(&[(1, log(2), 2)]).passes(&engine, START));
    let later = START + Duration::from_millis(1);
    let before = buckets(&engine, later);
    let other = window(Algorithm::Gcra, 9, 50);
    for manner in [Manner::Spend, Manner::Peek, Manner::Reserve(hold(1, START + SECOND))] {
        for asked in [
            &[(2, log(9), 1), (1, log(2), 1)][..],
            &[(1, log(2), 1), (2, log(9), 1), (3, other, 1)],
            &[(3, other, 10), (1, other, 1)],
        ] {
            assert!(!Request::new(asked).manner(manner).passes(&engine, later));
            assert_eq!(buckets(&engine, later), before);
        }
    }
    assert_eq!(engine.tenant_usage(TENANT).keys, 1);
}

#[test]
fn peek_answers_as_a_spend_would_and_spends_nothing() {
    let engine = Engine::new(4, 7);
    let asked = [(1, log(3), 2), (2, window(Algorithm::Gcra, 5, 900), 2)];
    let request = Request::new(&asked);
    let peek = request.clone().manner(Manner::Peek);
    for _ in 0..3 {
        let before = buckets(&engine, START);
        let peeked = peek.at(&engine, START);
        assert_eq!(buckets(&engine, START), before);
        assert_eq!(request.at(&engine, START), peeked);
    }
}

#[test]
fn quota_in_shadow_stops_nothing_and_counts_what_it_would_pass() {
    let engine = Engine::new(4, 7);
    let request = Request { shadow: true, ..Request::new(&[(1, log(2), 1)]) };
    let allowed: Vec<bool> = (0..4).map(|_| request.passes(&engine, START)).collect();
    assert_eq!(allowed, [true, true, false, false]);
    assert_eq!(level(&engine, 1, log(2), START), (2, 0));
    let both = Request { shadow: true, ..Request::new(&[(1, log(2), 1), (2, log(9), 1)]) };
    both.at(&engine, START).expect("there is room");
    assert_eq!(level(&engine, 2, log(9), START), (1, 0), "the other one has passed it");
}

#[test]
fn denied_requests_count_where_a_rule_says_so() {
    let engine = Engine::new(4, 7);
    for (bucket, algorithm, used) in
        [(1, Algorithm::SlidingLog, 10), (2, Algorithm::FixedWindow, 10), (3, Algorithm::Gcra, 4)]
    {
        let bound = window(algorithm, 2, 1_000);
        let hammer = Request { count_denied: true, ..Request::new(&[(bucket, bound, 1)]) };
        let passed = (0..10).filter(|_| hammer.passes(&engine, START)).count();
        assert_eq!(passed, 2);
        assert_eq!(level(&engine, bucket, bound, START), (used, 0), "{algorithm:?}");
        let peek = hammer.clone().manner(Manner::Peek);
        peek.at(&engine, START).expect("there is room");
        assert_eq!(level(&engine, bucket, bound, START), (used, 0));
    }
}

/// A denial stands while nothing but spends and holds happen.
#[test]
fn generation_of_a_bucket_moves_only_when_quota_may_come_back() {
    let engine = Engine::new(1, 7);
    let bucket = name(b'a', 1);
    let key = engine.key(&bucket);
    let moved = |act: &dyn Fn()| {
        let before = engine.limiter_generation(key);
        act();
        engine.limiter_generation(key) != before
    };
    let spend = |limit| {
        move |engine: &Engine| {
            Request::new(&[(1, log(limit), 1)]).at(engine, START).expect("there is room");
        }
    };
    assert!(!moved(&|| spend(3)(&engine)), "the first spend");
    assert!(!moved(&|| spend(3)(&engine)));
    let reserve = Request::new(&[(1, log(3), 1)]).manner(Manner::Reserve(hold(1, START + SECOND)));
    assert!(!moved(&|| assert!(reserve.passes(&engine, START))));
    assert!(!moved(&|| assert!(settle(&engine, 1, 1, START).is_some())));
    assert!(!moved(&|| spend(3)(&engine)), "a denial");
    let refund = |view: &mut View<'_>| view.refund_bucket(key, &log(3), Cost(1));
    assert!(moved(&|| assert_eq!(engine.transact(Scope::All, 0, START, refund), 1)));
    let gcra = Request::new(&[(1, window(Algorithm::Gcra, 9, 1_000), 1)]);
    assert!(moved(&|| assert!(gcra.passes(&engine, START))), "another algorithm");
    let forget = |view: &mut View<'_>| view.forget_bucket(key);
    assert!(moved(&|| assert!(engine.transact(Scope::All, 0, START, forget))));
    spend(3)(&engine);
    assert!(!moved(&|| while !engine.sweep(START + SECOND) {}), "its time was over");
    assert_eq!(engine.stats().buckets, 0);
}

#[test]
fn changed_limit_holds_at_once_and_keeps_what_was_spent_and_held() {
    let engine = Engine::new(4, 7);
    let credit = |limit| {
        let quota = Quota::new(Algorithm::SlidingLog, limit, SECOND).expect("valid");
        Bound::Credit(Credit::new(quota, 3).expect("a valid credit"))
    };
    let reserve = Manner::Reserve(hold(1, START + SECOND));
    assert!(Request::new(&[(1, log(9), 2)]).manner(reserve).passes(&engine, START));
    assert!(Request::new(&[(1, log(9), 4)]).passes(&engine, START));
    for (bound, left) in [
        (log(7), 1),
        (log(5), 0),
        (credit(5), 2),
        (credit(9), 6),
        (window(Algorithm::Gcra, 10, 1_000), 4),
        (window(Algorithm::FixedWindow, 12, 9_000), 6),
        (Bound::Concurrency(3), 1),
        (log(9), 3),
    ] {
        let looks = Request::new(&[(1, bound, 0)]).at(&engine, START).expect("there is room");
        assert_eq!(looks[0].remaining, left, "{bound:?}");
        let over = Request::new(&[(1, bound, left + 1)]);
        assert!(!over.passes(&engine, START), "{bound:?}");
    }
}
