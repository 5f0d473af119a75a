//! The room as a whole: transcripts, pieces against wholes, and redis-protocol as the oracle.

#[cfg(feature = "client-central")]
mod answers;
mod incrbyfloat;
mod oracle;
mod split;
mod transcripts;

use super::pieces::Found;
use super::{Limits, Trust, scan_pieces};
use proptest::prelude::ProptestConfig;
use proptest::test_runner::RngSeed;

/// The same cases at each run; a finding becomes a row of a table, not a file.
fn config(cases: u32) -> ProptestConfig {
    ProptestConfig {
        cases,
        rng_seed: RngSeed::Fixed(1),
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

fn scan_whole(input: &[u8]) -> Found {
    scan_pieces(Limits::default(), Trust::Authenticated, &[input])
}

/// Cuts `input` into its bytes.
fn byte_by_byte(input: &[u8]) -> Vec<&[u8]> {
    input.chunks(1).collect()
}

fn encode(requests: &[Vec<Vec<u8>>]) -> Vec<u8> {
    let mut input = Vec::new();
    for args in requests {
        input.extend_from_slice(format!("*{}\r\n", args.len()).as_bytes());
        for arg in args {
            input.extend_from_slice(format!("${}\r\n", arg.len()).as_bytes());
            input.extend_from_slice(arg);
            input.extend_from_slice(b"\r\n");
        }
    }
    input
}
