//! Transactions among several connections, and what is told of them.

use crate::resp::{Connection, encode};
use crate::server::Tollgate;

fn value(info: &str, name: &str) -> String {
    let rest = info.split(name).nth(1).unwrap_or_else(|| panic!("{name} in {info}"));
    rest.split([' ', ',', '\\']).next().unwrap_or_default().to_owned()
}

#[test]
fn open_transaction_is_shown() {
    let tollgate = Tollgate::start(&[]);
    let (mut connection, mut other) = (tollgate.connect(), tollgate.connect());
    let shown = |other: &mut Connection, id: &str| {
        let line = other.line(&format!("CLIENT LIST ID {id}"));
        (value(&line, " multi="), value(&line, " flags="))
    };
    let id = connection.line("CLIENT ID").trim_start_matches(':').to_owned();
    assert_eq!(shown(&mut other, &id), ("-1".into(), "N".into()));
    connection.line("MULTI");
    assert_eq!(shown(&mut other, &id), ("0".into(), "x".into()));
    connection.line("SET k 1");
    assert_eq!(shown(&mut other, &id), ("1".into(), "x".into()));
    connection.line("EXEC");
    assert_eq!(shown(&mut other, &id), ("-1".into(), "N".into()));
}

#[test]
fn commands_of_a_transaction_are_counted_and_noted_one_by_one() {
    let tollgate = Tollgate::start(&[]);
    let mut connection = tollgate.connect();
    connection.line("CONFIG SET slowlog-log-slower-than 0");
    for request in "SLOWLOG RESET|MULTI|SET k x|INCR k|GET k|EXEC".split('|') {
        connection.line(request);
    }
    let noted = connection.line("SLOWLOG GET 4");
    assert!(noted.contains("\"GET\" \"k\"") && noted.contains("\"INCR\" \"k\""), "{noted}");
    assert!(!noted.contains("EXEC"), "{noted}");
    let stats = connection.line("INFO commandstats");
    let failed = |name: &str| {
        let line = stats.split(&format!("cmdstat_{name}:")).nth(1).unwrap_or_default();
        (value(line, "calls="), value(line, "failed_calls="))
    };
    for (name, failures) in [("set", "0"), ("incr", "1"), ("get", "0"), ("exec", "0")] {
        assert_eq!(failed(name), ("1".into(), failures.into()), "{name}");
    }
}

/// Two keys of different shards, changed in both orders: nobody sees one without the other.
#[test]
fn transactions_of_many_connections_neither_mix_nor_block_each_other() {
    const ROUNDS: usize = 300;
    const CONNECTIONS: usize = 8;
    let tollgate = Tollgate::start(&["--set", "server.workers=4"]);
    let port = tollgate.port();
    std::thread::scope(|scope| {
        for number in 0..CONNECTIONS {
            scope.spawn(move || {
                let keys = if number % 2 == 0 { [b"a", b"b"] } else { [b"b", b"a"] };
                let mut connection = Connection::open(port);
                let mut pipeline = encode(&[b"MULTI"]);
                pipeline.extend(keys.iter().flat_map(|key| encode(&[b"INCR", *key])));
                pipeline.extend(encode(&[b"EXEC"]));
                for _ in 0..ROUNDS {
                    connection.send(&pipeline);
                    for expected in ["+OK", "+QUEUED", "+QUEUED"] {
                        assert_eq!(connection.reply(), [expected]);
                    }
                    let counts = connection.reply();
                    assert_eq!((&*counts[0], &counts[1]), ("*2", &counts[2]));
                }
            });
        }
    });
    let total = format!("\"{}\"", ROUNDS * CONNECTIONS);
    assert_eq!(tollgate.connect().line("MGET a b"), format!("*2 {total} {total}"));
}

/// Optimistic locking: a counter that everyone reads, and writes if nobody else has.
#[test]
fn watched_counter_loses_no_count() {
    const ROUNDS: usize = 60;
    const CONNECTIONS: usize = 4;
    let tollgate = Tollgate::start(&["--set", "server.workers=2"]);
    let port = tollgate.port();
    std::thread::scope(|scope| {
        for _ in 0..CONNECTIONS {
            scope.spawn(move || {
                let mut connection = Connection::open(port);
                let mut counted = 0;
                while counted < ROUNDS {
                    connection.line("WATCH k");
                    let text = connection.line("GET k");
                    let count: usize = text.trim_matches('"').parse().unwrap_or(0);
                    connection.line("MULTI");
                    connection.line(&format!("SET k {}", count + 1));
                    counted += usize::from(connection.line("EXEC") == "*1 +OK");
                }
            });
        }
    });
    let total = format!("\"{}\"", ROUNDS * CONNECTIONS);
    assert_eq!(tollgate.connect().line("GET k"), total);
}

#[test]
fn flush_changes_the_one_of_many_watched_keys_that_is_there() {
    let tollgate = Tollgate::start(&[]);
    let (mut connection, mut other) = (tollgate.connect(), tollgate.connect());
    let keys: Vec<String> = (0..10_000).map(|number| format!("watched:{number}")).collect();
    let mut words: Vec<&[u8]> = vec![b"WATCH"];
    words.extend(keys.iter().map(String::as_bytes));
    for (is_there, expected) in [(false, "*1 +PONG"), (true, "*-1"), (false, "*1 +PONG")] {
        if is_there {
            other.line("SET watched:9999 1");
        }
        assert_eq!(connection.ask(&words), ["+OK"]);
        assert_eq!(other.line("FLUSHALL"), "+OK");
        connection.line("MULTI");
        connection.line("PING");
        assert_eq!(connection.line("EXEC"), expected, "{is_there}");
    }
}
