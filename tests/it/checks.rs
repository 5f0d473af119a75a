//! RL.CHECK at a whole server: what is counted, and what many connections get at once.

use std::thread;

use crate::governed::Governed;
use crate::http::metrics;
use crate::policies::is;
use crate::resp::{Connection, encode};
use crate::server::Program;

/// One a day for each address.
const ONE_A_DAY: &str = "name: acme\nrules: [{name: byip, per: [ip], limit: 1, window: 1d}]\n";

#[test]
fn check_is_one_decision_however_it_was_answered() {
    let governed = Governed::start(ONE_A_DAY, &[]);
    let mut connection = governed.tollgate.connect();
    // The first is allowed, the second denied and remembered, the rest denied from memory.
    for _ in 0..10 {
        connection.line("RL.CHECK acme - ATTR ip 1");
    }
    let info = connection.line("INFO tollgate");
    for line in ["decisions_allowed:1\\r", "decisions_denied:9\\r", "checks_from_memory:8\\r"] {
        assert!(info.contains(line), "{line}: {info}");
    }
    let page = metrics(&governed.tollgate);
    assert!(is(&page, "tollgate_checks_total{outcome=\"denied\"}", 9), "{page:?}");
}

/// A tenant whose callers share one quota, and have one each besides.
fn two_quotas(all: u64, each: u64) -> String {
    format!(
        "name: acme\nlimits: [{{limit: {all}, window: 1d}}]\n\
         rules: [{{name: each, per: [ip], limit: {each}, window: 1d}}]\n"
    )
}

/// Asks the same again and again in pipelines. Returns how many passed.
fn admitted(mut connection: Connection, request: &str, calls: usize) -> u64 {
    const PIPELINE: usize = 50;
    let words: Vec<&[u8]> = request.split(' ').map(str::as_bytes).collect();
    let pipeline = encode(&words).repeat(PIPELINE);
    let mut passed = 0;
    for _ in 0..calls / PIPELINE {
        connection.send(&pipeline);
        passed += (0..PIPELINE).filter(|_| connection.reply()[1] == ":0").count();
    }
    passed as u64
}

/// Of each quota that applies, how much is spent.
fn spent(connection: &mut Connection, request: &str) -> Vec<String> {
    let words: Vec<&[u8]> = request.split(' ').map(str::as_bytes).collect();
    let told = connection.ask(&words);
    let used = told.iter().zip(&told[1..]).filter(|(name, _)| *name == "\"used\"");
    used.map(|(_, used)| used.clone()).collect()
}

#[test]
fn eight_connections_on_two_quotas_get_the_smaller_one_and_spend_as_much_of_the_other() {
    // Of the larger quota first, so that it would be spent before the smaller one denies.
    for (all, each) in [(9_000, 1_234), (1_234, 9_000)] {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("acme.yaml");
        std::fs::write(&file, two_quotas(all, each)).expect("it is written");
        // The program itself, with more workers than this machine may have cores.
        let path = file.to_str().expect("its name is text");
        let program = Program::start(&["--policies", path, "--set", "server.workers=4"]);
        let total: u64 = thread::scope(|scope| {
            let callers: Vec<_> = (0..8)
                .map(|_| {
                    let connection = program.connect();
                    scope.spawn(|| admitted(connection, "RL.CHECK acme - ATTR ip 1", 1_000))
                })
                .collect();
            callers.into_iter().map(|caller| caller.join().expect("it counts")).sum()
        });
        assert_eq!(total, 1_234, "{all} and {each}");
        let used = spent(&mut program.connect(), "RL.EXPLAIN acme - ATTR ip 1");
        assert_eq!(used, [":1234", ":1234"], "{all} and {each}");
    }
}

/// Five a minute for each address, with the memory of denials.
const FIVE_A_MINUTE: &str = "name: acme\nrules: [{name: byip, per: [ip], limit: 5, window: 1m}]\n";

/// Whether a request of any kind passed.
fn passes(connection: &mut Connection, words: &[&str]) -> bool {
    let words: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
    let reply = connection.ask(&words);
    reply.iter().find(|line| line.starts_with(':')).is_some_and(|first| first == ":0")
}

