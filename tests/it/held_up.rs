//! Connections that share their thread with a script that does not end.

use crate::http::metrics;
use crate::resp::{Connection, encode};
use crate::server::Tollgate;

const BUSY: &str = "-BUSY Redis is busy running a script. You can only call SCRIPT KILL or \
                    SHUTDOWN NOSAVE.";

/// One worker, held up by the script of the first of these connections.
fn held_up<const OTHERS: usize>(request: &[&[u8]]) -> (Tollgate, Connection, [Connection; OTHERS]) {
    let tollgate = Tollgate::start(&["--set", "server.workers=1"]);
    let mut held = tollgate.connect();
    let others = std::array::from_fn(|_| {
        let mut other = tollgate.connect();
        assert_eq!(other.line("PING"), "+PONG");
        other
    });
    held.send(&encode(request));
    for (state, span) in [("short", "6s"), ("long", "0s")] {
        let series = format!("tollgate_scripts_running{{state=\"{state}\"}}");
        while metrics(&tollgate).value(&series) < 1.0 {}
        tollgate.advance(span);
    }
    (tollgate, held, others)
}

#[test]
fn neighbours_of_an_endless_script_are_told_so_and_may_end_it() {
    let endless: [&[u8]; 3] = [b"EVAL", b"while true do end", b"0"];
    let (_tollgate, mut held, [mut other, mut multi, mut quits]) = held_up(&endless);
    assert_eq!(other.line("PING"), BUSY);
    other.send(&encode(&[b"GET", b"k"]).repeat(1_000));
    for _ in 0..1_000 {
        assert_eq!(other.reply(), [BUSY]);
    }
    assert_eq!(multi.line("MULTI"), "+OK");
    assert_eq!(multi.line("SET k 1"), BUSY);
    assert!(multi.line("EXEC").starts_with("-EXECABORT "));
    assert_eq!(quits.line("QUIT"), "+OK");
    assert_eq!(quits.reply(), ["(closed)"]);
    other.send(b"*2\r\n$6\r\nSCRIPT\r\n$4\r\nKI");
    assert_eq!(multi.line("GET k"), BUSY);
    other.send(b"LL\r\n");
    assert_eq!(other.reply(), ["+OK"]);
    let reply = held.reply().concat();
    assert!(reply.starts_with("-ERR Script killed by user with SCRIPT KILL..."), "{reply}");
    for mut connection in [held, other, multi] {
        assert_eq!(connection.line("PING"), "+PONG");
    }
}

#[test]
fn neighbours_of_a_script_that_has_written_may_only_end_the_server() {
    let endless: [&[u8]; 4] =
        [b"EVAL", b"redis.call('SET', KEYS[1], 1) while true do end", b"1", b"held"];
    let (tollgate, _held, [mut other]) = held_up(&endless);
    assert!(other.line("WATCH held").starts_with("-BUSY"), "its shard is held");
    assert!(other.line("SCRIPT KILL").starts_with("-UNKILLABLE "));
    assert_eq!(other.line("SHUTDOWN NOSAVE"), "(closed)");
    tollgate.stop();
}
