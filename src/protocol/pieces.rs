//! Requests that arrive in pieces, as a connection takes them: for tests and the fuzz target.

use super::{Limits, ProtocolError, Scanner, Torn, Trust};

/// Requests as owned arguments, and why no more were read.
pub(crate) type Found = (Vec<Vec<Vec<u8>>>, Option<ProtocolError>);

/// Cuts `input` at each place, given in any order and taken modulo its length.
pub(crate) fn cut<'a>(input: &'a [u8], places: &[usize]) -> Vec<&'a [u8]> {
    let mut places: Vec<usize> = places.iter().map(|place| place % (input.len() + 1)).collect();
    places.sort_unstable();
    places.push(input.len());
    let mut from = 0;
    let pieces = places.iter().map(|to| {
        let piece = &input[from..*to];
        from = *to;
        piece
    });
    pieces.collect()
}

/// Appends each piece to a buffer, takes all requests out, and drops what was consumed.
pub(crate) fn scan_pieces(limits: Limits, trust: Trust, pieces: &[&[u8]]) -> Found {
    let mut scanner = Scanner::new(limits);
    let (mut torn, mut buffer, mut found) = (Torn::default(), Vec::new(), Vec::new());
    for piece in pieces {
        buffer.extend_from_slice(piece);
        loop {
            let scanned = scanner.scan(&mut torn, &buffer, trust);
            let requests = (0..scanner.len()).filter_map(|at| scanner.request(at, &buffer));
            found.extend(requests.map(|args| args.iter().map(<[u8]>::to_vec).collect()));
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
