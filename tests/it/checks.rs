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
