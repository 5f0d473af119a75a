//! Commands that wait, where a transcript cannot say it: several workers, those that go while
//! they wait, and what is kept of it.

use crate::resp::{Connection, encode};
use crate::server::Tollgate;

/// Begins to wait, and returns once that is so.
fn wait(tollgate: &Tollgate, connection: &mut Connection, request: &str) -> String {
    let number = connection.line("CLIENT ID").split_off(1);
    let words: Vec<&[u8]> = request.split(' ').map(str::as_bytes).collect();
    connection.send(&encode(&words));
    let mut observer = tollgate.connect();
    let list = format!("CLIENT LIST ID {number}");
    let waits = (0..100_000).any(|_| {
        let line = observer.line(&list);
        let (_, flags) = line.split_once(" flags=").expect("it is connected");
        flags.split(' ').next().is_some_and(|flags| flags.contains('b'))
    });
    assert!(waits, "{request}");
    number
}

/// Asks until the answer is this one: others' ends are noticed a moment later.
fn becomes(connection: &mut Connection, request: &str, expected: &str) {
    let reached = (0..100_000).any(|_| connection.line(request).contains(expected));
    assert!(reached, "{request} never answered {expected}");
}

#[test]
fn every_element_goes_to_one_of_those_who_wait_for_it() {
    const WAITERS: usize = 40;
    let tollgate = Tollgate::start(&["--set", "server.workers=3"]);
    let mut waiters: Vec<Connection> = (0..WAITERS).map(|_| tollgate.connect()).collect();
    for waiter in &mut waiters {
        wait(&tollgate, waiter, "BLPOP a b 0");
    }
    let mut pushers = [tollgate.connect(), tollgate.connect()];
    assert!(pushers[0].line("INFO clients").contains(&format!("blocked_clients:{WAITERS}")));
    for number in 0..WAITERS / 2 {
        for (pusher, key) in pushers.iter_mut().zip(["a", "b"]) {
            pusher.send(&encode(&[b"RPUSH", key.as_bytes(), format!("{key}{number}").as_bytes()]));
        }
    }
    let mut taken: Vec<String> = waiters.iter_mut().map(|waiter| waiter.reply().concat()).collect();
    taken.sort_unstable();
    taken.dedup();
    assert_eq!(taken.len(), WAITERS, "{taken:?}");
    assert_eq!(pushers[0].reply(), [":1"], "it was served after the push");
    becomes(&mut tollgate.connect(), "INFO clients", "blocked_clients:0");
    assert_eq!(tollgate.connect().line("EXISTS a b"), ":0");
}

#[test]
fn who_goes_while_it_waits_takes_nothing() {
    let tollgate = Tollgate::start(&[]);
    let (mut goes, mut stays) = (tollgate.connect(), tollgate.connect());
    wait(&tollgate, &mut goes, "BLPOP k 0");
    // Also one that has asked for more meanwhile.
    goes.send(&encode(&[b"PING"]));
    drop(goes);
    becomes(&mut stays, "INFO clients", "blocked_clients:0");
    assert_eq!(stays.line("RPUSH k v"), ":1");
    assert_eq!(stays.line("LLEN k"), ":1");
    let mut killed = tollgate.connect();
    let number = wait(&tollgate, &mut killed, "BLPOP j 0");
    assert_eq!(stays.line(&format!("CLIENT KILL ID {number}")), ":1");
    assert_eq!(killed.reply(), ["(closed)"]);
    becomes(&mut stays, "INFO clients", "blocked_clients:0");
    assert_eq!(stays.line("RPUSH j v"), ":1");
    assert_eq!(stays.line("LLEN j"), ":1");
}

#[test]
fn pushes_reach_who_waits() {
    let tollgate = Tollgate::start(&[]);
    let (mut waits, mut other) = (tollgate.connect(), tollgate.connect());
    waits.line("HELLO 3");
    waits.line("SUBSCRIBE c");
    let number = waits.line("CLIENT ID").split_off(1);
    waits.send(&encode(&[b"BLPOP", b"k", b"0"]));
    becomes(&mut other, &format!("CLIENT LIST ID {number}"), " flags=Pb ");
    assert_eq!(other.line("PUBLISH c m"), ":1");
    assert_eq!(waits.reply().join(" "), ">3 \"message\" \"c\" \"m\"");
    assert_eq!(other.line("RPUSH k v"), ":1");
    assert_eq!(waits.reply().join(" "), "*2 \"k\" \"v\"");
}

#[test]
fn server_that_stops_waits_for_nobody_who_waits() {
    let tollgate = Tollgate::start(&[]);
    let mut waits = tollgate.connect();
    wait(&tollgate, &mut waits, "BLPOP k 0");
    tollgate.stop();
    assert_eq!(waits.reply(), ["(closed)"]);
}

#[test]
fn time_that_is_too_long_is_told() {
    let tollgate = Tollgate::start(&[]);
    let mut connection = tollgate.connect();
    for time in ["1e300", "inf", "9223372036854775807"] {
        let reply = connection.line(&format!("BLPOP k {time}"));
        assert_eq!(reply, "-ERR timeout is out of range", "{time}");
    }
}

#[test]
fn who_waited_reads_its_answer_before_what_that_has_changed() {
    let tollgate = Tollgate::start(&[]);
    let (mut waiter, mut other) = (tollgate.connect(), tollgate.connect());
    for request in ["HELLO 3", "RPUSH to a", "CLIENT TRACKING ON", "LRANGE to 0 -1"] {
        waiter.line(request);
    }
    wait(&tollgate, &mut waiter, "BLMOVE from to LEFT LEFT 0");
    assert_eq!(other.line("RPUSH from foo"), ":1");
    assert_eq!(waiter.reply(), ["\"foo\""]);
    assert_eq!(waiter.reply().join(" "), ">2 \"invalidate\" *1 \"to\"");
}
