//! What reaches a connection unasked, where a transcript cannot say it: many receivers, slow
//! ones, those that go, and the order among replies.

use std::io::Read;
use std::net::TcpStream;

use crate::resp::{Connection, encode};
use crate::server::Tollgate;

fn number(connection: &mut Connection) -> String {
    connection.line("CLIENT ID").split_off(1)
}

/// The value of a field of INFO.
fn field(connection: &mut Connection, name: &str) -> String {
    let text = connection.line("INFO everything");
    let line = text.split("\\r\\n").find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.expect("the field is there").to_owned()
}

/// Asks until the answer is this one: others' ends are noticed a moment later.
fn becomes(connection: &mut Connection, request: &str, expected: &str) {
    let reached = (0..100_000).any(|_| connection.line(request) == expected);
    assert!(reached, "{request} never answered {expected}");
}

#[test]
fn message_reaches_subscribers_of_every_worker() {
    let tollgate = Tollgate::start(&["--set", "server.workers=3"]);
    let mut subscribers: Vec<Connection> = (0..50).map(|_| tollgate.connect()).collect();
    for subscriber in &mut subscribers {
        assert_eq!(subscriber.line("SUBSCRIBE c"), "*3 \"subscribe\" \"c\" :1");
    }
    let mut publisher = tollgate.connect();
    for round in 0..20 {
        assert_eq!(publisher.line(&format!("PUBLISH c {round}")), ":50");
    }
    for subscriber in &mut subscribers {
        for round in 0..20 {
            assert_eq!(subscriber.reply().join(" "), format!("*3 \"message\" \"c\" \"{round}\""));
        }
    }
}

#[test]
fn connection_that_ends_leaves_its_channels_and_its_tracking() {
    let tollgate = Tollgate::start(&[]);
    let (mut stays, mut goes) = (tollgate.connect(), tollgate.connect());
    for request in ["HELLO 3", "SUBSCRIBE c", "PSUBSCRIBE c*", "SSUBSCRIBE c"] {
        goes.line(request);
    }
    goes.line("CLIENT TRACKING ON BCAST PREFIX p");
    assert_eq!(stays.line("PUBLISH c m"), ":2");
    assert_eq!(field(&mut stays, "pubsub_patterns"), "1");
    assert_eq!(field(&mut stays, "tracking_clients"), "1");
    assert_eq!(field(&mut stays, "tracking_total_prefixes"), "1");
    drop(goes);
    becomes(&mut stays, "PUBLISH c m", ":0");
    becomes(&mut stays, "PUBSUB SHARDNUMSUB c", "*2 \"c\" :0");
    for name in ["pubsub_channels", "pubsub_patterns", "tracking_total_prefixes"] {
        assert_eq!(field(&mut stays, name), "0", "{name}");
    }
}

#[test]
fn listener_that_does_not_read_is_closed_and_holds_nobody_up() {
    let tollgate = Tollgate::start(&["--set", "server.push_bytes_max=64kb"]);
    let mut slow = TcpStream::connect(("127.0.0.1", tollgate.port())).expect("it listens");
    let mut listener = Connection::over(slow.try_clone().expect("a second handle"));
    listener.line("SUBSCRIBE c");
    let mut publisher = tollgate.connect();
    let text = "x".repeat(100 << 10);
    // What the sockets between them hold is some megabytes.
    let sent = (0..1_000).take_while(|_| publisher.line(&format!("PUBLISH c {text}")) == ":1");
    let sent = sent.count();
    assert!((1..1_000).contains(&sent), "{sent} messages were kept");
    assert_eq!(publisher.line("PING"), "+PONG");
    let mut read = Vec::new();
    // A reset is an end, too.
    drop(slow.read_to_end(&mut read));
    assert!(read.len() < sent * text.len(), "all of it came");
    assert_eq!(field(&mut publisher, "client_output_buffer_limit_disconnections"), "1");
}

