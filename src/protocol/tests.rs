//! The room as a whole: transcripts of what is malformed, scans in pieces against scans of the
//! whole, and redis-protocol as the second opinion in both directions.

use super::*;

/// Every request of `pieces`, fed one after the other into a growing buffer as a connection does.
fn scan_pieces(limits: Limits, pieces: &[&[u8]]) -> (Vec<Vec<Vec<u8>>>, Option<ProtocolError>) {
    let mut scanner = Scanner::new(limits);
    let (mut torn, mut buffer, mut found) = (Torn::default(), Vec::new(), Vec::new());
    for piece in pieces {
        buffer.extend_from_slice(piece);
        loop {
            let scanned = scanner.scan(&mut torn, &buffer, Trust::Authenticated);
            found.extend(
                scanner.requests(&buffer).map(|args| args.iter().map(<[u8]>::to_vec).collect()),
            );
            if scanned.failed.is_some() {
                return (found, scanned.failed);
            }
            buffer.drain(..scanned.consumed);
            if scanner.is_empty() {
                break;
            }
        }
        assert_eq!(torn.needs() == 0, buffer.is_empty(), "{}", buffer.escape_ascii());
    }
    (found, None)
}

fn scan_whole(input: &[u8]) -> (Vec<Vec<Vec<u8>>>, Option<ProtocolError>) {
    scan_pieces(Limits::default(), &[input])
}

fn requests(lines: &[&[&str]]) -> Vec<Vec<Vec<u8>>> {
    lines.iter().map(|args| args.iter().map(|arg| arg.as_bytes().to_vec()).collect()).collect()
}

#[test]
fn pipelined_and_inline_requests_come_out_in_order() {
    let input =
        b"*2\r\n$3\r\nGET\r\n$3\r\nkey\r\nPING\r\n\r\n*0\r\n*-1\r\nset a 'b c'\n*1\r\n$0\r\n\r\n";
    let expected = requests(&[&["GET", "key"], &["PING"], &["set", "a", "b c"], &[""]]);
    assert_eq!(scan_whole(input), (expected.clone(), None));
    for split in 0..=input.len() {
        let (head, tail) = input.split_at(split);
        assert_eq!(scan_pieces(Limits::default(), &[head, tail]), (expected.clone(), None));
    }
}
