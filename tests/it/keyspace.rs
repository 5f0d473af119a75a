//! What needs more keys, or other settings, than a transcript has.

use std::collections::BTreeSet;

use crate::resp::Connection;
use crate::server::Tollgate;

fn fill(connection: &mut Connection, keys: usize) -> BTreeSet<String> {
    let names: BTreeSet<String> = (0..keys).map(|number| format!("key:{number}")).collect();
    for name in &names {
        assert_eq!(connection.line(&format!("SET {name} v")), "+OK");
    }
    names
}

/// Follows the cursor to its end: how many calls that took, and all that was shown.
fn scan(connection: &mut Connection, options: &str) -> (usize, Vec<String>) {
    let (mut cursor, mut calls, mut shown) = ("0".to_owned(), 0, Vec::new());
    loop {
        let request = format!("SCAN {cursor} {options}");
        let words: Vec<&[u8]> = request.split_whitespace().map(str::as_bytes).collect();
        let reply = connection.ask(&words);
        calls += 1;
        let plain = |line: &String| line.trim_matches('"').to_owned();
        shown.extend(reply[3..].iter().map(plain));
        cursor = plain(&reply[1]);
        if cursor == "0" {
            return (calls, shown);
        }
    }
}

#[test]
fn scan_shows_every_key_once_in_as_many_calls_as_count_asks_for() {
    let tollgate = Tollgate::start(&[]);
    let mut connection = tollgate.connect();
    let names = fill(&mut connection, 1_000);
    for (options, calls_max) in [("", 101), ("COUNT 1", 1_001), ("COUNT 100 MATCH *", 11)] {
        let (calls, shown) = scan(&mut connection, options);
        assert!(calls <= calls_max, "{calls} calls with {options:?}");
        assert_eq!(shown.len(), names.len(), "{options:?}");
        assert_eq!(shown.into_iter().collect::<BTreeSet<_>>(), names, "{options:?}");
    }
    let (_, shown) = scan(&mut connection, "COUNT 7 MATCH key:*9");
    assert_eq!(shown.len(), 100);
}

#[test]
fn scan_over_few_keys_in_many_shards_takes_few_calls() {
    let tollgate = Tollgate::start(&["--set", "engine.shards=4096"]);
    let mut connection = tollgate.connect();
    let names = fill(&mut connection, 95);
    let (calls, shown) = scan(&mut connection, "");
    assert!(calls <= 10, "{calls} calls");
    assert_eq!(shown.into_iter().collect::<BTreeSet<_>>(), names);
    assert_eq!(connection.line("FLUSHALL"), "+OK");
    assert_eq!(scan(&mut connection, ""), (1, Vec::new()));
}

#[test]
fn randomkey_returns_every_key_sooner_or_later() {
    let tollgate = Tollgate::start(&[]);
    let mut connection = tollgate.connect();
    let names = fill(&mut connection, 5);
    let drawn: BTreeSet<String> =
        (0..500).map(|_| connection.line("RANDOMKEY").trim_matches('"').to_owned()).collect();
    assert_eq!(drawn, names);
}

#[test]
fn value_that_would_be_too_long_is_refused_and_the_old_one_kept() {
    let tollgate = Tollgate::start(&["--set", "engine.value_bytes_max=10"]);
    let mut connection = tollgate.connect();
    let refusal = "-ERR string exceeds maximum allowed size (proto-max-bulk-len)";
    assert_eq!(connection.line("SET k 0123456789"), "+OK");
    for request in [
        "SET k 0123456789a",
        "SETEX k 10 0123456789a",
        "GETSET k 0123456789a",
        "SETNX new 0123456789a",
        "MSET a 1 k 0123456789a",
        "APPEND k a",
        "APPEND new 0123456789a",
        "SETRANGE k 10 a",
        "SETRANGE new 10 a",
        "SETRANGE new 9223372036854775807 a",
    ] {
        assert_eq!(connection.line(request), refusal, "{request}");
    }
    assert_eq!(connection.line("MGET k new a"), "*3 \"0123456789\" $-1 $-1");
    assert_eq!(connection.line("SETRANGE k 9 a"), ":10");
    assert_eq!(connection.line("INCRBYFLOAT n 12345678901"), "\"12345678901\"");
}

#[test]
fn key_that_is_too_long_is_refused_in_any_place() {
    let tollgate = Tollgate::start(&["--set", "engine.key_bytes_max=8"]);
    let mut connection = tollgate.connect();
    for request in [
        "GET 123456789",
        "SET 123456789 v",
        "MSET a 1 123456789 2",
        "MGET a 123456789",
        "RENAME a 123456789",
        "OBJECT ENCODING 123456789",
        "EXPIRE 123456789 10",
    ] {
        let reply = connection.line(request);
        assert!(reply.contains("key_bytes_max (8)"), "{request}: {reply}");
    }
    assert_eq!(connection.line("SET 12345678 123456789"), "+OK");
    assert_eq!(connection.line("DBSIZE"), ":1");
}

#[test]
fn full_memory_refuses_what_may_grow_and_nothing_else() {
    let tollgate = Tollgate::start(&["--set", "engine.memory_max=4kb"]);
    let mut connection = tollgate.connect();
    let full = "-OOM command not allowed when used memory > 'maxmemory'.";
    for number in 0.. {
        assert!(number < 100, "it never fills up");
        if connection.line(&format!("SET key:{number} v")) == full {
            break;
        }
    }
    for request in [
        "SET k v",
        "SETEX k 10 v",
        "PSETEX k 10 v",
        "SETNX k v",
        "GETSET k v",
        "MSET k v",
        "MSETNX k v",
        "APPEND k v",
        "SETRANGE k 0 v",
        "INCR k",
        "INCRBY k 1",
        "DECR k",
        "DECRBY k 1",
        "INCRBYFLOAT k 1",
        "INCREX k",
        "COPY key:0 k",
    ] {
        assert_eq!(connection.line(request), full, "{request}");
    }
    for (request, reply) in [
        ("GET key:0", "\"v\""),
        ("EXPIRE key:0 100", ":1"),
        ("GETEX key:0 PERSIST", "\"v\""),
        ("RENAME key:0 k", "+OK"),
        ("GETDEL k", "\"v\""),
        ("SET k v", "+OK"),
    ] {
        assert_eq!(connection.line(request), reply, "{request}");
    }
}

#[test]
fn refused_append_to_a_number_keeps_the_memory_sum_right() {
    let tollgate = Tollgate::start(&["--set", "engine.value_bytes_max=10"]);
    let mut connection = tollgate.connect();
    assert_eq!(connection.line("SET k 1234567890"), "+OK");
    assert!(connection.line("APPEND k 1").starts_with("-ERR"));
    assert_eq!(connection.line("OBJECT ENCODING k"), "\"int\"");
    assert_eq!(connection.line("DEL k"), ":1");
    assert_eq!(connection.line("DBSIZE"), ":0");
}