#[test]
fn pushes_stand_between_replies_where_they_were_caused() {
    let tollgate = Tollgate::start(&[]);
    let mut connection = tollgate.connect();
    for request in ["HELLO 3", "SUBSCRIBE c", "CLIENT TRACKING ON"] {
        connection.line(request);
    }
    let requests = ["GET k", "PUBLISH c a", "SET k 1", "GET k", "GET k", "PUBLISH c b", "DEL k"];
    let encoded = requests.map(|line| {
        let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
        encode(&words)
    });
    connection.send(&encoded.concat());
    for expected in [
        "_",
        ":1",
        ">3 \"message\" \"c\" \"a\"",
        "+OK",
        ">2 \"invalidate\" *1 \"k\"",
        "\"1\"",
        "\"1\"",
        ":1",
        ">3 \"message\" \"c\" \"b\"",
        ":1",
        ">2 \"invalidate\" *1 \"k\"",
    ] {
        assert_eq!(connection.reply().join(" "), expected);
    }
}

#[test]
fn keys_of_one_pipeline_are_broadcast_as_one_message_for_each_prefix() {
    let tollgate = Tollgate::start(&[]);
    let (mut connection, mut other) = (tollgate.connect(), tollgate.connect());
    // What was read before is told with the rest, not by itself.
    for request in ["HELLO 3", "CLIENT TRACKING ON", "GET a:2", "CLIENT TRACKING OFF"] {
        connection.line(request);
    }
    connection.line("CLIENT TRACKING ON BCAST PREFIX a: PREFIX b:");
    let requests: [&[&[u8]]; 4] =
        [&[b"MSET", b"a:1", b"1", b"a:2", b"2"], &[b"MULTI"], &[b"INCR", b"b:1"], &[b"EXEC"]];
    other.send(&requests.map(encode).concat());
    assert_eq!(connection.reply().join(" "), ">2 \"invalidate\" *2 \"a:1\" \"a:2\"");
    assert_eq!(connection.reply().join(" "), ">2 \"invalidate\" *1 \"b:1\"");
    assert_eq!(connection.line("PING"), "+PONG");
}

/// A RESP2 client would read a message that comes after its farewell as another reply.
#[test]
fn nothing_comes_from_a_channel_after_it_was_left() {
    let tollgate = Tollgate::start(&["--set", "server.workers=2"]);
    let (mut leaves, mut publisher) = (tollgate.connect(), tollgate.connect());
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                publisher.line("PUBLISH c m");
            }
        });
        for round in 0..500 {
            assert_eq!(leaves.line("SUBSCRIBE c"), "*3 \"subscribe\" \"c\" :1", "{round}");
            leaves.send(&encode(&[b"UNSUBSCRIBE", b"c"]));
            let farewell = ["*3", "\"unsubscribe\"", "\"c\"", ":0"];
            while leaves.reply() != farewell {}
            assert_eq!(leaves.line("PING"), "+PONG", "{round}");
        }
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
    });
}

#[test]
fn subscriptions_and_prefixes_of_one_connection_are_bounded() {
    let tollgate = Tollgate::start(&["--set", "server.subscriptions_max=3"]);
    let mut connection = tollgate.connect();
    connection.line("SUBSCRIBE a");
    connection.line("SUBSCRIBE b");
    assert_eq!(
        connection.line("PSUBSCRIBE c d"),
        "-ERR a connection has at most 3 subscriptions (server.subscriptions_max)"
    );
    assert_eq!(connection.line("PSUBSCRIBE c"), "*3 \"psubscribe\" \"c\" :3");
    let prefixes: Vec<String> = (1_000..2_025).map(|number| format!("PREFIX {number}")).collect();
    let mut other = tollgate.connect();
    let refused = other.line(&format!("CLIENT TRACKING ON BCAST {}", prefixes.join(" ")));
    assert_eq!(refused, "-ERR a connection has at most 1024 prefixes");
}

