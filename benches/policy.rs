//! Policies: compiled, changed, and asked what applies, by the number of rules.
//!
//! A tenant's rules are each for an endpoint of its own, one in ten for a prefix; a request
//! matches one of them. Asking includes finding the tenant and naming the bucket, as RL.CHECK
//! does. Run: `cargo bench --bench policy --features fuzzing`.

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use std::fmt::Write;
use std::hint::black_box;
use tollgate::fuzzing::Policies;

/// The size that the product promises to take within seconds.
const TENANTS: usize = 10_000;
const RULES: usize = 100;

fn document(rules: usize, limit: usize) -> String {
    let mut document = "rules:\n".to_owned();
    for rule in 0..rules {
        let star = if rule % 10 == 9 { "*" } else { "" };
        writeln!(document, "  - endpoint: \"/api/v1/{rule}{star}\"\n    limit: {limit}")
            .expect("a String takes it");
        document.push_str("    window: 1s\n");
    }
    document
}

/// Those of rules that are spread over the document.
fn endpoints(rules: usize) -> Vec<String> {
    (0..64).map(|at| format!("/api/v1/{}", at * 7_919 % rules)).collect()
}

fn compile(criterion: &mut Criterion) {
    let documents: Vec<String> = (0..TENANTS).map(|_| document(RULES, 5)).collect();
    let mut group = criterion.benchmark_group("compile");
    group.sample_size(10).throughput(Throughput::Elements((TENANTS * RULES) as u64));
    group.bench_function("10000_tenants_of_100_rules", |bencher| {
        bencher.iter_with_large_drop(|| Policies::new(black_box(&documents)));
    });
    let mut policies = Policies::new(&documents);
    assert_eq!(policies.tenants(), TENANTS);
    let mut limit = 5;
    group.throughput(Throughput::Elements(1));
    group.bench_function("one_changed_tenant_of_10000", |bencher| {
        let next = || {
            limit += 1;
            document(RULES, limit)
        };
        let change = |document: String| assert_eq!(policies.change(4_711, &document), 1);
        bencher.iter_batched(next, change, BatchSize::PerIteration);
    });
    group.finish();
}

fn matching(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("matching");
    group.throughput(Throughput::Elements(64));
    for rules in [1, 100, 10_000] {
        let policies = Policies::new(&[document(rules, 5)]);
        let endpoints = endpoints(rules);
        let mut name = Vec::new();
        group.bench_function(format!("one_of_{rules}_rules"), |bencher| {
            bencher.iter(|| {
                let count = policies.matching("0", black_box(&endpoints), &mut name);
                assert!(count >= 64);
            });
        });
    }
    group.finish();
}

criterion_group!(benches, matching, compile);
criterion_main!(benches);
