//! The log of the program itself, on its standard error.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use crate::resp::Connection;
use crate::server::command;

/// Starts the program, ends it when it has written its first line, and returns all it wrote.
fn log(flags: &[&str]) -> Vec<String> {
    log_while(flags, |_| {})
}

/// The same with `work` before the end, told the first line.
fn log_while(flags: &[&str], work: impl FnOnce(&str)) -> Vec<String> {
    let flags = [&["--port", "0", "--http-port", "0"], flags].concat();
    let mut child = command(&flags).stderr(Stdio::piped()).spawn().expect("the program is built");
    let mut lines = BufReader::new(child.stderr.take().expect("it is piped")).lines();
    let first = lines.next().expect("it says that it is ready").expect("text");
    work(&first);
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
fn debug_log_tells_of_each_connection_and_no_password() {
    let flags = "log.format=json log.level=debug server.password=sekret";
    let flags: Vec<&str> = flags.split(' ').flat_map(|setting| ["--set", setting]).collect();
    let lines = log_while(&flags, |ready| {
        let ready: serde_json::Value = serde_json::from_str(ready).expect(ready);
        let port = ready["port"].as_u64().and_then(|port| port.try_into().ok());
        let mut connection = Connection::open(port.expect("it tells its port"));
        assert_eq!(connection.line("AUTH sekret"), "+OK");
        assert_eq!(connection.line("CONFIG SET requirepass sekret2"), "+OK");
        assert!(connection.line("HELLO 2 AUTH default sekret3").starts_with("-WRONGPASS"));
    });
    assert!(!lines.iter().any(|line| line.contains("sekret")), "{lines:?}");
    for phrase in ["a connection began", "a connection ended"] {
        let parts = [phrase, "\"connection\":1,", "\"address\":\"127.0.0.1:"];
        let is_told = |line: &&String| parts.iter().all(|part| line.contains(part));
        assert_eq!(lines.iter().filter(is_told).count(), 1, "{phrase}: {lines:?}");
    }
}

#[test]
fn text_log_greets_with_both_ports_and_without_colours() {
    let text = log(&[]).join("\n");
    assert!(text.contains("Try it:  redis-cli -p "), "{text}");
    assert!(text.contains("/metrics"), "{text}");
    assert!(!text.contains('\x1b'), "{text}");
}

#[test]
fn script_that_runs_again_is_logged_once_and_never_beyond_a_bound() {
    let lines = log_while(&["--set", "log.format=json"], |first| {
        let first: serde_json::Value = serde_json::from_str(first).expect(first);
        let mut connection =
            Connection::open(first["port"].as_u64().and_then(|p| p.try_into().ok()).expect("one"));
        let straying = b"redis.log(redis.LOG_WARNING, 'straying') redis.call('SET', 'k', 1)";
        connection.ask(&[b"EVAL", straying, b"0"]);
        let many = b"for i = 1, 1000 do redis.log(redis.LOG_WARNING, 'many') end";
        connection.ask(&[b"EVAL", many, b"0"]);
    });
    let told = |text: &str| lines.iter().filter(|line| line.contains(text)).count();
    assert_eq!(told("straying"), 1, "{lines:?}");
    assert_eq!(told("many"), 64, "{lines:?}");
    assert_eq!(told("and 936 lines more"), 1, "{lines:?}");
}
