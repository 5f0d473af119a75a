//! What one decision costs on an established key: allowed, denied and peeked, for each algorithm
//! at limits of 10, 100 and 1,000 per window, with that many entries in the logs.
//!
//! Allowed requests come at exactly the rate of the limit, so that a log forgets one entry with
//! each it takes. The last group walks over many keys, so that each check finds its state cold.

use std::hint::black_box;

use criterion::{Bencher, Criterion, criterion_group, criterion_main};
use tollgate::limit::{Algorithm, Cost, Quota, State, check, peek};
use tollgate::time::{Duration, Timestamp};

const WINDOW: Duration = Duration::from_secs(10);
const START: Timestamp = Timestamp::from_micros(1_700_000_000_000_000);
const LIMITS: [u64; 3] = [10, 100, 1_000];

fn quota(algorithm: Algorithm, limit: u64) -> Quota {
    Quota::new(algorithm, limit, WINDOW).expect("a valid quota")
}

/// Spent to the limit, evenly, over one window that ends at the moment returned.
fn filled(quota: &Quota, cost: Cost) -> (State, Timestamp, Duration) {
    let step = Duration::from_micros(WINDOW.as_micros() / quota.limit() * cost.0);
    let mut state = State::new(quota, START);
    let mut now = START;
    // Far enough that every chunk has been used before.
    for _ in 0..3 * quota.limit() {
        check(quota, &mut state, cost, now);
        now = now + step;
    }
    (state, now, step)
}

fn allowed(bencher: &mut Bencher, quota: &Quota, cost: Cost) {
    let (mut state, mut now, step) = filled(quota, cost);
    bencher.iter(|| {
        now = now + step;
        check(black_box(quota), &mut state, black_box(cost), now)
    });
}

fn denied(bencher: &mut Bencher, quota: &Quota, cost: Cost) {
    let (mut state, now, _) = filled(quota, cost);
    while check(quota, &mut state, Cost::ONE, now).is_allowed() {}
    bencher.iter(|| check(black_box(quota), &mut state, black_box(cost), now));
}

fn peeked(bencher: &mut Bencher, quota: &Quota, cost: Cost) {
    let (state, now, _) = filled(quota, cost);
    bencher.iter(|| peek(black_box(quota), &state, black_box(cost), now));
}

fn decisions(criterion: &mut Criterion) {
    for algorithm in Algorithm::ALL {
        let mut group = criterion.benchmark_group(algorithm.name());
        for limit in LIMITS {
            let quota = quota(algorithm, limit);
            group.bench_function(format!("allowed/{limit}"), |b| allowed(b, &quota, Cost::ONE));
            group.bench_function(format!("denied/{limit}"), |b| denied(b, &quota, Cost::ONE));
            group.bench_function(format!("peek/{limit}"), |b| peeked(b, &quota, Cost::ONE));
        }
    }
}

fn costs(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("sliding-log-cost-3");
    for limit in LIMITS {
        let quota = quota(Algorithm::SlidingLog, limit);
        group.bench_function(format!("allowed/{limit}"), |b| allowed(b, &quota, Cost(3)));
        group.bench_function(format!("denied/{limit}"), |b| denied(b, &quota, Cost(3)));
    }
}

fn many_keys(criterion: &mut Criterion) {
    const KEYS: usize = 200_000;
    let mut group = criterion.benchmark_group("of-200000-keys");
    for algorithm in Algorithm::ALL {
        let quota = quota(algorithm, 10);
        let (state, mut now, step) = filled(&quota, Cost::ONE);
        let mut states = vec![state; KEYS];
        let mut index = 0;
        group.bench_function(algorithm.name(), |bencher| {
            bencher.iter(|| {
                // A stride that meets every key before it returns, and no neighbour.
                index = (index + 77_773) % KEYS;
                if index == 0 {
                    now = now + step;
                }
                check(black_box(&quota), &mut states[index], Cost::ONE, now)
            });
        });
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(30).without_plots();
    targets = decisions, costs, many_keys
}
criterion_main!(benches);
