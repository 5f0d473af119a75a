//! What a tenant may have and takes, and buckets asked by many threads at once.

use std::sync::atomic::{AtomicU64, Ordering};

use super::*;
use crate::engine::{Usage, table::Table};

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
fn tenant_whose_buckets_are_over_has_room_at_once_swept_or_not() {
    let engine = Engine::new(64, 7);
    let asking = |bucket: u8, now| {
        let asked = [(bucket, log(9), 1)];
        let request = Request { keys_max: Some(40), ..Request::new(&asked) };
        request.at(&engine, now).map(drop)
    };
    for bucket in 0..40 {
        assert_eq!(asking(bucket, START), Ok(()));
    }
    let open = START + SECOND;
    let before = open - Duration::from_micros(1);
    assert_eq!(asking(50, before), Err(Full::Tenant), "none is over yet");
    // Whoever has looked in vain does not look again at once.
    assert_eq!(asking(50, open), Err(Full::Tenant));
    let later = before + Duration::from_millis(2);
    for bucket in 50..90 {
        assert_eq!(asking(bucket, later), Ok(()), "{bucket}");
    }
    assert_eq!(asking(91, later), Err(Full::Tenant));
    assert_eq!((engine.tenant_usage(TENANT).keys, engine.stats().buckets), (40, 40));
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
fn bucket_whose_time_is_over_is_not_among_those_forgotten() {
    let engine = Engine::new(1, 7);
    assert!(Request::new(&[(1, log(9), 1)]).passes(&engine, START));
    let later = START + SECOND + SECOND;
    assert!(Request::new(&[(2, log(9), 1)]).passes(&engine, later));
    let forgotten = engine.transact(Scope::All, 0, later, |view| view.forget_tenant(TENANT));
    assert_eq!((forgotten, engine.tenant_usage(TENANT)), (1, Usage::default()));
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
