//! The program as a person starts and stops it.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::process::Output;

use crate::resp::encode;
use crate::server::{Program, command};

fn run(arguments: &[&str]) -> Output {
    command(arguments).output().expect("the program is built")
}

fn error(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn port_in_use_is_told_in_a_sentence() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = taken.local_addr().expect("it is bound").port().to_string();
    let output = run(&["serve", "--port", &port]);
    assert_eq!(output.status.code(), Some(1));
    let expected = format!("cannot listen on 127.0.0.1:{port}: another program is listening there");
    assert!(error(&output).contains(&expected), "{}", error(&output));
}

#[test]
fn wrong_flag_or_setting_is_bad_input() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("my.yaml");
    fs::write(&file, "server:\n  prot: 7000\n").expect("it is written");
    let file = file.to_str().expect("its name is text");
    let cases: [(&[&str], &str); 5] = [
        (&["--prot", "1"], "--port"),
        (&["--port", "65536"], "65536"),
        (&["--set", "server.prot=1"], "server.port"),
        (&["--config", file], "my.yaml:2:3"),
        (&["--config", "/no/such/file.yaml"], "/no/such/file.yaml"),
    ];
    for (arguments, expected) in cases {
        let output = run(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", error(&output));
        assert!(error(&output).contains(expected), "{arguments:?}: {}", error(&output));
    }
}

#[test]
fn config_prints_what_is_in_force_and_can_be_read_back() {
    let output = run(&["config", "--port", "7001", "--set", "server.password=secret"]);
    assert!(output.status.success());
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("port: 7001"), "{text}");
    assert!(!text.contains("secret"), "{text}");
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("printed.yaml");
    let file = file.to_str().expect("its name is text");
    fs::write(file, &output.stdout).expect("it is written");
    let masked = run(&["config", "--config", file]);
    assert_eq!(masked.status.code(), Some(2));
    assert!(error(&masked).contains("write the password itself"), "{}", error(&masked));
    fs::write(file, text.replace("'***'", "''")).expect("it is written");
    let again = run(&["config", "--config", file]);
    assert_eq!(String::from_utf8_lossy(&again.stdout), text.replace("'***'", "''"));
}

#[test]
fn a_signal_ends_it_in_order() {
    for signal in ["TERM", "INT"] {
        let program = Program::start(&[]);
        let mut idle = program.connect();
        let mut asker = program.connect();
        assert_eq!(asker.line("RL.LIMIT k 5 1m"), "*5 :0 :5 :4 :-1 :60000");
        assert_eq!(program.end_by(signal).code(), Some(0), "{signal}");
        assert_eq!(idle.reply(), ["(closed)"]);
    }
}

#[test]
fn what_was_sent_before_the_signal_is_answered() {
    let program = Program::start(&[]);
    let mut connection = program.connect();
    assert_eq!(connection.line("PING"), "+PONG");
    let pipeline = encode(&[b"RL.LIMIT", b"k", b"100000", b"1m"]).repeat(5_000);
    connection.send(&pipeline);
    assert_eq!(connection.reply()[..2], ["*5", ":0"]);
    assert_eq!(program.end_by("TERM").code(), Some(0));
    let mut last = connection.reply();
    while last[0] != "(closed)" {
        assert_eq!(last[..2], ["*5", ":0"], "a reply is whole");
        last = connection.reply();
    }
}

#[test]
fn second_signal_ends_what_is_left_at_once() {
    let program = Program::start(&["--set", "server.drain_timeout=1h"]);
    let mut connection = program.connect();
    // The second request is begun: only its end would let the server go in order.
    connection.send(b"PING\r\n*2\r\n$4\r\nECHO\r\n");
    assert_eq!(connection.reply(), ["+PONG"]);
    assert_eq!(program.end_by_insisting("TERM").code(), Some(1));
    assert_eq!(connection.reply(), ["(closed)"]);
}

