//! The limiter scripts of `lua-compat/`: each folder has its script, its cases and what it
//! promises; the cases hold at a real Redis.

use std::fs;

use crate::redis::Redis;
use crate::transcript::{Player, Transcript, read, within};

#[test]
fn cases_of_the_limiter_scripts_hold_at_redis() {
    let redis = Redis::start();
    let mut wrong = Vec::new();
    for cases in cases() {
        for section in cases.sections.iter().filter(|section| section.is_for_redis()) {
            for what in section.play(redis.port, &Player::Redis) {
                wrong.push(format!("{} ({}) line {what}", cases.path.display(), section.title));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
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
