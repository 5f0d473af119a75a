//! Scripts as libraries really send them are known by their native twins.
//!
//! The texts that twins are held to are read from the packages; here the packages send them.

use crate::limiters::play;
use crate::server::Program;

/// A program of `limiters/`, and twins that it cannot do without.
const EXPECTED: &[(&str, &[&str])] = &[
    ("with_async_ratelimiter.mjs", &["async-ratelimiter_1"]),
    ("with_fastify_rate_limit.mjs", &["@fastify/rate-limit_11_incr"]),
    ("with_limits.py", &["limits_5_acquire_moving_window", "limits_5_incr_expire"]),
    ("with_rate_limit_redis.mjs", &["rate-limit-redis_6_increment"]),
    ("with_rate_limiter_flexible.mjs", &["rate-limiter-flexible_11"]),
    ("with_redis_gcra.mjs", &["redis-gcra_0"]),
    (
        "with_throttled.py",
        &[
            "throttled-py_3_gcra",
            "throttled-py_3_gcra_peek",
            "throttled-py_3_leaking_bucket",
            "throttled-py_3_sliding_window",
            "throttled-py_3_token_bucket",
        ],
    ),
];

#[test]
fn scripts_of_libraries_are_known_by_their_twins() {
    for (name, twins) in EXPECTED {
        let tollgate = Program::start(&[]);
        play(name, tollgate.port);
        let info = crate::resp::Connection::open(tollgate.port).line("INFO twins");
        for twin in *twins {
            let calls = info.split(&format!("twin_{twin}:calls=")).nth(1);
            assert!(calls.is_some_and(|calls| !calls.starts_with('0')), "{name}: {twin}\n{info}");
        }
    }
}