#[test]
fn scripts_that_wait_behind_an_endless_one_do_not_keep_it_from_ending() {
    let program = Program::start(&["--set", "server.workers=2"]);
    let (mut held, mut other) = (program.connect(), program.connect());
    let code = b"#!lua name=lib\nredis.register_function('spin', function() while true do end end)";
    assert_eq!(held.ask(&[b"FUNCTION", b"LOAD", code]), ["\"lib\""]);
    held.send(&encode(&[b"FCALL", b"spin", b"0"]).repeat(3));
    let runs = |_| other.line("FUNCTION STATS").contains("\"spin\"");
    assert!((0..10_000).any(runs));
    assert_eq!(program.end_by_insisting("TERM").code(), Some(1));
}

#[test]
fn check_answers_in_words_and_by_its_exit_code() {
    let program = Program::start(&[]);
    let port = program.port.to_string();
    let check = |arguments: &[&str]| run(&[&["check", "--port", &port], arguments].concat());
    let allowed = check(&["user:42", "1", "1m"]);
    assert_eq!(allowed.status.code(), Some(0), "{}", error(&allowed));
    assert!(String::from_utf8_lossy(&allowed.stdout).starts_with("allowed"));
    let denied = check(&["user:42", "1", "1m"]);
    assert_eq!(denied.status.code(), Some(3));
    assert!(String::from_utf8_lossy(&denied.stdout).starts_with("denied"));
    assert_eq!(check(&["user:42", "1", "soon"]).status.code(), Some(2));
    let nobody = run(&["check", "--port", "1", "k", "1", "1s"]);
    assert_eq!(nobody.status.code(), Some(1));
}

#[test]
fn bench_loads_a_server_and_counts_every_reply() {
    let program = Program::start(&[]);
    let port = program.port.to_string();
    let output = run(&[
        "bench",
        "--port",
        &port,
        "--requests",
        "5000",
        "--connections",
        "5",
        "--pipeline",
        "10",
        "--json",
        "-",
        "RL.LIMIT",
        "{key}",
        "2",
        "1d",
    ]);
    assert!(output.status.success(), "{}", error(&output));
    let report: serde_json::Value =
        serde_json::from_slice(&output.stdout).expect("it prints JSON alone");
    let text = report.to_string();
    assert!(text.contains("5000"), "{text}");
}

#[test]
fn replies_on_their_way_are_not_taken_back_by_a_stop() {
    let program = Program::start(&[]);
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None);
    let socket = socket.expect("a socket");
    // So small that most replies wait in the server when the signal comes.
    socket.set_recv_buffer_size(4_096).expect("a socket option");
    let address = std::net::SocketAddr::from(([127, 0, 0, 1], program.port));
    socket.connect(&address.into()).expect("it listens");
    let mut stream = std::net::TcpStream::from(socket);
    let word = [b'x'; 1_000];
    let pair = [encode(&[b"INCR", b"n"]), encode(&[b"ECHO", &word])].concat();
    stream.write_all(&pair.repeat(600)).expect("it takes all");
    let mut first = [0; 4];
    stream.read_exact(&mut first).expect("the first reply");
    assert_eq!(&first, b":1\r\n");
    let mut other = program.connect();
    assert_eq!(other.line("PING"), "+PONG");
    let ended = std::thread::spawn(move || program.end_by("TERM"));
    stream.write_all(&encode(&[b"PING"]).repeat(3)).ok();
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).expect("the end, and no reset");
    assert_eq!(ended.join().expect("it ends").code(), Some(0));
    let rest = String::from_utf8(rest).expect("text");
    let counts: Vec<&str> = rest.lines().filter_map(|line| line.strip_prefix(':')).collect();
    let expected: Vec<String> = (2..2 + counts.len()).map(|count| count.to_string()).collect();
    assert_eq!(counts, expected);
    assert!(rest.ends_with("\r\n"), "the last reply is whole");
}
