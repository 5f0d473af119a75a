//! What a denial costs from the memory of denials, beside the engine that it spares; and what
//! the memory costs where it has nothing to say.
//!
//! `hot` is one key again and again, `many` are 30,000 in an order that nothing foresees, all of
//! them over their limit. `missed` asks of keys that are not remembered: in an empty table, and
//! in one that is full of others. Run: `cargo bench --bench prefilter --features fuzzing`.

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use tollgate::fuzzing::Limiter;
use tollgate::limit::{Algorithm, Quota};
use tollgate::time::{Duration, Timestamp};

const NOW: Timestamp = Timestamp::from_micros(1_700_000_000_000_000);
const KEYS: usize = 30_000;
const DENIALS_MAX: u32 = 65_536;

fn quota(algorithm: Algorithm) -> Quota {
    Quota::new(algorithm, 10, Duration::from_secs(3_600)).expect("a valid quota")
}

/// As a bucket of a policy is called: tenant, rule and value.
fn names(kind: &str) -> Vec<Vec<u8>> {
    (0..KEYS).map(|at| format!("payment/transfer/{kind}{at:08}").into_bytes()).collect()
}

/// All of these keys are over their limit, and remembered to be.
fn filled(algorithm: Algorithm, keys: &[Vec<u8>]) -> Limiter {
    let limiter = Limiter::new(quota(algorithm), DENIALS_MAX);
    for key in keys {
        while limiter.decide(key, NOW).is_allowed() {}
        limiter.remember(key, limiter.decide(key, NOW), NOW);
    }
    limiter
}

fn walk(at: &mut usize) -> usize {
    // A stride that meets every key before it returns, and no neighbour.
    *at = (*at + 17_773) % KEYS;
    *at
}

fn denials(criterion: &mut Criterion) {
    let keys = names("caller");
    for algorithm in [Algorithm::SlidingLog, Algorithm::Gcra] {
        let mut group = criterion.benchmark_group(format!("denied/{}", algorithm.name()));
        let limiter = filled(algorithm, &keys);
        let mut at = 0;
        group.bench_function("engine/hot", |bencher| {
            bencher.iter(|| limiter.decide(black_box(&keys[0]), NOW));
        });
        group.bench_function("memory/hot", |bencher| {
            bencher.iter(|| limiter.ask(black_box(&keys[0]), NOW).expect("it is remembered"));
        });
        group.bench_function("engine/many", |bencher| {
            bencher.iter(|| limiter.decide(black_box(&keys[walk(&mut at)]), NOW));
        });
        group.bench_function("memory/many", |bencher| {
            bencher.iter(|| limiter.ask(black_box(&keys[walk(&mut at)]), NOW));
        });
        group.bench_function("remember/many", |bencher| {
            let denied = limiter.decide(&keys[0], NOW);
            bencher.iter(|| limiter.remember(black_box(&keys[walk(&mut at)]), denied, NOW));
        });
    }
}

fn misses(criterion: &mut Criterion) {
    let (keys, others) = (names("caller"), names("other"));
    let empty = Limiter::new(quota(Algorithm::SlidingLog), DENIALS_MAX);
    let full = filled(Algorithm::SlidingLog, &others);
    let mut group = criterion.benchmark_group("missed");
    let mut at = 0;
    group.bench_function("empty", |bencher| {
        bencher.iter(|| empty.ask(black_box(&keys[walk(&mut at)]), NOW));
    });
    group.bench_function("full", |bencher| {
        bencher.iter(|| full.ask(black_box(&keys[walk(&mut at)]), NOW));
    });
    group.bench_function("full/hot", |bencher| {
        bencher.iter(|| full.ask(black_box(&keys[0]), NOW));
    });
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(30).without_plots();
    targets = denials, misses
}
criterion_main!(benches);
