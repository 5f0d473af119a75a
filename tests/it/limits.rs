//! Limits under many connections at once, and what a key may be.

use std::thread;

use crate::resp::{Connection, encode};
use crate::server::{Program, Tollgate};

const ALGORITHMS: [&str; 5] =
    ["sliding-log", "sliding-window", "sliding-counter", "fixed-window", "gcra"];

/// Asks `calls` times in pipelines and counts what passed.
fn admitted(mut connection: Connection, words: &[&[u8]], calls: usize) -> usize {
    const PIPELINE: usize = 50;
    let pipeline = encode(words).repeat(PIPELINE);
    let mut passed = 0;
    for _ in 0..calls / PIPELINE {
        connection.send(&pipeline);
        passed += (0..PIPELINE).filter(|_| connection.reply()[1] == ":0").count();
    }
    passed
}

#[test]
fn eight_connections_on_one_key_are_admitted_exactly_the_limit() {
    // The program itself, with more workers than this machine may have cores.
    let program = Program::start(&["--set", "server.workers=4"]);
    for algorithm in ALGORITHMS {
        let total: usize = thread::scope(|scope| {
            let callers: Vec<_> = (0..8)
                .map(|_| {
                    let connection = program.connect();
                    scope.spawn(move || {
                        // Nothing leaves a window of a day while this runs.
                        let key = format!("hot:{algorithm}");
                        let words = ["RL.LIMIT", &key, "5000", "1d", "ALGORITHM", algorithm];
                        admitted(connection, &words.map(str::as_bytes), 1_000)
                    })
                })
                .collect();
            callers.into_iter().map(|caller| caller.join().expect("it counts")).sum()
        });
        assert_eq!(total, 5_000, "{algorithm}");
    }
}

#[test]
fn costs_from_many_connections_never_add_up_to_more_than_the_limit() {
    let program = Program::start(&["--set", "server.workers=4"]);
    let total: usize = thread::scope(|scope| {
        let callers: Vec<_> = (1..=8)
            .map(|cost: usize| {
                let connection = program.connect();
                scope.spawn(move || {
                    let cost_word = cost.to_string();
                    let words = ["RL.LIMIT", "mixed", "9999", "1d", "COST", &cost_word];
                    cost * admitted(connection, &words.map(str::as_bytes), 1_000)
                })
            })
            .collect();
        callers.into_iter().map(|caller| caller.join().expect("it counts")).sum()
    });
    // Whoever costs one is refused only when nothing is left.
    assert_eq!(total, 9_999);
}

#[test]
fn parallel_callers_over_fresh_connections_pass_exactly_the_limit() {
    let tollgate = Tollgate::start(&[]);
    let port = tollgate.port();
    let passed: usize = thread::scope(|scope| {
        let callers: Vec<_> = (0..50)
            .map(|_| {
                scope.spawn(move || {
                    (0..4)
                        .filter(|_| {
                            let reply = Connection::open(port).line("RL.LIMIT cc 5 1m");
                            reply.starts_with("*5 :0")
                        })
                        .count()
                })
            })
            .collect();
        callers.into_iter().map(|caller| caller.join().expect("it counts")).sum()
    });
    assert_eq!(passed, 5);
    tollgate.stop();
}

#[test]
fn key_over_its_maximum_is_refused_by_name_and_leaves_nothing() {
    let tollgate = Tollgate::start(&[]);
    let mut connection = tollgate.connect();
    let long = vec![b'a'; 1 << 20];
    for _ in 0..2 {
        let reply = connection.ask(&[b"CL.THROTTLE", &long, b"0", b"1", b"60", b"1"]);
        assert_eq!(reply, ["-ERR key: 1048576 bytes are more than key_bytes_max (65536)"]);
    }
    assert_eq!(connection.line("PING"), "+PONG");
    let longest = vec![b'a'; 65_536];
    let mut other = longest.clone();
    other[65_535] = b'b';
    for (key, limited) in [(&longest, ":0"), (&other, ":0"), (&longest, ":1")] {
        let reply = connection.ask(&[b"RL.LIMIT", key, b"1", b"1m"]);
        assert_eq!(reply[1], limited);
    }
}

#[test]
fn new_limiter_at_the_memory_bound_is_refused_and_a_live_one_goes_on() {
    let tollgate = Tollgate::start(&["--set", "engine.memory_max=64kb"]);
    let mut connection = tollgate.connect();
    assert_eq!(connection.line("RL.LIMIT live 100 1m"), "*5 :0 :100 :99 :-1 :60000");
    let refused = (0..1_000)
        .map(|number| connection.line(&format!("RL.LIMIT new:{number} 100 1m")))
        .find(|reply| reply.starts_with('-'));
    assert_eq!(
        refused.as_deref(),
        Some("-OOM command not allowed when used memory > 'maxmemory'.")
    );
    assert_eq!(connection.line("RL.LIMIT live 100 1m"), "*5 :0 :100 :98 :-1 :60000");
}

/// Case H111: what a decision costs does not grow with what is remembered under its key.
#[test]
#[expect(clippy::disallowed_methods, reason = "it is about how long something really takes")]
fn large_log_is_asked_as_quickly_as_a_small_one() {
    const PEEKS: usize = 200;
    /// More than noise can be, and far less than seventy times.
    const SLOWER_MAX: u32 = 10;
    let tollgate = Tollgate::start(&[]);
    let mut connection = tollgate.connect();
    let mut filled = |name: &str, entries: usize| {
        let request = encode(&[b"RL.LIMIT", name.as_bytes(), b"70000", b"1d"]);
        for _ in 0..entries / 1_000 {
            connection.send(&request.repeat(1_000));
            assert!((0..1_000).all(|_| connection.reply()[1] == ":0"));
        }
        let peek = encode(&[b"RL.LIMIT", name.as_bytes(), b"70000", b"1d", b"PEEK"]);
        let quickest = (0..5).map(|_| {
            let began = std::time::Instant::now();
            connection.send(&peek.repeat(PEEKS));
            (0..PEEKS).for_each(|_| drop(connection.reply()));
            began.elapsed()
        });
        quickest.min().expect("several")
    };
    let (small, large) = (filled("small", 1_000), filled("large", 70_000));
    assert!(large < small * SLOWER_MAX, "{large:?} for {PEEKS} of many, {small:?} of few");
    let bytes = connection.line("MEMORY USAGE large").split_off(1).parse::<usize>();
    // Ten bytes an entry, and room to grow.
    assert!(bytes.expect("a number") < 70_000 * 10 * 2);
}

/// Case H113.
#[test]
fn limiter_of_any_algorithm_goes_by_itself() {
    let tollgate = Tollgate::start(&[]);
    let mut connection = tollgate.connect();
    for algorithm in ALGORITHMS {
        connection.line(&format!("RL.LIMIT {algorithm} 5 2s ALGORITHM {algorithm}"));
    }
    connection.line("CL.THROTTLE cell 4 5 2");
    connection.line("THROTTLE crab 4 5 2");
    for key in ALGORITHMS.into_iter().chain(["cell", "crab"]) {
        let left_ms = connection.line(&format!("PTTL {key}")).split_off(1).parse::<i64>();
        assert!((1..=4_000).contains(&left_ms.expect("a number")), "{key}");
    }
    tollgate.advance("6s");
    let is_empty = |_| connection.line("DBSIZE") == ":0";
    assert!((0..100_000).any(is_empty), "the sweep leaves some");
    let info = connection.line("INFO keyspace");
    assert!(!info.contains("keys="), "{info}");
}
