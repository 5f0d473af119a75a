//! What a connection may do: torn requests, long pipelines, silence, greed.

use std::io::Write;
use std::net::TcpStream;
use std::time::Duration;

use crate::resp::{Connection, encode};
use crate::server::Tollgate;

#[test]
fn request_may_arrive_a_byte_at_a_time() {
    let tollgate = Tollgate::start(&[]);
    let mut connection = tollgate.connect();
    for byte in encode(&[b"ECHO", b"a\r\nb"]) {
        connection.send(&[byte]);
    }
    assert_eq!(connection.reply(), ["\"a\\r\\nb\""]);
}

#[test]
fn long_pipeline_is_answered_whole_and_in_order() {
    let tollgate = Tollgate::start(&[]);
    let mut connection = tollgate.connect();
    let pipeline: Vec<u8> =
        (0..20_000).flat_map(|n| encode(&[b"ECHO", n.to_string().as_bytes()])).collect();
    let mut writer = TcpStream::connect(("127.0.0.1", tollgate.port())).expect("it listens");
    let reader = writer.try_clone().expect("a second handle");
    std::thread::scope(|scope| {
        scope.spawn(move || writer.write_all(&pipeline).expect("it takes all"));
        let mut replies = Connection::over(reader);
        for number in 0..20_000 {
            assert_eq!(replies.reply(), [format!("\"{number}\"")]);
        }
    });
    assert_eq!(connection.line("PING"), "+PONG");
}

#[test]
fn protocol_errors_are_those_of_redis_and_end_the_connection() {
    let tollgate = Tollgate::start(&[]);
    let cases: [(&[u8], &str); 8] = [
        (b"*a\r\n", "invalid multibulk length"),
        (b"*2147483648\r\n", "invalid multibulk length"),
        (b"*1\r\n:1\r\n", "expected '$', got ':'"),
        (b"*1\r\n$-1\r\n", "invalid bulk length"),
        (b"*1\r\n$536870913\r\n", "invalid bulk length"),
        (b"\"PING\r\n", "unbalanced quotes in request"),
        (
            b"*3\r\n$3\r\nSET\r\n$3\r\nkey\r\n$5\r\nvalue12345\r\nPING\r\n",
            "expected CR LF after bulk",
        ),
        (&vec![b'x'; 70_000], "too big inline request"),
    ];
    for (bytes, expected) in cases {
        let mut connection = tollgate.connect();
        connection.send(bytes);
        assert_eq!(connection.reply(), [format!("-ERR Protocol error: {expected}")]);
        assert_eq!(connection.reply(), ["(closed)"]);
    }
    let mut browser = tollgate.connect();
    browser.send(b"POST / HTTP/1.1\r\nHost: x\r\n\r\n");
    assert_eq!(browser.reply(), ["(closed)"]);
}

#[test]
fn nested_arrays_do_not_reach_the_stack() {
    let tollgate = Tollgate::start(&[]);
    let mut connection = tollgate.connect();
    connection.send(&b"*1\r\n".repeat(10_000));
    assert_eq!(connection.reply(), ["-ERR Protocol error: expected '$', got '*'"]);
    assert_eq!(tollgate.connect().line("PING"), "+PONG");
}

#[test]
fn one_connection_more_than_allowed_is_told_so() {
    let tollgate = Tollgate::start(&["--set", "server.connections_max=2"]);
    let mut first = tollgate.connect();
    let mut second = tollgate.connect();
    assert_eq!(first.line("PING"), "+PONG");
    assert_eq!(second.line("PING"), "+PONG");
    let mut third = tollgate.connect();
    assert_eq!(third.reply(), ["-ERR max number of clients reached"]);
    assert_eq!(third.reply(), ["(closed)"]);
    assert_eq!(first.line("PING"), "+PONG");
}

#[test]
fn silent_connection_is_closed_after_the_idle_time_and_a_busy_one_is_not() {
    let tollgate = Tollgate::start(&["--set", "server.idle_timeout=10s"]);
    let mut silent = tollgate.connect();
    let mut busy = tollgate.connect();
    assert_eq!(silent.line("PING"), "+PONG");
    tollgate.advance("9s");
    assert_eq!(busy.line("PING"), "+PONG");
    tollgate.advance("2s");
    assert_eq!(silent.reply(), ["(closed)"]);
    assert_eq!(busy.line("PING"), "+PONG");
}

#[test]
fn reader_that_does_not_read_holds_up_itself_alone() {
    /// What the sockets between us may hold of requests and replies, and then some.
    const HELD_BYTES_MAX: usize = 64 << 20;
    let tollgate = Tollgate::start(&[]);
    let mut greedy = TcpStream::connect(("127.0.0.1", tollgate.port())).expect("it listens");
    greedy.set_write_timeout(Some(Duration::from_millis(500))).expect("a socket option");
    let echo = encode(&[b"ECHO", &vec![b'x'; 64 << 10]]);
    let most = 2 * HELD_BYTES_MAX / echo.len();
    let sent = (0..most).take_while(|_| greedy.write_all(&echo).is_ok()).count();
    assert!(sent * echo.len() < HELD_BYTES_MAX, "{sent} requests were taken");
    assert_eq!(tollgate.connect().line("PING"), "+PONG");
}

#[test]
fn replies_that_pile_up_beyond_their_bound_end_the_connection() {
    let tollgate = Tollgate::start(&["--set", "server.output_bytes_max=1mb"]);
    let mut greedy = tollgate.connect();
    let value = vec![b'x'; 1 << 20];
    assert_eq!(greedy.ask(&[b"SET", b"k", &value]), ["+OK"]);
    // One turn of requests, a thousand times its size in replies.
    greedy.send(&encode(&[b"GET", b"k"]).repeat(1_000));
    let read = (0..1_000).take_while(|_| greedy.try_reply().is_some()).count();
    assert!(read < 1_000, "a gigabyte was kept");
    assert_eq!(tollgate.connect().line("PING"), "+PONG");
}
