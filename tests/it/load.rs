//! The load manager as operators and clients see it: it begins, is seen, and ends by itself.

use tollgate::time::{Clock, Duration};

use crate::exposition::Page;
use crate::governed::Governed;
use crate::http::{metrics, status};
use crate::policies::{is, wait_until};
use crate::resp::{Connection, encode};
use crate::server::{Program, Tollgate};

const LEVEL: &str = "tollgate_degrade_level";

/// Looks often, and hears a signal that nothing of this machine comes near to: what the server
/// finds itself presses with 1.0 at most.
const WATCHFUL: [&str; 14] = [
    "--set",
    "load.enabled=true",
    "--set",
    "load.sample_period=5ms",
    "--set",
    "load.enter=1.7,1.8,1.9",
    "--set",
    "load.exit=1.4,1.5,1.6",
    "--set",
    "load.down=2",
    "--set",
    "load.up=1,1,1",
    "--set",
    "load.signals=pool systemic 10 30s",
];

const POLICY: &str =
    "name: acme\ntier: t5\ndegrade: closed\nrules: [{endpoint: /a, limit: 1000, window: 1h}]\n";

#[test]
fn degrade_mode_ends_by_itself_and_what_was_counted_goes_on() {
    let governed = Governed::start(POLICY, &WATCHFUL);
    let tollgate = &governed.tollgate;
    let mut connection = tollgate.connect();
    assert_eq!(connection.line("RL.CHECK acme /a"), "*5 :0 :1000 :999 :-1 :3600000");
    assert_eq!(connection.line("RL.SIGNAL pool 20"), "+OK");
    wait_until(tollgate, |page| is(page, LEVEL, 3));
    let degraded = connection.line("RL.CHECK acme /a");
    assert!(degraded.starts_with("*5 :1 :0 :0 "), "{degraded}");
    // Nobody reports it any longer.
    tollgate.advance("30s");
    let page = wait_until(tollgate, |page| is(page, LEVEL, 0));
    assert!(is(&page, "tollgate_load_signal_expired{signal=\"pool\"}", 1), "{page:?}");
    assert!(!page.has("tollgate_load_signal_pressure_ratio{signal=\"pool\"}"), "{page:?}");
    assert_eq!(connection.line("RL.CHECK acme /a"), "*5 :0 :1000 :998 :-1 :3600000");
    let shown = connection.line("RL.DEGRADE");
    assert!(shown.contains("\"pool\" \"kind\" \"systemic\" \"state\" \"expired\""), "{shown}");
    let info = connection.line("INFO load");
    assert!(info.contains("load_signal_pool:pressure=none,state=expired"), "{info}");
}

#[test]
fn health_is_good_while_much_is_given_up() {
    let tollgate = Tollgate::start(&[]);
    let mut connection = tollgate.connect();
    assert_eq!(connection.line("RL.DEGRADE FORCE 3"), "+OK");
    assert_eq!(connection.line("PING"), "+PONG");
    for path in ["/health/live", "/health/ready"] {
        assert_eq!(status(tollgate.http_port(), path), "HTTP/1.1 200 OK", "{path}");
    }
    assert!(connection.line("INFO load").contains("degrade_level:3"));
}

#[test]
fn ratio_lets_pass_what_the_limits_did_before() {
    let document = "name: acme\nrules: [{endpoint: /a, limit: 100, window: 1h}]\n";
    let governed = Governed::start(document, &[]);
    let mut connection = governed.tollgate.connect();
    for _ in 0..400 {
        connection.line("RL.CHECK acme /a");
    }
    connection.line("RL.DEGRADE FORCE 3");
    // The share is taken once a second; until then all pass.
    let is_denied = |connection: &mut Connection| {
        connection.line("RL.CHECK acme /a").starts_with("*5 :1 :0 :0 ")
    };
    wait_until(&governed.tollgate, |_| is_denied(&mut governed.tollgate.connect()));
    let denied = (0..4_000).filter(|_| is_denied(&mut connection)).count();
    assert!((2_800..=3_200).contains(&denied), "a quarter passed before: {denied} of 4000");
}

#[test]
fn what_is_given_up_is_counted_by_why_and_what_was_answered() {
    let governed = Governed::start(POLICY, &[]);
    let mut connection = governed.tollgate.connect();
    connection.line("RL.DEGRADE FORCE 3");
    for words in ["RL.CHECK acme /a", "RL.CHECK acme /a PEEK", "RL.LIMIT k 1 1s", "GET k"] {
        connection.line(words);
    }
    let page = metrics(&governed.tollgate);
    let count = |reason: &str, answer: &str, value: u32| {
        let labels = format!("{{reason=\"{reason}\",answer=\"{answer}\"}}");
        let series = format!("tollgate_load_given_up_total{labels}");
        assert!(is(&page, &series, value), "{series}: {page:?}");
    };
    count("emergency", "denied", 1);
    count("emergency", "allowed", 0);
    count("new_key", "refused", 1);
    let tenant = "tollgate_tenant_checks_total{tenant=\"acme\",outcome=\"degraded\"}";
    assert!(is(&page, tenant, 1), "{page:?}");
    assert!(is(&page, LEVEL, 3) && is(&page, "tollgate_degrade_forced", 1));
    assert!(is(&page, "tollgate_errors_total{code=\"OVERLOADED\"}", 1));
}

#[test]
fn every_signal_of_the_machine_is_told() {
    let tollgate = Tollgate::start(&WATCHFUL);
    let has = |page: &Page, signal: &str| {
        page.has(&format!("tollgate_load_signal_pressure_ratio{{signal=\"{signal}\"}}"))
    };
    let always = ["memory", "loop_lag", "in_flight", "queue_delay", "tasks", "bytes"];
    wait_until(&tollgate, |page| always.iter().all(|signal| has(page, signal)));
}

#[test]
fn pipeline_of_slow_requests_leaves_the_others_their_turn() {
    const REQUESTS: usize = 200;
    let program = Program::start(&["--set", "server.workers=1"]);
    let (mut greedy, mut other) = (program.connect(), program.connect());
    assert_eq!(other.line("PING"), "+PONG");
    // Some milliseconds each, so a second or more in all.
    let script = b"local sum = 0 for number = 1, 400000 do sum = sum + number end return sum";
    greedy.send(&encode(&[b"EVAL", script, b"0"]).repeat(REQUESTS));
    greedy.reply();
    let clock = Clock::system();
    let began = clock.now();
    let mut longest = Duration::ZERO;
    for _ in 0..5 {
        let asked = clock.now();
        assert_eq!(other.line("PING"), "+PONG");
        longest = longest.max(clock.now().since(asked));
    }
    let answered = clock.now();
    (1..REQUESTS).for_each(|_| drop(greedy.reply()));
    let rest = clock.now().since(answered);
    // Had it been one turn, the first answer would have come when all was done.
    assert!(rest > longest, "{longest} for a turn, {rest} for the rest of {began:?}");
}