#[test]
fn tracked_keys_are_bounded_and_who_loses_one_is_told() {
    let tollgate = Tollgate::start(&["--set", "engine.tracked_keys_max=10"]);
    let (mut connection, mut other) = (tollgate.connect(), tollgate.connect());
    connection.line("HELLO 3");
    connection.line("CLIENT TRACKING ON");
    for key in 0..11 {
        assert_eq!(connection.line(&format!("GET {key}")), "_");
    }
    assert_eq!(connection.reply()[..3], [">2", "\"invalidate\"", "*1"]);
    assert_eq!(field(&mut other, "tracking_total_keys"), "10");
    assert_eq!(field(&mut other, "tracking_total_items"), "10");
}

#[test]
fn expired_and_evicted_keys_are_told_without_being_asked_for() {
    let tollgate = Tollgate::start(&["--set", "engine.memory_policy=allkeys-lru"]);
    let (mut connection, mut other) = (tollgate.connect(), tollgate.connect());
    connection.line("HELLO 3");
    connection.line("CLIENT TRACKING ON NOLOOP");
    connection.line("SET k 1 PX 500");
    assert_eq!(connection.line("GET k"), "\"1\"");
    tollgate.advance("1s");
    assert_eq!(connection.reply().join(" "), ">2 \"invalidate\" *1 \"k\"");
    other.line("SET k 1");
    assert_eq!(connection.line("GET k"), "\"1\"");
    other.line("CONFIG SET maxmemory 1");
    assert_eq!(connection.reply().join(" "), ">2 \"invalidate\" *1 \"k\"");
}

#[test]
fn client_list_tells_who_listens_and_who_tracks() {
    let tollgate = Tollgate::start(&[]);
    let (mut asks, mut listens, mut tracks) =
        (tollgate.connect(), tollgate.connect(), tollgate.connect());
    let listener = number(&mut listens);
    for request in ["HELLO 3", "SUBSCRIBE a", "SUBSCRIBE b", "PSUBSCRIBE p*", "SSUBSCRIBE s"] {
        listens.line(request);
    }
    let tracker = number(&mut tracks);
    tracks.line(&format!("CLIENT TRACKING ON BCAST REDIRECT {listener}"));
    let line = asks.line(&format!("CLIENT LIST ID {listener}"));
    assert!(line.contains(" flags=P db=0 sub=2 psub=1 ssub=1 "), "{line}");
    let line = asks.line(&format!("CLIENT LIST ID {tracker}"));
    assert!(line.contains(" flags=tB "), "{line}");
    assert!(line.contains(&format!(" redir={listener} ")), "{line}");
    assert!(asks.line("CLIENT LIST TYPE pubsub").contains(&format!("id={listener} ")));
    assert_eq!(asks.line("CLIENT KILL TYPE pubsub"), ":1");
    assert_eq!(listens.reply(), ["(closed)"]);
    asks.line("SET k 1");
    let line = asks.line(&format!("CLIENT LIST ID {tracker}"));
    assert!(line.contains(" flags=tRB "), "{line}");
}

#[test]
fn busy_subscriber_keeps_nobody_of_its_worker_from_being_answered() {
    const MESSAGES: usize = 20_000;
    let tollgate = Tollgate::start(&["--set", "server.workers=1"]);
    let (mut subscriber, mut publisher) = (tollgate.connect(), tollgate.connect());
    let mut other = tollgate.connect();
    subscriber.line("SUBSCRIBE c");
    let is_over = std::sync::atomic::AtomicBool::new(false);
    let answered = std::thread::scope(|scope| {
        scope.spawn(|| (0..MESSAGES).for_each(|_| drop(subscriber.reply())));
        scope.spawn(|| {
            let batch = encode(&[b"PUBLISH", b"c", b"m"]).repeat(100);
            for _ in 0..MESSAGES / 100 {
                publisher.send(&batch);
                (0..100).for_each(|_| assert_eq!(publisher.reply(), [":1"]));
            }
            is_over.store(true, std::sync::atomic::Ordering::Relaxed);
        });
        let pings = (0..MESSAGES).take_while(|_| {
            assert_eq!(other.line("PING"), "+PONG");
            !is_over.load(std::sync::atomic::Ordering::Relaxed)
        });
        pings.count()
    });
    assert!(answered > 10, "{answered} answers while it was busy");
}