#[test]
fn remembered_denial_ends_at_the_moment_when_the_quota_opens() {
    let document = "name: acme\nrules: [{name: r, limit: 2, window: 2s}]\n";
    let governed = Governed::start(document, &[]);
    let mut connection = governed.tollgate.connect();
    let mut ask = || connection.line("RL.CHECK acme -").starts_with("*5 :0");
    assert_eq!([ask(), ask()], [true, true]);
    assert!((0..100).all(|_| !ask()));
    governed.tollgate.advance("1999ms");
    assert!(!ask());
    governed.tollgate.advance("1ms");
    assert!(ask(), "a hundred denials have put nothing off");
    // Who never pauses gets what the limit allows, no more and no less.
    governed.tollgate.advance("1h");
    let mut passed = 0;
    for _ in 0..80 {
        passed += u32::from(ask());
        governed.tollgate.advance("100ms");
    }
    assert_eq!(passed, 8, "two in each two of eight seconds");
}

#[test]
fn remembered_denial_of_a_low_limit_says_nothing_of_a_higher_one() {
    let governed = Governed::start(ONE_A_DAY, &[]);
    let mut connection = governed.tollgate.connect();
    let mut limits = ["1", "1", "1", "100"]
        .map(|limit| connection.line(&format!("RL.LIMIT key {limit} 1m")).starts_with("*5 :0"));
    assert_eq!(limits, [true, false, false, true]);
    limits =
        [(); 4].map(|()| passes(&mut connection, &["RL.CHECK", "acme", "-", "ATTR", "ip", "1"]));
    assert_eq!(limits, [true, false, false, false]);
    governed.change(&ONE_A_DAY.replace("limit: 1,", "limit: 3,"));
    limits =
        [(); 4].map(|()| passes(&mut connection, &["RL.CHECK", "acme", "-", "ATTR", "ip", "1"]));
    assert_eq!(limits, [true, true, false, false], "in force at once, and one was spent");
}

#[test]
fn every_way_to_check_counts_in_the_same_buckets_beside_the_memory() {
    let governed = Governed::start(FIVE_A_MINUTE, &[]);
    let [mut one, mut other] = [(); 2].map(|()| governed.tollgate.connect());
    let check = ["RL.CHECK", "acme", "-", "ATTR", "ip", "1"];
    let script = "return redis.call(unpack(ARGV))";
    let by_script = [&["EVAL", script, "0"], &check[..]].concat();
    let mut passed = 0;
    for _ in 0..10 {
        passed += u32::from(passes(&mut one, &check));
        passed += u32::from(passes(&mut other, &by_script));
        assert_eq!(one.line("MULTI"), "+OK");
        assert_eq!(one.line(&check.join(" ")), "+QUEUED");
        passed += u32::from(passes(&mut one, &["EXEC"]));
        passed += u32::from(passes(&mut other, &[&check[..], &["DETAIL"]].concat()));
    }
    assert_eq!(passed, 5);
}

#[test]
fn denials_are_counted_whoever_answers_and_those_in_shadow_as_well() {
    let shadow =
        FIVE_A_MINUTE.replace("name: acme", "name: quiet").replace("1m}", "1m, mode: shadow}");
    let list = |document: &str| format!("  - {}\n", document.trim_end().replace('\n', "\n    "));
    let document = format!("tenants:\n{}{}", list(FIVE_A_MINUTE), list(&shadow));
    let governed = Governed::start(&document, &[]);
    let mut connection = governed.tollgate.connect();
    let mut passed = |tenant| {
        let check = ["RL.CHECK", tenant, "-", "ATTR", "ip", "1"];
        (0..30).filter(|_| passes(&mut connection, &check)).count()
    };
    assert_eq!([passed("acme"), passed("quiet")], [5, 30]);
    let page = metrics(&governed.tollgate);
    let tenant = |name: &str, outcome: &str| {
        format!("tollgate_tenant_checks_total{{tenant=\"{name}\",outcome=\"{outcome}\"}}")
    };
    let rule = |name: &str, mode: &str| {
        format!("tollgate_rule_denials_total{{tenant=\"{name}\",rule=\"byip\",mode=\"{mode}\"}}")
    };
    for (series, count) in [
        (tenant("acme", "allowed"), 5),
        (tenant("acme", "denied"), 25),
        (rule("acme", "enforce"), 25),
        (tenant("quiet", "allowed"), 30),
        (tenant("quiet", "denied"), 0),
        (rule("quiet", "shadow"), 25),
    ] {
        assert!(is(&page, &series, count), "{series} is not {count}: {page:?}");
    }
    assert!(connection.line("INFO tollgate").contains("checks_from_memory:24\\r"));
}
