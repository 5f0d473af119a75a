//! The HTTP port as Prometheus and a prober see it: over a plain socket.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use crate::exposition::Page;
use crate::server::{Tollgate, command};

/// Nothing that works takes this long.
const PATIENCE: Duration = Duration::from_secs(20);

/// As many connections as are answered at one time.
const PLACES: usize = 64;

fn open(port: u16) -> TcpStream {
    let stream = TcpStream::connect(("127.0.0.1", port)).expect("the HTTP port listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a socket option");
    stream
}

/// Sends one request and reads until the server closes: the status line, and the body.
fn ask(mut stream: TcpStream, request: &str) -> (String, String) {
    stream.write_all(request.as_bytes()).expect("it is taken");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer, then the end");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
    (head.lines().next().expect("a status line").to_owned(), body.to_owned())
}

fn get(port: u16, path: &str) -> (String, String) {
    ask(open(port), &format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n"))
}

/// The status line of a page.
pub(crate) fn status(port: u16, path: &str) -> String {
    get(port, path).0
}

pub(crate) fn metrics(tollgate: &Tollgate) -> Page {
    metrics_at(tollgate.http_port())
}

pub(crate) fn metrics_at(port: u16) -> Page {
    let (status, body) = get(port, "/metrics");
    assert_eq!(status, "HTTP/1.1 200 OK");
    Page::read(&body)
}

#[test]
fn metrics_never_go_back_at_a_reset_of_the_statistics() {
    let tollgate = Tollgate::start(&[]);
    let mut connection = tollgate.connect();
    for words in ["RL.LIMIT a 1 1m", "RL.LIMIT a 1 1m", "NOSUCH", "CONFIG RESETSTAT", "PING"] {
        connection.line(words);
    }
    let info = connection.line("INFO everything");
    assert!(info.contains("decisions_denied:0") && !info.contains("cmdstat_rl.limit"), "{info}");
    let page = metrics(&tollgate);
    let rows = ["tollgate_checks_total{outcome=\"denied\"}", "tollgate_errors_total{code=\"ERR\"}"];
    for series in rows {
        assert!((page.value(series) - 1.0).abs() < f64::EPSILON, "{series}");
    }
    let series = "tollgate_commands_total{command=\"RL.LIMIT\",outcome=\"ok\"}";
    assert!((page.value(series) - 2.0).abs() < f64::EPSILON, "{series}");
}

#[test]
fn metrics_tell_what_was_asked_and_answered() {
    let tollgate = Tollgate::start(&["--set", "engine.memory_max=64mb"]);
    let mut connection = tollgate.connect();
    for words in ["RL.LIMIT a 1 1m", "RL.LIMIT a 1 1m", "RL.LIMIT a x 1m", "RL.LIMIT a", "NOSUCH"] {
        connection.line(words);
    }
    tollgate.advance("90s");
    // An answer says that the batches before it are counted.
    connection.line("PING");
    let page = metrics(&tollgate);
    let rows = [
        ("tollgate_checks_total{outcome=\"allowed\"}", 1.0),
        ("tollgate_checks_total{outcome=\"denied\"}", 1.0),
        ("tollgate_commands_total{command=\"RL.LIMIT\",outcome=\"ok\"}", 2.0),
        ("tollgate_commands_total{command=\"RL.LIMIT\",outcome=\"failed\"}", 1.0),
        ("tollgate_commands_total{command=\"RL.LIMIT\",outcome=\"rejected\"}", 1.0),
        ("tollgate_command_duration_seconds_bucket{command=\"RL.LIMIT\",le=\"0.00000025\"}", 3.0),
        ("tollgate_command_duration_seconds_bucket{command=\"RL.LIMIT\",le=\"+Inf\"}", 3.0),
        ("tollgate_command_duration_seconds_count{command=\"RL.LIMIT\"}", 3.0),
        ("tollgate_command_duration_seconds_sum{command=\"RL.LIMIT\"}", 0.0),
        ("tollgate_errors_total{code=\"ERR\"}", 3.0),
        ("tollgate_connections", 1.0),
        ("tollgate_connections_received_total", 1.0),
        ("tollgate_connections_closed_total{reason=\"protocol\"}", 0.0),
        ("tollgate_memory_max_bytes", 67_108_864.0),
        ("tollgate_uptime_seconds", 90.0),
        ("tollgate_clock_gap_seconds", 0.0),
    ];
    for (series, value) in rows {
        assert!((page.value(series) - value).abs() < f64::EPSILON, "{series} {value}");
    }
    assert!(page.value("tollgate_network_input_bytes_total") > 0.0);
    assert!(page.value("tollgate_process_resident_bytes") > 0.0);
    let called = "tollgate_commands_total{command=\"RL.RESET\",outcome=\"ok\"}";
    assert!(!page.has(called), "a command that nobody called is left out");
}

#[test]
fn requests_by_http_are_counted_by_page_and_code() {
    let tollgate = Tollgate::start(&[]);
    for path in ["/health/live", "/health/live", "/health/ready", "/wp-login.php", "/metrics/x"] {
        get(tollgate.http_port(), path);
    }
    metrics(&tollgate);
    let page = metrics(&tollgate);
    let rows = [
        ("tollgate_http_requests_total{path=\"/health/live\",code=\"200\"}", 2.0),
        ("tollgate_http_requests_total{path=\"/health/ready\",code=\"503\"}", 0.0),
        ("tollgate_http_requests_total{path=\"other\",code=\"404\"}", 2.0),
        // The scrape that asks is counted when it has its answer.
        ("tollgate_http_requests_total{path=\"/metrics\",code=\"200\"}", 1.0),
        ("tollgate_http_request_duration_seconds_count{path=\"/health/live\"}", 2.0),
        ("tollgate_http_request_duration_seconds_bucket{path=\"other\",le=\"+Inf\"}", 2.0),
        ("tollgate_clock_steps_total{direction=\"backward\"}", 0.0),
        ("tollgate_panics_total", 0.0),
        ("tollgate_log_events_total{level=\"warn\"}", 0.0),
    ];
    for (series, value) in rows {
        assert!((page.value(series) - value).abs() < f64::EPSILON, "{series} {value}");
    }
    assert!(page.has("tollgate_sweep_laps_total"));
}

#[test]
fn names_of_metrics_follow_their_kind() {
    for (name, kind) in metrics(&Tollgate::start(&[])).kinds() {
        assert!(name.starts_with("tollgate_"), "{name}");
        assert_eq!(name.ends_with("_total"), kind == "counter", "{name} is a {kind}");
    }
}

#[test]
fn protocol_error_is_counted_as_a_closed_connection() {
    let tollgate = Tollgate::start(&[]);
    let mut connection = tollgate.connect();
    connection.send(b"*x\r\n");
    while connection.reply() != ["(closed)"] {}
    let series = "tollgate_connections_closed_total{reason=\"protocol\"}";
    assert!((metrics(&tollgate).value(series) - 1.0).abs() < f64::EPSILON);
}

#[test]
fn readiness_ends_first_and_health_goes_on_while_the_server_drains() {
    let tollgate = Tollgate::start(&[]);
    let port = tollgate.http_port();
    assert_eq!(get(port, "/health/ready").0, "HTTP/1.1 200 OK");
    let mut connection = tollgate.connect();
    // The reply to the first request says that the half one after it was read, too.
    connection.send(b"PING\r\n*1\r\n$4\r\nPI");
    assert_eq!(connection.reply(), ["+PONG"]);
    let stopping = std::thread::spawn(move || tollgate.stop());
    let refused = (0..10_000).map(|_| get(port, "/health/ready")).find(|(status, _)| {
        assert!(!stopping.is_finished(), "it did not wait for what was begun");
        status != "HTTP/1.1 200 OK"
    });
    let (status, body) = refused.expect("it is asked to stop");
    assert_eq!(status, "HTTP/1.1 503 Service Unavailable");
    let body: serde_json::Value = serde_json::from_str(&body).expect("an object");
    assert_eq!(body["reason"], "draining");
    assert_eq!(get(port, "/health/live").0, "HTTP/1.1 200 OK");
    connection.send(b"NG\r\n");
    assert_eq!(connection.reply(), ["+PONG"]);
    stopping.join().expect("it stops in order");
    TcpStream::connect(("127.0.0.1", port)).expect_err("the HTTP port is closed");
}

#[test]
fn silent_clients_keep_nobody_out_for_long() {
    let tollgate = Tollgate::start(&[]);
    let port = tollgate.http_port();
    let mut silent: Vec<TcpStream> = (0..PLACES).map(|_| open(port)).collect();
    let late = open(port);
    silent.pop();
    let (status, _) = ask(late, "GET /health/live HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert_eq!(status, "HTTP/1.1 200 OK");
}

#[test]
fn endless_head_of_a_request_is_refused() {
    let tollgate = Tollgate::start(&[]);
    let head = format!("GET / HTTP/1.1\r\nX: {}\r\n", "x".repeat(16 << 10));
    let (status, _) = ask(open(tollgate.http_port()), &head);
    assert_eq!(status, "HTTP/1.1 431 Request Header Fields Too Large");
}

#[test]
fn taken_http_port_is_told_with_what_to_do() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = taken.local_addr().expect("it is bound");
    let port = address.port().to_string();
    let ended = command(&["--port", "0", "--http-port", &port]).output().expect("it is built");
    assert_eq!(ended.status.code(), Some(1));
    let said = String::from_utf8_lossy(&ended.stderr).into_owned();
    let expected = format!(
        "tollgate: cannot listen on {address}: another program is listening there already; \
         choose another port with --http-port, or stop that program\n"
    );
    assert_eq!(said, expected);
}

#[test]
fn http_port_that_is_turned_off_is_not_there() {
    let tollgate = Tollgate::start(&["--set", "server.http.enabled=false"]);
    assert_eq!(tollgate.connect().line("PING"), "+PONG");
    assert!(!tollgate.has_http());
}
