//! The transcripts, played at Tollgate, and those of standard commands at a real Redis.

use crate::redis::Redis;
use crate::server::Tollgate;
use crate::transcript::{Player, all};

#[test]
fn transcripts_hold_at_tollgate() {
    let tollgate = Tollgate::start(&[]);
    let player = Player::Tollgate { advance: &|span| tollgate.advance(span) };
    report(&|section| section.play(tollgate.port(), &player));
}

#[test]
fn transcripts_of_standard_commands_hold_at_redis() {
    let redis = Redis::start();
    report(&|section| {
        if section.is_for_redis() { section.play(redis.port, &Player::Redis) } else { Vec::new() }
    });
}

fn report(play: &dyn Fn(&crate::transcript::Section) -> Vec<String>) {
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
