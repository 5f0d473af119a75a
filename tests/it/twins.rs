//! Scripts as libraries really send them are known by their native twins.
//!
//! The texts that twins are held to are read from the packages; here the packages send them.

use crate::limiters::play;
use crate::server::{Program, Tollgate};

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

#[test]
fn pipeline_of_one_script_is_answered_in_order_whoever_answers() {
    let script = fixed_window();
    let sha = sha1_smol::Sha1::from(&script).hexdigest();
    let asked = |key: &str, words: &str| format!("EVALSHA {sha} 1 {key} {words}");
    let requests = [
        asked("a", "3 1000"),
        asked("b", "3 1000 2"),
        asked("a", "3 1000 1.0"),
        asked("a", "3 1000"),
        "GET a".to_owned(),
        asked("list", "3 1000"),
        asked("a", "x 1000"),
        asked("a", "3 1000"),
        format!("EVALSHA {sha} 2 a b 3 1000"),
        format!("EVALSHA {sha} 0"),
        format!("EVALSHA {} 1 a", "0".repeat(40)),
        asked("b", "3 1000"),
    ];
    let replies = ["true", "false"].map(|switch| {
        let tollgate = Tollgate::start(&["--set", &format!("lua.native_twins={switch}")]);
        let mut connection = tollgate.connect();
        connection.ask(&[b"SCRIPT", b"LOAD", &script]);
        connection.line("RPUSH list 1");
        connection.send(requests.join("\r\n").as_bytes());
        connection.send(b"\r\n");
        let replies: Vec<String> = requests.iter().map(|_| connection.reply().join(" ")).collect();
        (replies, connection.line("INFO twins"))
    });
    assert_eq!(replies[0].0, replies[1].0);
    assert!(replies[0].0[0].starts_with("*5 :0 :3 :2"), "{:?}", replies[0].0);
    assert_eq!(replies[1].1, "\"# Twins\\r\\n\"");
    let counted = "twin_lua-compat/fixed-window:calls=5,declined=5\\r";
    assert!(replies[0].1.contains(counted), "{}", replies[0].1);
}

#[test]
fn who_monitors_is_shown_the_commands_of_a_known_script() {
    let tollgate = Tollgate::start(&[]);
    let (mut watcher, mut connection) = (tollgate.connect(), tollgate.connect());
    watcher.line("MONITOR");
    connection.ask(&[b"EVAL", &fixed_window(), b"1", b"k", b"3", b"1000"]);
    assert!(watcher.reply().concat().contains("\"EVAL\""));
    let shown = watcher.reply().concat();
    assert!(shown.contains("lua] ") && shown.contains("GET"), "{shown}");
}

fn fixed_window() -> Vec<u8> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/lua-compat/fixed-window/script.lua");
    std::fs::read(path).expect("it is there")
}
