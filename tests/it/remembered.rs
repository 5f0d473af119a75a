//! Denials answered from memory, as callers and the metrics page see them: never longer than they
//! stand, never for a higher limit, and counted like any other.

use std::fs;

use crate::http::metrics;
use crate::server::Tollgate;

const POLICIES: &str = "\
tenants:
  - name: hard
    rules: [{name: user, per: [user], limit: 5, window: 1m}]
  - name: soft
    rules: [{name: user, per: [user], limit: 5, window: 1m, mode: shadow}]
  - name: short
    rules: [{name: user, per: [user], limit: 2, window: 2s}]
";

fn start() -> (tempfile::TempDir, Tollgate) {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("policies.yaml");
    fs::write(&file, POLICIES).expect("it is written");
    let tollgate = Tollgate::start(&["--policies", file.to_str().expect("its name is text")]);
    (folder, tollgate)
}

fn is_allowed(reply: &str) -> bool {
    reply.starts_with("*5 :0 ")
}

#[test]
fn denied_caller_that_never_pauses_passes_the_moment_a_place_is_free() {
    let (_folder, tollgate) = start();
    let mut connection = tollgate.connect();
    let passes = (0..80).filter(|_| {
        tollgate.advance("100ms");
        is_allowed(&connection.line("RL.CHECK short - ATTR user u1"))
    });
    // Two at once, and each comes back two seconds after it was spent: 0.1, 0.2, 2.1, 2.2, ...
    let passes: Vec<u32> = passes.collect();
    assert_eq!(passes, [0, 1, 20, 21, 40, 41, 60, 61]);
}

#[test]
fn callers_on_two_connections_share_one_count() {
    let (_folder, tollgate) = start();
    let mut connections = [tollgate.connect(), tollgate.connect()];
    let passes = (0..20)
        .filter(|turn| is_allowed(&connections[turn % 2].line("RL.CHECK hard - ATTR user u1")));
    assert_eq!(passes.count(), 5);
}

#[test]
fn denial_of_a_low_limit_says_nothing_of_a_higher_one() {
    let (_folder, tollgate) = start();
    let mut connection = tollgate.connect();
    let mut ask = |limit: &str| is_allowed(&connection.line(&format!("RL.LIMIT k {limit} 1m")));
    assert_eq!([ask("1"), ask("1"), ask("100")], [true, false, true]);
}

#[test]
fn denials_are_counted_also_when_memory_answers_them() {
    let (_folder, tollgate) = start();
    let mut connection = tollgate.connect();
    for _ in 0..30 {
        connection.line("RL.CHECK hard - ATTR user u1");
        assert!(is_allowed(&connection.line("RL.CHECK soft - ATTR user u1")));
    }
    let page = metrics(&tollgate);
    let checks = |tenant: &str, outcome: &str| {
        page.value(&format!(
            "tollgate_tenant_checks_total{{tenant=\"{tenant}\",outcome=\"{outcome}\"}}"
        ))
    };
    let denials = |tenant: &str, mode: &str| {
        page.value(&format!(
            "tollgate_rule_denials_total{{tenant=\"{tenant}\",rule=\"user\",mode=\"{mode}\"}}"
        ))
    };
    let told = [checks("hard", "allowed"), checks("hard", "denied"), denials("hard", "enforce")];
    assert_eq!(told.map(|count| count as u64), [5, 25, 25]);
    let told = [checks("soft", "allowed"), checks("soft", "denied"), denials("soft", "shadow")];
    assert_eq!(told.map(|count| count as u64), [30, 0, 25]);
    let answered = page.value("tollgate_prefilter_questions_total{outcome=\"answered\"}");
    assert!(answered >= 20.0, "memory answered {answered}");
}
