//! The request scanner on any bytes, cut anywhere, against the whole and against redis-protocol.
//!
//! The first byte says how many cuts follow it, two bytes each; the rest is what a client sends.

#![no_main]

use libfuzzer_sys::fuzz_target;
use redis_protocol::resp2::decode::decode;
use redis_protocol::resp2::types::OwnedFrame;
use tollgate::fuzzing::scan;

/// The oracle recurses on nested arrays, so it is asked about no more than this.
const ORACLE_BYTES_MAX: usize = 4_096;

fuzz_target!(|data: &[u8]| {
    let Some((cut_count, rest)) = data.split_first() else { return };
    let cut_bytes = usize::from(cut_count % 16) * 2;
    let Some((cuts, input)) = rest.split_at_checked(cut_bytes) else { return };
    let cuts: Vec<usize> =
        cuts.chunks(2).map(|pair| usize::from(pair[0]) << 8 | usize::from(pair[1])).collect();

    let (requests, failed) = scan(input, &[]);
    assert_eq!(scan(input, &cuts), (requests.clone(), failed.clone()), "in pieces");
    let bytes: Vec<usize> = (0..input.len()).collect();
    assert_eq!(scan(input, &bytes), (requests.clone(), failed), "byte by byte");

    let encoded = encode(&requests);
    assert_eq!(scan(&encoded, &cuts), (requests.clone(), None), "encoded again");
    agrees_with_the_oracle(input, &requests);
});

/// As long as the oracle reads arrays of bulks off the front, they are our requests.
fn agrees_with_the_oracle(input: &[u8], requests: &[Vec<Vec<u8>>]) {
    let mut rest = &input[..input.len().min(ORACLE_BYTES_MAX)];
    let mut requests = requests.iter();
    while let Ok(Some((OwnedFrame::Array(frames), length))) = decode(rest) {
        let args: Option<Vec<Vec<u8>>> = frames
            .into_iter()
            .map(|frame| match frame {
                OwnedFrame::BulkString(bytes) => Some(bytes),
                _ => None,
            })
            .collect();
        let Some(args) = args else { return };
        // The oracle is laxer: it takes signs and zeros in a length, and any bytes after a bulk.
        let strict = encode(std::slice::from_ref(&args));
        if strict != rest[..length] {
            return;
        }
        if !args.is_empty() {
            assert_eq!(requests.next(), Some(&args), "as the oracle reads it");
        }
        rest = &rest[length..];
    }
}

fn encode(requests: &[Vec<Vec<u8>>]) -> Vec<u8> {
    let mut encoded = Vec::new();
    for args in requests {
        encoded.extend_from_slice(format!("*{}\r\n", args.len()).as_bytes());
        for arg in args {
            encoded.extend_from_slice(format!("${}\r\n", arg.len()).as_bytes());
            encoded.extend_from_slice(arg);
            encoded.extend_from_slice(b"\r\n");
        }
    }
    encoded
}
