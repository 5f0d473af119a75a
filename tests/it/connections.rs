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

/// Commands over few keys, some of them wrong, always the same ones for a seed.
fn drawn_commands(count: usize, seed: u64) -> Vec<Vec<u8>> {
    const LINES: [&str; 18] = [
        "CL.THROTTLE",
        "RL.LIMIT",
        "RL.LIMIT KEY 5 1m",
        "RL.LIMIT KEY 5 1m COST 3",
        "RL.LIMIT KEY 3 1h ALGORITHM gcra",
        "RL.LIMIT KEY 5 1m PEEK",
        "RL.LIMIT KEY x 1m",
        "RL.RESET KEY",
        "RL.REFUND KEY KEY 2",
        "CL.THROTTLE KEY 3 5 60",
        "INCR KEY",
        "SET KEY text",
        "GET KEY",
        "DEL KEY",
        "MGET KEY KEY",
        "EXPIRE KEY 100",
        "TYPE KEY",
        "NOSUCH KEY",
    ];
    let mut state = seed;
    let mut draw = |below: usize| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    (0..count)
        .map(|_| {
            let line = LINES[draw(LINES.len())].replace("REFUND KEY KEY", "REFUND KEY k0");
            let line = line.replace(" KEY", &format!(" k{}", draw(6)));
            let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
            encode(&words)
        })
        .collect()
}

#[test]
fn pipeline_is_answered_as_the_same_requests_one_by_one() {
    let (alone, together) = (Tollgate::start(&[]), Tollgate::start(&[]));
    let (mut one, mut pipe) = (alone.connect(), together.connect());
    for round in 0..40 {
        let commands = drawn_commands(100, round);
        pipe.send(&commands.concat());
        for (number, command) in commands.iter().enumerate() {
            one.send(command);
            let what = String::from_utf8_lossy(command).replace("\r\n", " ");
            assert_eq!(pipe.reply(), one.reply(), "round {round}, request {number}: {what}");
        }
        for server in [&alone, &together] {
            server.advance("7s");
        }
    }
}

#[test]
fn other_connections_have_their_turn_between_those_of_a_long_pipeline() {
    let flags = ["--set", "server.pipeline_max=1", "--set", "server.workers=1"];
    let tollgate = Tollgate::start(&flags);
    let (mut long, mut short) = (tollgate.connect(), tollgate.connect());
    assert_eq!(short.line("PING"), "+PONG");
    long.send(&encode(&[b"ECHO", b"x"]).repeat(2_000));
    short.send(&encode(&[b"INFO", b"commandstats"]));
    let stats = short.reply().concat();
    let echoes = stats.split_once("cmdstat_echo:calls=").map_or(0, |(_, rest)| {
        let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
        digits.parse().expect("a count")
    });
    // Until the second request has arrived, the first connection has the worker to itself.
    assert!(echoes < 2_000, "{echoes} requests came before one");
    for _ in 0..2_000 {
        assert_eq!(long.reply(), ["\"x\""]);
    }
}

#[test]
fn one_reply_may_be_longer_than_what_may_pile_up() {
    let tollgate = Tollgate::start(&["--set", "server.output_bytes_max=1mb"]);
    let mut connection = tollgate.connect();
    let value = vec![b'x'; 16 << 20];
    assert_eq!(connection.ask(&[b"SET", b"k", &value]), ["+OK"]);
    assert_eq!(connection.ask(&[b"GET", b"k"])[0].len(), value.len() + 2);
}
