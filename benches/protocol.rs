//! Requests scanned and replies written in a second, on one core.
//!
//! A buffer of 16 KiB of one request repeated is scanned whole, and each argument's length is
//! read. Run: `cargo bench --bench protocol --features fuzzing`.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use std::hint::black_box;
use tollgate::fuzzing::{Worker, reply_bulk, reply_integers};

/// What a worker reads at once.
const BUFFER_BYTES: usize = 16 << 10;

fn encode(args: &[&str]) -> String {
    let bulks = args.iter().map(|arg| format!("${}\r\n{arg}\r\n", arg.len()));
    format!("*{}\r\n{}", args.len(), bulks.collect::<String>())
}

fn scan(criterion: &mut Criterion) {
    let requests = [
        ("set", encode(&["SET", "key:000000000123", "xxxxxxxx"])),
        ("ping", encode(&["PING"])),
        ("rl_limit", encode(&["RL.LIMIT", "key:000000000123", "100", "1m", "COST", "1"])),
        ("inline_ping", "PING\r\n".to_owned()),
    ];
    let mut group = criterion.benchmark_group("scan");
    for (name, request) in requests {
        // At most as many as one scan takes.
        let count = (BUFFER_BYTES / request.len()).min(1_024);
        let input = request.repeat(count);
        let mut worker = Worker::default();
        group.throughput(Throughput::Elements(count as u64));
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                let (found, bytes) = worker.scan(black_box(input.as_bytes()));
                assert_eq!(found, count);
                bytes
            });
        });
    }
    group.finish();
}

fn reply(criterion: &mut Criterion) {
    const COUNT: usize = 100;
    let mut group = criterion.benchmark_group("reply");
    group.throughput(Throughput::Elements(COUNT as u64));
    let mut out = Vec::new();
    group.bench_function("five_integers", |bencher| {
        bencher.iter(|| {
            out.clear();
            for _ in 0..COUNT {
                reply_integers(&mut out, black_box(&[0, 100, 99, -1, 60_000]));
            }
            out.len()
        });
    });
    group.bench_function("bulk", |bencher| {
        bencher.iter(|| {
            out.clear();
            for _ in 0..COUNT {
                reply_bulk(&mut out, black_box(b"xxxxxxxx"));
            }
            out.len()
        });
    });
    group.finish();
}

criterion_group!(benches, scan, reply);
criterion_main!(benches);
