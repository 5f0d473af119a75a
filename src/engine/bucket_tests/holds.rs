//! Reservations and leases: what they keep from others, how they end, and what takes them back.

use super::*;
use crate::engine::Usage;

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
fn collected_changes_give_the_buckets_again() {
    let (engine, copy) = (Engine::new(1, 7), Engine::new(1, 7));
    engine.track_changes(true);
    let mut follower = tests::Follower::default();
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
        if id % 20 == 0 {
            follower.collect(&engine, 0);
        }
    }
    follower.collect(&engine, 0);
    while !engine.sweep(now) {}
    follower.replay(&copy, now);
    assert_eq!(buckets(&copy, now), buckets(&engine, now));
    assert_eq!(copy.tenant_usage(TENANT), engine.tenant_usage(TENANT));
}

#[test]
fn ids_and_their_tickets_names_never_repeat() {
    let engine = Engine::new(4, 7);
    let mut names: Vec<[u8; 9]> = (0..10_000).map(|_| ticket_name(engine.draw_hold_id())).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), 10_000);
}

#[test]
fn hold_on_a_bucket_that_was_reset_is_charged_by_the_bound_that_is_known() {
    let engine = Engine::new(4, 7);
    let reserve = |id| Manner::Reserve(hold(id, START + SECOND));
    let bucket = name(b'a', 1);
    for (id, bound, used) in [(1, None, 0), (2, Some(log(9)), 4)] {
        assert!(Request::new(&[(1, log(9), 2)]).manner(reserve(id)).passes(&engine, START));
        let settled = engine.transact(Scope::All, 0, START, |view| {
            assert!(view.forget_bucket(engine.key(&bucket)));
            view.settle(HoldId(id), Cost(4), |_, _| bound)
        });
        assert_eq!(settled, Some(Settled { estimate: Cost(2), buckets: 0 }));
        assert_eq!(level(&engine, 1, log(9), START), (used, 0));
    }
}
