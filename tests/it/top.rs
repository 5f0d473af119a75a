//! `tollgate top` as a person or a program uses it: not on a terminal, against a running server.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::server::{Program, command};

const RULES: &str = "rules: [{name: byip, per: [ip], limit: 1, window: 1h}]";

/// A server at which one caller of `acme` was denied three times, and one of `zeta` once.
fn server() -> (Program, tempfile::TempDir) {
    let folder = tempfile::tempdir().expect("a folder");
    for tenant in ["acme", "calm", "zeta"] {
        let path = folder.path().join(format!("{tenant}.yaml"));
        fs::write(path, format!("name: {tenant}\n{RULES}\n")).expect("it is written");
    }
    let program = Program::start(&["--policies", folder.path().to_str().expect("text")]);
    let mut connection = program.connect();
    for _ in 0..4 {
        connection.line("RL.CHECK acme - ATTR ip 10.0.0.1");
    }
    for _ in 0..2 {
        connection.line("RL.CHECK zeta - ATTR ip 10.0.0.2");
    }
    connection.line("RL.CHECK calm - ATTR ip 10.0.0.3");
    (program, folder)
}

fn top(port: u16, words: &[&str]) -> Command {
    command(&[&["top", "--every", "100ms", "--port", &port.to_string()], words].concat())
}

fn text(output: Output) -> String {
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).expect("it is text")
}

#[test]
fn top_prints_one_table_of_who_is_limited_the_most_denied_first() {
    let (program, _folder) = server();
    let told = text(top(program.port, &["--once"]).output().expect("the program is built"));
    let lines: Vec<&str> = told.lines().collect();
    let heading = format!("127.0.0.1:{}  3 tenants, 3 documents in force", program.port);
    assert_eq!(lines[0], heading);
    assert!(lines[1].contains(" checks/s, ") && lines[1].contains(" denied/s ("), "{told}");
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let columns = ["tenant", "rule", "key", "denied", "admitted", "denied/s", "admitted/s"];
    assert_eq!(words(lines[2]), columns);
    assert_eq!(words(lines[3])[..5], ["acme", "byip", "10.0.0.1", "3", "0"]);
    assert_eq!(words(lines[4])[..5], ["zeta", "byip", "10.0.0.2", "1", "0"]);
    assert_eq!(lines.len(), 5, "who is not limited is not there: {told}");
}

#[test]
fn top_tells_a_program_of_the_tenant_it_asks_for() {
    let (program, _folder) = server();
    let words = ["--once", "--json", "--tenant", "zeta", "--count", "1"];
    let told = text(top(program.port, &words).output().expect("the program is built"));
    let json: Value = serde_json::from_str(&told).expect("one object");
    assert_eq!((&json["tenants"], &json["documents"]["in_force"]), (&3.into(), &3.into()));
    assert_eq!(json["denied"], 4, "{json}");
    assert_eq!(json["rows"].as_array().map(Vec::len), Some(1));
    assert_eq!(
        (&json["rows"][0]["tenant"], &json["rows"][0]["key"]),
        (&"zeta".into(), &"10.0.0.2".into())
    );
}

#[test]
fn top_in_a_pipe_looks_again_and_again_also_after_the_server_was_away() {
    let (program, folder) = server();
    let port = program.port;
    let mut child = top(port, &["--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program is built");
    let mut lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
    let mut next = || -> Value {
        let line = lines.next().expect("it goes on").expect("it is text");
        serde_json::from_str(&line).expect("one object a line")
    };
    assert_eq!([next(), next()].map(|json| json["denied"].clone()), [4, 4]);
    assert!(program.end_by("TERM").success());
    let mut complaints = BufReader::new(child.stderr.take().expect("it is piped")).lines();
    let complaint = complaints.next().expect("it complains").expect("it is text");
    assert!(complaint.starts_with("tollgate: "), "{complaint}");
    let path = folder.path().to_str().expect("text");
    let _again = Program::start(&["--set", &format!("server.port={port}"), "--policies", path]);
    while next()["denied"] != 0 {}
    child.kill().expect("it runs");
    child.wait().expect("it ends");
}

#[test]
fn top_without_a_server_says_so_and_draws_nothing() {
    let output = top(1, &[]).output().expect("the program is built");
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0));
    assert!(told.contains("nothing listens on 127.0.0.1:1"), "{told}");
}
