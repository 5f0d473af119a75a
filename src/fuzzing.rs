//! A door for the fuzz targets in `fuzz/` and the benches, which see only what is public.
//!
//! Not part of the interface: it exists behind the feature `fuzzing`, and changes with them.

use crate::protocol::{Limits, Reply, Resp, Scanner, Torn, Trust, cut, scan_pieces};

/// What a scan found: requests as lists of arguments, and why it ended early.
pub type Found = (Vec<Vec<Vec<u8>>>, Option<String>);

/// Scans `input` cut at `cuts` as a connection would that received it in such pieces.
pub fn scan(input: &[u8], cuts: &[usize]) -> Found {
    let pieces = cut(input, cuts);
    let (requests, failed) = scan_pieces(Limits::default(), Trust::Authenticated, &pieces);
    (requests, failed.map(|err| err.to_string()))
}

/// A worker's scanner with one connection.
#[derive(Debug)]
pub struct Worker {
    scanner: Scanner,
    torn: Torn,
}

impl Default for Worker {
    fn default() -> Self {
        Self { scanner: Scanner::new(Limits::default()), torn: Torn::default() }
    }
}

impl Worker {
    /// Scans once and looks at each argument: how many requests, and bytes of arguments.
    pub fn scan(&mut self, input: &[u8]) -> (usize, usize) {
        self.scanner.scan(&mut self.torn, input, Trust::Authenticated);
        let bytes = (0..self.scanner.len())
            .filter_map(|at| self.scanner.request(at, input))
            .map(|args| args.iter().map(<[u8]>::len).sum::<usize>());
        (self.scanner.len(), bytes.sum())
    }
}

/// Writes the reply of a limiter command.
pub fn reply_integers(out: &mut Vec<u8>, values: &[i64]) {
    Reply::new(out, Resp::V2).integers(values);
}

/// Writes a value.
pub fn reply_bulk(out: &mut Vec<u8>, bytes: &[u8]) {
    Reply::new(out, Resp::V2).bulk(bytes);
}
