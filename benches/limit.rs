//! What one decision costs on an established key: allowed, denied and peeked, for each algorithm
//! at limits of 10, 100 and 1,000 per window, with that many entries in the logs.
//!
//! Allowed requests come at exactly the rate of the limit, so that a log forgets one entry with
//! each it takes. The last groups walk over many keys, so that each check finds its state cold;
//! there the cost is how many lines of memory a check has to wait for, one after the other.

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

/// Every key once, in an order that nothing can foresee.
fn shuffled(keys: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..keys).collect();
    let mut random: u64 = 1;
    for last in (1..keys).rev() {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        order.swap(last, (random >> 33) as usize % (last + 1));
    }
    order
}

/// Large logs of many keys: denied, spent beside what is there, spent as much as is forgotten.
fn cold_logs(criterion: &mut Criterion) {
    const KEYS: usize = 200_000;
    let order = shuffled(KEYS);
    let mut group = criterion.benchmark_group("cold-sliding-log");
    for limit in [100, 200, 1_000] {
        let full = quota(Algorithm::SlidingLog, limit);
        let roomy = quota(Algorithm::SlidingLog, 1_000_000);
        let (state, start, step) = filled(&full, Cost::ONE);
        let mut states = vec![state.clone(); KEYS];
        let (mut turn, mut now) = (0, start - step);
        let mut ask = |quota: &Quota, states: &mut [State], step: Duration| {
            turn += 1;
            if turn == KEYS {
                (turn, now) = (0, now + step);
            }
            check(black_box(quota), &mut states[order[turn]], Cost::ONE, now)
        };
        group.bench_function(format!("denied/{limit}"), |bencher| {
            bencher.iter(|| ask(&full, &mut states, Duration::ZERO));
        });
        group.bench_function(format!("added/{limit}"), |bencher| {
            bencher.iter(|| ask(&roomy, &mut states, Duration::from_micros(1)));
        });
        states.fill(state);
        group.bench_function(format!("steady/{limit}"), |bencher| {
            bencher.iter(|| ask(&full, &mut states, step));
        });
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(30).without_plots();
    targets = decisions, costs, many_keys, cold_logs
}
criterion_main!(benches);
