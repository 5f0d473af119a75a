//! The room as a whole: transcripts of what is malformed, scans in pieces against scans of the
//! whole, and redis-protocol as the second opinion in both directions.

use super::pieces::Found;
use super::*;

fn scan_whole(input: &[u8]) -> Found {
    scan_pieces(Limits::default(), Trust::Authenticated, &[input])
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
        assert_eq!(
            scan_pieces(Limits::default(), Trust::Authenticated, &[head, tail]),
            (expected.clone(), None)
        );
    }
}
