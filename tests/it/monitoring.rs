//! MONITOR, and the pause of CLIENT PAUSE where time has to pass.

use crate::resp::Connection;
use crate::server::{Program, Tollgate};

/// What a monitor reads next, but for the moment and the port.
fn seen(monitor: &mut Connection) -> String {
    let line = monitor.reply().concat();
    let (_, rest) = line.split_once(" [").expect("a moment comes first");
    let (origin, words) = rest.split_once("] ").expect("then the origin");
    let origin = origin.split_once(':').map_or(origin, |(origin, _)| origin);
    format!("[{origin}] {words}")
}

#[test]
fn monitor_sees_what_is_carried_out_and_no_secrets() {
    let tollgate = Tollgate::start(&[]);
    let (mut monitor, mut other) = (tollgate.connect(), tollgate.connect());
    assert_eq!(monitor.line("MONITOR"), "+OK");
    for request in [
        "SELECT 3",
        "SET k v",
        "CONFIG GET maxmemory",
        "NOSUCH x",
        "GET",
        "MULTI",
        "GET k",
        "EXEC",
        "EVAL return(redis.call('get','k')) 0",
        "AUTH user secret",
    ] {
        other.line(request);
    }
    for expected in [
        "[0 127.0.0.1] \"SELECT\" \"3\"",
        "[3 127.0.0.1] \"SET\" \"k\" \"v\"",
        "[3 127.0.0.1] \"MULTI\"",
        "[3 127.0.0.1] \"GET\" \"k\"",
        "[3 127.0.0.1] \"EXEC\"",
        "[3 127.0.0.1] \"EVAL\" \"return(redis.call('get','k'))\" \"0\"",
        "[3 lua] \"get\" \"k\"",
        "[3 127.0.0.1] \"AUTH\" \"(redacted)\" \"(redacted)\"",
    ] {
        assert_eq!(seen(&mut monitor), expected);
    }
    // Its own come behind their replies.
    assert_eq!(monitor.line("PING"), "+PONG");
    assert_eq!(seen(&mut monitor), "[0 127.0.0.1] \"PING\"");
    let id = other.line("CLIENT ID").split_off(1);
    assert_eq!(seen(&mut monitor), "[3 127.0.0.1] \"CLIENT\" \"ID\"");
    assert!(!other.line(&format!("CLIENT LIST ID {id}")).contains("flags=O"));
    assert!(other.line("CLIENT LIST").contains(" flags=O "));
    assert_eq!(monitor.line("RESET"), "+RESET");
    other.line("PING");
    assert_eq!(monitor.line("PING"), "+PONG");
}

#[test]
fn pause_ends_when_its_time_is_over() {
    let program = Program::start(&[]);
    let (mut one, mut other) = (program.connect(), program.connect());
    assert_eq!(one.line("CLIENT PAUSE 300"), "+OK");
    // Both are answered in the end, also who would end the pause.
    assert_eq!(other.line("CLIENT UNPAUSE"), "+OK");
    assert_eq!(one.line("PING"), "+PONG");
    assert_eq!(one.line("CLIENT PAUSE 300 WRITE"), "+OK");
    assert_eq!(one.line("PING"), "+PONG");
    assert_eq!(other.line("SET k v"), "+OK");
}

#[test]
fn connection_that_goes_during_a_pause_is_noticed() {
    let tollgate = Tollgate::start(&[]);
    let (mut one, mut held) = (tollgate.connect(), tollgate.connect());
    assert_eq!(one.line("CLIENT PAUSE 3600000 WRITE"), "+OK");
    held.send(b"SET k v\r\n");
    drop(held);
    let gone = (0..100_000).any(|_| one.line("INFO clients").contains("connected_clients:1\\r"));
    assert!(gone);
    tollgate.advance("2h");
    assert_eq!(one.line("GET k"), "$-1");
}
