//! The transcripts, played at Tollgate, and those of standard commands at a real Redis.

use std::collections::BTreeSet;

use crate::governed::Governed;
use crate::redis::Redis;
use crate::server::Tollgate;
use crate::transcript::{Player, Section, all, ungoverned};

#[test]
fn transcripts_hold_at_tollgate() {
    let tollgate = Tollgate::start(&[]);
    let player = Player::Tollgate { advance: &|span| tollgate.advance(span), govern: &ungoverned };
    report(&|section| match &section.policies {
        _ if !section.is_alone() => section.play(tollgate.port(), &player),
        Some(policies) => play_alone(section, policies),
        None => play_alone(section, NO_POLICIES),
    });
}

const NO_POLICIES: &str = "tenants: []";

fn play_alone(section: &Section, policies: &str) -> Vec<String> {
    let flags: Vec<&str> =
        section.settings.iter().flat_map(|setting| ["--set", setting.as_str()]).collect();
    let governed = Governed::start(policies, &flags);
    let tollgate = &governed.tollgate;
    let player = Player::Tollgate {
        advance: &|span| tollgate.advance(span),
        govern: &|document| governed.change(document),
    };
    section.play(tollgate.port(), &player)
}

#[test]
fn transcripts_of_standard_commands_hold_at_redis() {
    let redis = Redis::start();
    report(&|section| {
        if section.is_for_redis() { section.play(redis.port, &Player::Redis) } else { Vec::new() }
    });
}

/// Commands themselves are held to it by `tests/tidy`; subcommands only the server can list.
#[test]
fn every_subcommand_is_asked_in_a_transcript() {
    let transcripts = all();
    let sections = transcripts.iter().flat_map(|transcript| &transcript.sections);
    let asked: BTreeSet<String> = sections
        .flat_map(Section::requests)
        .filter_map(|typed| {
            let mut words = typed.split(' ');
            Some(format!("{}|{}", words.next()?, words.next()?).to_lowercase())
        })
        .collect();
    let tollgate = Tollgate::start(&[]);
    let described = tollgate.connect().ask(&[b"COMMAND", b"DOCS"]);
    let missing: BTreeSet<&str> = described
        .iter()
        .map(|line| line.trim_matches('"'))
        .filter(|word| word.contains('|') && !word.contains(' ') && !asked.contains(*word))
        .collect();
    assert!(described.contains(&"\"client|list\"".to_owned()), "subcommands are described");
    assert!(missing.is_empty(), "ask them in tests/it/wire/*.resp: {missing:?}");
}

fn report(play: &dyn Fn(&Section) -> Vec<String>) {
    let mut wrong = Vec::new();
    for transcript in all() {
        for section in &transcript.sections {
            for what in play(section) {
                let file = transcript.path.file_name().unwrap_or_default().display();
                wrong.push(format!("{file} ({}) line {what}", section.title));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
