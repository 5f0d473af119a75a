//! Operators with a password of their own: what is theirs, and how one becomes an operator.

use std::path::PathBuf;

use crate::server::Tollgate;
use crate::transcript::{Player, read, ungoverned};

const FLAG: [&str; 2] = ["--set", "server.operator_password=lift"];

fn play(flags: &[&str], transcript: &str) {
    let tollgate = Tollgate::start(flags);
    let player = Player::Tollgate { advance: &|span| tollgate.advance(span), govern: &ungoverned };
    let path = PathBuf::from("tests/it/operator").join(transcript);
    let sections = read(path).sections;
    let wrong: Vec<String> =
        sections.iter().flat_map(|section| section.play(tollgate.port(), &player)).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn administration_is_for_operators_where_they_have_a_password() {
    play(&FLAG, "alone.resp");
}

#[test]
fn operator_needs_no_other_password() {
    let flags = [&FLAG[..], &["--set", "server.password=sekret"]].concat();
    let tollgate = Tollgate::start(&flags);
    for (login, user) in [
        ("AUTH lift", "operator"),
        ("AUTH default lift", "operator"),
        ("AUTH operator lift", "operator"),
        ("AUTH sekret", "default"),
        ("AUTH default sekret", "default"),
    ] {
        let mut connection = tollgate.connect();
        assert_eq!(connection.line("PING"), "-NOAUTH Authentication required.");
        let wrong = "-WRONGPASS invalid username-password pair or user is disabled.";
        for refused in ["AUTH operator sekret", "AUTH other lift", "AUTH default wrong"] {
            assert_eq!(connection.line(refused), wrong, "{refused}");
        }
        assert_eq!(connection.line(login), "+OK", "{login}");
        assert_eq!(connection.line("ACL WHOAMI"), format!("\"{user}\""), "{login}");
        let is_refused = connection.line("SLOWLOG LEN").starts_with("-NOPERM");
        assert_eq!(is_refused, user == "default", "{login}");
    }
}

#[test]
fn every_command_that_is_flagged_admin_is_guarded_and_no_other() {
    let tollgate = Tollgate::start(&FLAG);
    let mut connection = tollgate.connect();
    let listed = connection.ask(&[b"COMMAND", b"LIST"]);
    let names: Vec<&str> = listed[1..].iter().map(|name| name.trim_matches('"')).collect();
    let is_container = |name: &str| {
        let beginning = format!("{name}|");
        names.iter().any(|other| other.starts_with(&beginning))
    };
    let script = "return redis.acl_check_cmd(unpack(ARGV))";
    let mut guarded = 0;
    for name in names.iter().filter(|name| !is_container(name)) {
        let flags = connection.ask(&[b"COMMAND", b"INFO", name.as_bytes()]);
        let words: Vec<&str> = name.split('|').collect();
        let request = [&["EVAL", script, "0"], &words[..]].concat();
        let request: Vec<&[u8]> = request.iter().map(|word| word.as_bytes()).collect();
        let is_admin = flags.contains(&"+admin".to_owned());
        let expected = if is_admin { "$-1" } else { ":1" };
        assert_eq!(connection.ask(&request), [expected], "{name}");
        guarded += u32::from(is_admin);
    }
    assert!(guarded > 20, "only {guarded} are guarded");
}
