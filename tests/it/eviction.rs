//! Memory at its bound: what is evicted, what is refused, and what is never forgotten.
//!
//! The limiter under `live` is spent once at the beginning: a second decision that does not
//! remember the first would show that it was evicted.

use crate::resp::Connection;
use crate::server::Tollgate;

const FULL: &str = "-OOM command not allowed when used memory > 'maxmemory'.";

/// Enough for every shard to have a chunk of slots, and for a few thousand strings.
const BOUND: &str = "engine.memory_max=1mb";

/// Strings of a kilobyte until they are more than the bound; returns the first refusal.
fn fill(connection: &mut Connection) -> Option<String> {
    let value = "v".repeat(1_000);
    (0..2_000)
        .map(|number| connection.line(&format!("SET string:{number} {value}")))
        .find(|reply| reply != "+OK")
}

fn info(connection: &mut Connection, section: &str, field: &str) -> u64 {
    let text = connection.line(&format!("INFO {section}"));
    let (_, rest) = text.split_once(&format!("{field}:")).expect("INFO has the field");
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().expect("the field is a number")
}

fn spend_live(connection: &mut Connection, left: u64) {
    let expected = format!("*5 :0 :1000 :{left} :-1 :3600000");
    let reply = connection.line("RL.LIMIT live 1000 1h ALGORITHM fixed-window ALIGN first");
    assert_eq!(reply, expected);
}

#[test]
fn full_memory_evicts_strings_for_strings_and_for_limiters_but_no_limiter() {
    // Housekeeping does not come by: who wants room has to make it.
    let settings = [BOUND, "engine.memory_policy=allkeys-lru", "engine.expiry_period=1h"];
    let tollgate = Tollgate::start(&settings.map(|setting| ["--set", setting]).concat());
    let mut connection = tollgate.connect();
    spend_live(&mut connection, 999);
    assert_eq!(fill(&mut connection), None);
    let evicted = info(&mut connection, "stats", "evicted_keys");
    assert!(evicted > 0, "strings made room for strings");
    for number in 0..500 {
        for request in ["RL.LIMIT rl", "CL.THROTTLE cl", "THROTTLE th"] {
            let rest = if request.starts_with("RL") { "10 1h" } else { "10 10 3600" };
            let reply = connection.line(&format!("{request}:{number} {rest}"));
            assert!(reply.starts_with("*5 :"), "{request}:{number}: {reply}");
        }
    }
    assert!(info(&mut connection, "stats", "evicted_keys") > evicted, "and for limiters");
    for number in 0..500 {
        let reply = connection.line(&format!("TYPE rl:{number}"));
        assert_eq!(reply, "+tollgate-limit", "{number}");
    }
    spend_live(&mut connection, 998);
}

#[test]
fn full_memory_without_a_policy_refuses_and_evicts_nothing() {
    let tollgate = Tollgate::start(&["--set", BOUND]);
    let mut connection = tollgate.connect();
    spend_live(&mut connection, 999);
    assert_eq!(fill(&mut connection).as_deref(), Some(FULL));
    assert_eq!(connection.line("RL.LIMIT new 10 1h"), FULL);
    assert_eq!(info(&mut connection, "stats", "evicted_keys"), 0);
    spend_live(&mut connection, 998);
}

#[test]
fn lowered_bound_refuses_no_live_limiter_and_is_reached_by_housekeeping() {
    let flags = ["--set", BOUND, "--set", "engine.memory_policy=allkeys-random"];
    let tollgate = Tollgate::start(&flags);
    let mut connection = tollgate.connect();
    spend_live(&mut connection, 999);
    assert_eq!(fill(&mut connection), None);
    assert_eq!(connection.line("CONFIG SET maxmemory 300kb"), "+OK");
    spend_live(&mut connection, 998);
    // Asking for INFO makes no room: only housekeeping does.
    let reached =
        (0..1_000_000).any(|_| info(&mut connection, "memory", "used_memory") < 300 << 10);
    assert!(reached);
    spend_live(&mut connection, 997);
}
