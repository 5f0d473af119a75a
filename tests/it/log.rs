//! The log of the program itself, on its standard error.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use crate::server::command;

/// Starts the program, ends it when it has written its first line, and returns all it wrote.
fn log(flags: &[&str]) -> Vec<String> {
    let flags = [&["--port", "0", "--http-port", "0"], flags].concat();
    let mut child = command(&flags).stderr(Stdio::piped()).spawn().expect("the program is built");
    let mut lines = BufReader::new(child.stderr.take().expect("it is piped")).lines();
    let first = lines.next().expect("it says that it is ready").expect("text");
    let told = Command::new("kill").arg(child.id().to_string()).status();
    assert!(told.expect("kill is there").success());
    let rest = lines.map(|line| line.expect("text"));
    let all = std::iter::once(first).chain(rest).collect();
    assert!(child.wait().expect("it ends").success());
    all
}

#[test]
fn json_log_tells_the_start_and_the_stop_as_objects_alone() {
    let lines: Vec<serde_json::Value> = log(&["--set", "log.format=json"])
        .iter()
        .map(|line| serde_json::from_str(line).expect(line))
        .collect();
    let messages: Vec<&str> = lines.iter().filter_map(|line| line["message"].as_str()).collect();
    let expected = ["ready", "asked to stop", "stopping: finishing what has begun", "stopped"];
    assert_eq!(messages, expected);
    for fact in ["port", "http_port", "workers", "shards", "memory_max_bytes"] {
        assert!(lines[0][fact].as_u64().is_some_and(|number| number > 0), "{fact}: {}", lines[0]);
    }
    assert_eq!(lines[0]["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(lines[1]["signal"], "SIGTERM");
}

#[test]
fn text_log_greets_with_both_ports_and_without_colours() {
    let text = log(&[]).join("\n");
    assert!(text.contains("Try it:  redis-cli -p "), "{text}");
    assert!(text.contains("/metrics"), "{text}");
    assert!(!text.contains('\x1b'), "{text}");
}
