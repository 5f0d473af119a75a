//! What a connection may send that is short, odd or malformed, and what is made of it: each row
//! whole and byte by byte.

use super::super::{Args, Error, Limits, ProtocolError, Scanner, Torn, Trust, scan_pieces};
use super::{byte_by_byte, encode};

/// Requests as they would be typed, and the error that the connection is closed with.
type Outcome = (Vec<String>, Option<String>);

fn outcome(limits: Limits, trust: Trust, pieces: &[&[u8]]) -> Outcome {
    let (requests, failed) = scan_pieces(limits, trust, pieces);
    let typed = requests.iter().map(|args| {
        let words: Vec<String> =
            args.iter().map(|arg| format!("[{}]", arg.escape_ascii())).collect();
        words.concat()
    });
    let failed = failed.map(|err| match err {
        ProtocolError::CrossProtocol => "silent".to_owned(),
        err => Error::from(err).to_string(),
    });
    (typed.collect(), failed.map(|text| text.replace("ERR Protocol error: ", "")))
}

fn check(limits: Limits, trust: Trust, input: &[u8], requests: &[&str], failed: Option<&str>) {
    let expected: Outcome =
        (requests.iter().map(ToString::to_string).collect(), failed.map(str::to_owned));
    let start = &input[..input.len().min(80)];
    let start = start.escape_ascii();
    assert_eq!(outcome(limits, trust, &[input]), expected, "whole: {start}");
    let pieces = byte_by_byte(input);
    assert_eq!(outcome(limits, trust, &pieces), expected, "byte by byte: {start}");
}

#[test]
fn well_formed_requests_are_taken_and_empty_ones_passed_over() {
    let table: &[(&str, &[&str])] = &[
        ("", &[]),
        ("\r\n", &[]),
        ("\n\n \t\r\n", &[]),
        ("*0\r\n", &[]),
        ("*-1\r\n*-7\r\n", &[]),
        ("PING\r\n", &["[PING]"]),
        ("PING\n", &["[PING]"]),
        ("ping\r\r\n", &["[ping]"]),
        ("*1\r\n$4\r\nPING\r\n", &["[PING]"]),
        ("*1\r\n$0\r\n\r\n", &["[]"]),
        ("*2\r\n$3\r\nGET\r\n$2\r\n\r\n\r\n", &[r"[GET][\r\n]"]),
        ("*0\r\nPING\r\n*0\r\n", &["[PING]"]),
        ("set k \"a\\x00b\"\r\n", &[r"[set][k][a\x00b]"]),
        ("\"\"\r\n", &["[]"]),
        ("a\0b c\n", &[r"[a\x00b][c]"]),
        ("*1\r\n$4\r\nPING\r\nPING x\n*1\r\n$4\r\nQUIT\r\n", &["[PING]", "[PING][x]", "[QUIT]"]),
        (" *1\r\n", &["[*1]"]),
        ("$4\r\n", &["[$4]"]),
        ("postpone\n", &["[postpone]"]),
        ("host\n", &["[host]"]),
        ("get post\n", &["[get][post]"]),
        ("PING", &[]),
        ("*2\r\n$4\r\nPING\r\n", &[]),
        ("*2", &[]),
        ("PING\r\n*1\r\n$10\r\nabc", &["[PING]"]),
    ];
    for (input, requests) in table {
        check(Limits::default(), Trust::Authenticated, input.as_bytes(), requests, None);
    }
}

#[test]
fn malformed_requests_close_after_those_before_them() {
    let table: &[(&str, &[&str], &str)] = &[
        ("*\r\n", &[], "invalid multibulk length"),
        ("*a\r\n", &[], "invalid multibulk length"),
        ("*+1\r\n", &[], "invalid multibulk length"),
        ("*01\r\n", &[], "invalid multibulk length"),
        ("* 1\r\n", &[], "invalid multibulk length"),
        ("*1 \r\n", &[], "invalid multibulk length"),
        ("*-0\r\n", &[], "invalid multibulk length"),
        ("*1\rx", &[], "invalid multibulk length"),
        ("*1\n$4\r\n", &[], "invalid multibulk length"),
        ("*1\0\r\n", &[], "invalid multibulk length"),
        ("*1048577\r\n", &[], "invalid multibulk length"),
        ("*2147483648\r\n", &[], "invalid multibulk length"),
        ("*99999999999999999999\r\n", &[], "invalid multibulk length"),
        ("*1\r\n4", &[], "expected '$', got '4'"),
        ("*1\r\n*", &[], "expected '$', got '*'"),
        ("*1\r\n\r\n", &[], "expected '$', got '\r'"),
        ("*2\r\n$1\r\na\r\n:1\r\n", &[], "expected '$', got ':'"),
        ("*1\r\n$-1\r\n", &[], "invalid bulk length"),
        ("*1\r\n$a\r\n", &[], "invalid bulk length"),
        ("*1\r\n$\r\n", &[], "invalid bulk length"),
        ("*1\r\n$+4\r\n", &[], "invalid bulk length"),
        ("*1\r\n$04\r\n", &[], "invalid bulk length"),
        ("*1\r\n$4 \r\n", &[], "invalid bulk length"),
        ("*1\r\n$4\r$", &[], "invalid bulk length"),
        ("*1\r\n$536870913\r\n", &[], "invalid bulk length"),
        ("*1\r\n$99999999999999999999\r\n", &[], "invalid bulk length"),
        ("*1\r\n$4\r\nPINGPING\r\n", &[], "expected CR LF after bulk"),
        ("*1\r\n$4\r\nPING\n\n", &[], "expected CR LF after bulk"),
        ("*1\r\n$4\r\nPING\r\r", &[], "expected CR LF after bulk"),
        ("*3\r\n$536870912\r\n", &[], ""),
        ("PING\r\nset \"a\r\n", &["[PING]"], "unbalanced quotes in request"),
        ("set 'a'b\r\n", &[], "unbalanced quotes in request"),
        ("*1\r\n$4\r\nPING\r\n*x\r\n", &["[PING]"], "invalid multibulk length"),
        // The surplus of a bulk is not run as the next request.
        (
            "PING\r\n*3\r\n$3\r\nSET\r\n$3\r\nkey\r\n$5\r\nvalue12345\r\nPING\r\n",
            &["[PING]"],
            "expected CR LF after bulk",
        ),
        ("POST / HTTP/1.1\r\n", &[], "silent"),
        ("post\n", &[], "silent"),
        ("PING\r\nhOsT: 127.0.0.1:6379\r\nPING\r\n", &["[PING]"], "silent"),
        ("*1\r\n$4\r\nPOST\r\n\r\nPOST\r\n", &["[POST]"], "silent"),
    ];
    for (input, requests, failed) in table {
        let failed = Some(*failed).filter(|text| !text.is_empty());
        check(Limits::default(), Trust::Authenticated, input.as_bytes(), requests, failed);
    }
}

