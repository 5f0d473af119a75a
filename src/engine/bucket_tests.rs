//! Policy buckets: several quotas together against one after another, holds and their ends,
//! tenants' bounds, and what happens at once.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use super::buckets::{Answers, Asked, Hold, Manner};
use super::tenants::{Full, Usage};
use super::tests::START;
use super::*;
use crate::limit::{
    Algorithm, Bound, Cost, Credit, Decision, HoldId, Ledger, Quota, Remembered, Taking, judge,
};
use crate::time::Duration;

/// The name of a bucket of a tenant of one letter.
fn name(tenant: u8, bucket: u8) -> Vec<u8> {
    vec![1, tenant, b'/', bucket]
}

const TENANT: &[u8] = &[1, b'a'];

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

/// Every bucket as a ledger in a map, each quota judged by itself, and spent only if all allow.
#[test]
fn several_quotas_answer_as_one_after_another_would_and_are_spent_together() {
    let credit = Quota::new(Algorithm::SlidingWindow, 4, Duration::from_millis(700));
    let credit = Credit::new(credit.expect("valid"), 3).expect("a valid credit");
    let bounds = [
        log(6),
        window(Algorithm::Gcra, 5, 900),
        window(Algorithm::FixedWindow, 9, 3_000),
        window(Algorithm::SlidingCounter, 7, 1_100),
        Bound::Credit(credit),
        Bound::Concurrency(3),
    ];
    for seed in 0..60 {
        let (engine, mut dice) = (Engine::new(4, seed), dice(seed));
        let mut model: BTreeMap<u8, Ledger> = BTreeMap::new();
        let mut made: Vec<(u64, Timestamp, Vec<u8>)> = Vec::new();
        let mut now = START;
        for id in 1..400 {
            now = now + Duration::from_millis(dice(150));
            if dice(8) == 0 && !made.is_empty() {
                let (id, until, held) = made.swap_remove(dice(made.len() as u64) as usize);
                let actual = dice(4);
                let is_live = until > now;
                assert_eq!(settle(&engine, id, actual, now).is_some(), is_live);
                for bucket in held.iter().filter(|_| is_live) {
                    let ledger = model.get_mut(bucket).expect("it was held");
                    ledger.release(HoldId(id), until, now);
                    ledger.spend_as_counted(Cost(actual), now);
                }
                continue;
            }
            let first = dice(3) as u8;
            let asked: Vec<(u8, Bound, u64)> = (first..first + 1 + dice(4) as u8)
                .map(|bucket| (bucket, bounds[usize::from(bucket) % bounds.len()], 1 + dice(2)))
                .collect();
            let until = now + Duration::from_millis(1 + dice(2_000));
            let holds = dice(3) == 0;
            let manner = if holds { Manner::Reserve(hold(id, until)) } else { Manner::Spend };
            let answers = Request::new(&asked).manner(manner).at(&engine, now);
            let taking = if holds { Taking::Hold { until } } else { Taking::Spend };
            let expected: Answers = asked
                .iter()
                .map(|(bucket, bound, cost)| {
                    let remembered =
                        model.get(bucket).map_or(Remembered::Nothing, Remembered::Ledger);
                    judge(bound, remembered, Cost(*cost), taking, now)
                })
                .collect();
            let passes = expected.iter().all(Decision::is_allowed);
            assert_eq!(answers, Ok(expected), "{asked:?}");
            if !passes {
                continue;
            }
            for (bucket, bound, cost) in &asked {
                let ledger = model.entry(*bucket).or_insert_with(|| Ledger::new(None));
                if holds {
                    ledger.hold(bound, (HoldId(id), Cost(*cost)), until, now);
                } else {
                    ledger.spend(bound, Cost(*cost), now);
                }
            }
            if holds {
                made.push((id, until, asked.iter().map(|asked| asked.0).collect()));
            }
        }
    }
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

const SECOND: Duration = Duration::from_secs(1);

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

#[test]
fn reservation_is_respected_and_settled_at_its_true_cost() {
    let engine = Engine::new(4, 7);
    let asked = [(1, log(10), 6), (2, log(20), 6)];
    let until = START + Duration::from_secs(5);
    let reserve = |id| Request::new(&asked).manner(Manner::Reserve(hold(id, until)));
    assert!(reserve(1).passes(&engine, START));
    assert!(!reserve(2).passes(&engine, START));
    assert!(!Request::new(&[(1, log(10), 5)]).passes(&engine, START));
    assert_eq!(level(&engine, 1, log(10), START), (0, 6));
    let ticket = engine.ticket(HoldId(1), START).expect("nothing is long").expect("it holds");
    assert_eq!((ticket.tenant(), ticket.buckets().count()), (TENANT, 2));
    let settled = Settled { estimate: Cost(6), buckets: 2 };
    assert_eq!(settle(&engine, 1, 13, START), Some(settled));
    assert_eq!(level(&engine, 1, log(10), START), (13, 0), "charged above the limit");
    assert_eq!(level(&engine, 2, log(20), START), (13, 0));
    assert_eq!(settle(&engine, 1, 13, START), None, "once only");
    let opens = Request::new(&[(1, log(10), 1)]).at(&engine, START).expect("there is room");
    assert_eq!((opens[0].remaining, opens[0].retry_after_ms()), (0, 1_000));
    assert_eq!(engine.tenant_usage(TENANT).keys, 2, "the ticket has gone");
}

#[test]
fn expired_hold_is_given_back_and_counted_once() {
    let engine = Engine::new(4, 7);
    let asked = [(1, log(10), 8), (2, Bound::Concurrency(1), 1)];
    let until = START + SECOND;
    let reserve = Request::new(&asked).manner(Manner::Reserve(hold(1, until)));
    assert!(reserve.passes(&engine, START));
    let before = until - Duration::from_micros(1);
    let again = Request::new(&asked).manner(Manner::Reserve(hold(2, until + SECOND)));
    let answers = again.at(&engine, before).expect("there is room");
    assert!(answers.iter().all(|answer| answer.retry_after() == Some(Duration::from_micros(1))));
    assert!(again.passes(&engine, until));
    assert_eq!(settle(&engine, 1, 3, until), None);
    let swept = until + SECOND + SECOND;
    while !engine.sweep(swept) {}
    let stats = engine.stats();
    assert_eq!((stats.holds_expired, stats.expired, stats.buckets), (2, 0, 0));
    assert_eq!(engine.tenant_usage(TENANT), Usage::default());
    assert_eq!(engine.used_bytes(), 0);
}

#[test]
fn lease_spends_windows_and_holds_places_until_it_is_released() {
    let engine = Engine::new(4, 7);
    let asked = [(1, log(10), 3), (2, Bound::Concurrency(1), 1)];
    let lease = |id| Request::new(&asked).manner(Manner::Lease(hold(id, START + SECOND)));
    assert!(lease(1).passes(&engine, START));
    assert!(!lease(2).passes(&engine, START));
    assert!(!Request::new(&asked).passes(&engine, START), "an ordinary check respects it");
    assert_eq!(settle(&engine, 1, 0, START), Some(Settled { estimate: Cost(3), buckets: 1 }));
    assert_eq!(level(&engine, 1, log(10), START), (3, 0));
    assert_eq!(engine.stats().buckets, 1, "no bucket stays for a place that is free");
    assert!(lease(3).passes(&engine, START));
}

#[test]
fn no_tenant_has_more_keys_than_it_may_and_a_refusal_changes_nothing() {
    let engine = Engine::new(4, 7);
    let asking = |buckets: &[u8]| {
        let asked: Vec<_> = buckets.iter().map(|bucket| (*bucket, log(9), 1)).collect();
        Request { keys_max: Some(4), ..Request::new(&asked) }
    };
    assert!(asking(&[1, 2, 3]).passes(&engine, START));
    let before = buckets(&engine, START);
    assert_eq!(asking(&[4, 1, 5]).at(&engine, START), Err(Full::Tenant));
    let reserve = asking(&[1, 4]).manner(Manner::Reserve(hold(1, START + SECOND)));
    assert_eq!(reserve.at(&engine, START), Err(Full::Tenant), "a ticket is a key as well");
    assert_eq!(buckets(&engine, START), before);
    assert!(asking(&[4, 1]).passes(&engine, START));
    assert_eq!(asking(&[5]).at(&engine, START), Err(Full::Tenant));
    assert!(asking(&[1, 2, 3, 4]).passes(&engine, START), "live ones go on");
    assert_eq!(engine.tenant_usage(TENANT).keys, 4);
    while !engine.sweep(START + SECOND + SECOND) {}
    assert!(asking(&[5]).passes(&engine, START + SECOND + SECOND));
}

#[test]
fn new_bucket_at_the_memory_bound_is_refused_and_a_live_one_is_not() {
    let engine = Engine::new(4, 7);
    assert!(Request::new(&[(1, log(9), 1)]).passes(&engine, START));
    engine.set_memory_max(1);
    assert_eq!(Request::new(&[(2, log(9), 1)]).at(&engine, START), Err(Full::Memory));
    let both = Request::new(&[(1, log(9), 1), (2, log(9), 1)]);
    assert_eq!(both.at(&engine, START), Err(Full::Memory));
    assert!(Request::new(&[(1, log(9), 1)]).passes(&engine, START));
    assert_eq!(level(&engine, 1, log(9), START), (2, 0));
}

#[test]
fn tenant_is_charged_for_its_buckets_while_they_are_there() {
    let engine = Engine::new(1, 7);
    for step in 0..500_u64 {
        let now = START + Duration::from_millis(step);
        let bucket = (step % 7) as u8;
        let asked = [(bucket, log(1_000), 1), (bucket + 7, Bound::Concurrency(1_000), 1)];
        let lease = Manner::Lease(hold(step + 1, now + SECOND));
        assert!(Request::new(&asked).manner(lease).passes(&engine, now));
    }
    let usage = engine.tenant_usage(TENANT);
    let entries = engine.shards[0].lock().table(BUCKETS).map_or(0, Table::len);
    assert_eq!(usage.keys, entries as u64);
    let mut whole = 0;
    engine.shards[0].lock().table(BUCKETS).expect("it is there").walk(
        0,
        &mut { usize::MAX },
        |_, entry| {
            whole += entry.whole_bytes() as u64;
            std::ops::ControlFlow::Continue(())
        },
    );
    assert_eq!(usage.bytes, whole);
    let forgotten = engine.transact(Scope::All, 0, START, |view| view.forget_tenant(TENANT));
    assert_eq!(forgotten as u64, usage.keys);
    assert_eq!((engine.tenant_usage(TENANT), engine.used_bytes()), (Usage::default(), 0));
}

#[test]
fn flush_of_the_buckets_forgets_them_and_no_database() {
    let engine = Engine::new(4, 7);
    tests::put(&engine, b"user", 1, Timestamp::MAX, START);
    assert!(Request::new(&[(1, log(9), 1)]).passes(&engine, START));
    let stats = engine.stats();
    assert_eq!((stats.buckets, stats.databases[0].keys), (1, 1));
    engine.transact(Scope::All, BUCKETS, START, |view| drop(view.flush()));
    assert_eq!(tests::get(&engine, b"user", START), Some(1));
    let usage = engine.tenant_usage(TENANT);
    assert_eq!((engine.stats().buckets, usage), (0, Usage::default()));
}

#[test]
fn revoked_transaction_gives_back_what_it_spent_and_held() {
    let engine = Engine::new(2, 7);
    let (one, two) = (name(b'a', 1), name(b'a', 2));
    let asked = |bucket, bound, cost| {
        let key = engine.key(bucket);
        Asked { key, bound, cost: Cost(cost), enforced: true, count_denied: false }
    };
    assert!(Request::new(&[(1, log(9), 1)]).passes(&engine, START));
    let (before, usage) = (buckets(&engine, START), engine.tenant_usage(TENANT));
    let bytes = engine.used_bytes();
    engine.transact(Scope::All, 0, START, |view| {
        let generation = view.limiter_generation(engine.key(&one));
        let mut revocable = view.revocable();
        let within = revocable.view();
        for (id, manner) in [(1, Manner::Spend), (2, Manner::Reserve(hold(2, START + SECOND)))] {
            let asked = [asked(&one, log(9), id), asked(&two, log(9), id)];
            within.check_buckets(&asked, manner, None).expect("there is room");
        }
        within.settle(HoldId(2), Cost(1), |_, _| None).expect("it holds");
        within.refund_bucket(engine.key(&one), &log(9), Cost(1));
        drop(revocable);
        assert_ne!(view.limiter_generation(engine.key(&one)), generation);
    });
    assert_eq!(buckets(&engine, START), before);
    assert_eq!((engine.tenant_usage(TENANT), engine.used_bytes()), (usage, bytes));
}

#[test]
fn replayed_effects_give_the_buckets_again() {
    let (engine, copy) = (Engine::new(1, 7), Engine::new(1, 7));
    engine.listen();
    let mut dice = dice(3);
    let mut now = START;
    for id in 1..300 {
        now = now + Duration::from_millis(dice(90));
        let asked = [(dice(5) as u8, log(5), 1), (9, Bound::Concurrency(4), 1)];
        let manner = match dice(3) {
            0 => Manner::Spend,
            1 => Manner::Lease(hold(id, now + SECOND)),
            _ => Manner::Reserve(hold(id, now + SECOND)),
        };
        Request::new(&asked).manner(manner).at(&engine, now).expect("there is room");
        settle(&engine, dice(id), dice(3), now);
    }
    // At a moment at which nothing is over yet: what is gone is removed by the effects.
    tests::replay(&engine.drain_effects(0).expect("not too many"), &copy, 0, START);
    assert_eq!(buckets(&copy, now), buckets(&engine, now));
    assert_eq!(copy.tenant_usage(TENANT), engine.tenant_usage(TENANT));
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

/// Two quotas each, of which every two neighbours share one, asked from both ends.
#[test]
fn quotas_are_never_passed_on_eight_threads() {
    const THREADS: u64 = 8;
    const LIMIT: u64 = 500;
    let engine = Engine::new(4, 7);
    let passed: Vec<AtomicU64> = (0..THREADS).map(|_| AtomicU64::new(0)).collect();
    let held = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (engine, passed, held) = (&engine, &passed, &held);
            scope.spawn(move || {
                let (one, two) = (thread as u8, ((thread + 1) % THREADS) as u8);
                let order = if thread % 2 == 0 { [one, two] } else { [two, one] };
                let asked = order.map(|bucket| (bucket, log(LIMIT), 1));
                for round in 0..1_000 {
                    let id = 1 + thread * 10_000 + round;
                    let manner = match round % 3 {
                        0 => Manner::Reserve(hold(id, START + SECOND)),
                        _ => Manner::Spend,
                    };
                    if !Request::new(&asked).manner(manner).passes(engine, START) {
                        continue;
                    }
                    passed[usize::from(one)].fetch_add(1, Ordering::Relaxed);
                    passed[usize::from(two)].fetch_add(1, Ordering::Relaxed);
                    held.fetch_add(u64::from(round % 3 == 0), Ordering::Relaxed);
                }
            });
        }
    });
    let mut levels = 0;
    for (bucket, passed) in passed.iter().enumerate() {
        let (used, held) = level(&engine, bucket as u8, log(LIMIT), START);
        assert_eq!(used + held, passed.load(Ordering::Relaxed), "spent together or not at all");
        assert!(used + held <= LIMIT);
        levels += held;
    }
    assert_eq!(levels, 2 * held.load(Ordering::Relaxed));
    let full = passed.iter().filter(|passed| passed.load(Ordering::Relaxed) == LIMIT).count();
    assert!(full >= 4, "every request was denied by one of its two");
}

#[test]
fn keys_of_a_tenant_are_counted_to_the_one_on_eight_threads() {
    let engine = Engine::new(4, 7);
    let stored = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for bucket in 0..200 {
                    let request =
                        Request { keys_max: Some(77), ..Request::new(&[(bucket, log(100), 1)]) };
                    stored.fetch_add(
                        u64::from(request.at(&engine, START).is_ok()),
                        Ordering::Relaxed,
                    );
                }
            });
        }
    });
    assert_eq!((engine.tenant_usage(TENANT).keys, engine.stats().buckets), (77, 77));
    assert_eq!(stored.load(Ordering::Relaxed), 77 * 8);
}
