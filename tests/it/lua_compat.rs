//! The limiter scripts of `lua-compat/`: each folder has its script, its cases and what it
//! promises; the cases hold at a real Redis, and here with native twins and without.

use std::fs;

use crate::redis::Redis;
use crate::server::Tollgate;
use crate::transcript::{Player, Section, Transcript, read, ungoverned, within};

#[test]
fn cases_of_the_limiter_scripts_hold_at_redis() {
    let redis = Redis::start();
    let wrong = play(|section| {
        let plays = section.is_for_redis();
        if plays { section.play(redis.port, &Player::Redis) } else { Vec::new() }
    });
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn cases_of_the_limiter_scripts_hold_by_lua_and_by_their_twins() {
    for switch in ["false", "true"] {
        let wrong = play(|section| {
            // Windows begin at moments that the cases know.
            let tollgate = Tollgate::start(&["--set", &format!("lua.native_twins={switch}")]);
            let player =
                Player::Tollgate { advance: &|span| tollgate.advance(span), govern: &ungoverned };
            section.play(tollgate.port(), &player)
        });
        assert!(wrong.is_empty(), "native_twins: {switch}\n{}", wrong.join("\n"));
    }
}

/// Plays every section; returns what was wrong, and where.
fn play(play: impl Fn(&Section) -> Vec<String>) -> Vec<String> {
    let mut wrong = Vec::new();
    for cases in cases() {
        for section in &cases.sections {
            for what in play(section) {
                wrong.push(format!("{} ({}) line {what}", cases.path.display(), section.title));
            }
        }
    }
    wrong
}

#[test]
fn every_limiter_script_says_what_it_promises() {
    for folder in within("lua-compat") {
        let about = fs::read_to_string(folder.join("ABOUT.md")).expect("there is an ABOUT.md");
        for heading in ["## Keys", "## Arguments", "## Reply", "## Promise", "## From redis-cli"] {
            assert!(about.contains(heading), "{}: no {heading}", folder.display());
        }
    }
}

fn cases() -> Vec<Transcript> {
    let cases: Vec<Transcript> =
        within("lua-compat").iter().map(|folder| read(folder.join("cases.resp"))).collect();
    assert!(cases.len() >= 6, "the scripts were not found");
    cases
}