#[test]
fn lines_end_within_64_kib() {
    let limits = Limits::default();
    let longest = "x".repeat(64 << 10);
    let table = [
        (longest.clone() + "\n", None),
        (longest.clone() + "x", Some("too big inline request")),
        (longest.clone() + "x\n", Some("too big inline request")),
        ("*1\r\n$".to_owned() + &longest, Some("too big bulk count string")),
        ("*1\r\n$1".to_owned() + &longest[2..] + "\r\n", Some("invalid bulk length")),
        ("*".to_owned() + &longest, Some("too big mbulk count string")),
        ("*".to_owned() + &longest[1..] + "\r\n", Some("invalid multibulk length")),
        ("*\0".to_owned() + &longest, Some("too big mbulk count string")),
    ];
    for (input, failed) in table {
        let word = format!("[{longest}]");
        let requests: &[&str] = if failed.is_none() { &[&word] } else { &[] };
        check(limits, Trust::Authenticated, input.as_bytes(), requests, failed);
    }
}

#[test]
fn announced_size_over_a_limit_is_refused_at_once() {
    let limits = Limits {
        request_bytes_max: 2_000,
        args_max: 200,
        bulk_bytes_max: 1_500,
        inline_bytes_max: 40,
        ..Limits::default()
    };
    let table: &[(&str, Option<&str>)] = &[
        ("*200\r\n", None),
        ("*201\r\n", Some("invalid multibulk length")),
        ("*1\r\n$1500\r\n", None),
        ("*1\r\n$1501\r\n", Some("invalid bulk length")),
        // 5 + 7 + 1,500 + 2, and 81 arguments of at least 6 bytes, are exactly 2,000.
        ("*82\r\n$1500\r\n", None),
        ("*83\r\n$1500\r\n", Some("too big request")),
        ("*2\r\n$1000\r\n", None),
    ];
    for (input, failed) in table {
        check(limits, Trust::Authenticated, input.as_bytes(), &[], *failed);
    }
    let args = vec![vec![b'a'; 990], vec![b'b'; 990]];
    let sized = encode(&[args]);
    assert_eq!(sized.len(), 4 + 2 * (6 + 990 + 2));
    let over = Limits { request_bytes_max: sized.len() - 1, ..limits };
    let exact = Limits { request_bytes_max: sized.len(), ..limits };
    check(over, Trust::Authenticated, &sized, &[], Some("too big request"));
    assert_eq!(outcome(exact, Trust::Authenticated, &byte_by_byte(&sized)).1, None);
}

#[test]
fn unauthenticated_connection_may_send_little_and_one_request_a_scan() {
    let check = |input: &str, requests: &[&str], failed| {
        check(Limits::default(), Trust::Unauthenticated, input.as_bytes(), requests, failed);
    };
    check("*11\r\n", &[], Some("unauthenticated multibulk length"));
    check("*10\r\n", &[], None);
    check("*1\r\n$16385\r\n", &[], Some("unauthenticated bulk length"));
    check("*1\r\n$16384\r\n", &[], None);
    check(
        "PING\r\nPING\r\n*99\r\n",
        &["[PING]", "[PING]"],
        Some("unauthenticated multibulk length"),
    );

    let (mut scanner, mut torn) = (Scanner::new(Limits::default()), Torn::default());
    let input = b"AUTH x\r\n*11\r\n";
    let scanned = scanner.scan(&mut torn, input, Trust::Unauthenticated);
    assert_eq!((scanned.consumed, scanned.failed, scanner.len()), (8, None, 1));
    let scanned = scanner.scan(&mut torn, &input[8..], Trust::Authenticated);
    assert_eq!((scanned.consumed, scanned.failed, scanner.len()), (0, None, 0));
}

#[test]
fn scan_takes_no_more_than_the_pipeline_limit() {
    let limits = Limits { pipeline_max: 3, ..Limits::default() };
    let (mut scanner, mut torn) = (Scanner::new(limits), Torn::default());
    let input = b"a\nb\n\n*1\r\n$1\r\nc\r\nd\ne\n";
    let scanned = scanner.scan(&mut torn, input, Trust::Authenticated);
    assert_eq!((scanned.consumed, scanner.len(), torn.needs()), (16, 3, 0));
    assert_eq!(scanner.request(2, input).map(Args::name), Some(&b"c"[..]));
    assert!(scanner.request(3, input).is_none());
    scanner.scan(&mut torn, &input[16..], Trust::Authenticated);
    assert_eq!(scanner.len(), 2);
}
