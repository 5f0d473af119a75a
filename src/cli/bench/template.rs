//! One request with holes: `{key}` and `{n}` are filled in as it goes out.
//!
//! Everything between two arguments with holes is encoded once, so that sending costs a few
//! copies and no allocation. Any other braces are the command's own.

use crate::protocol::{write_header, write_word};

const HOLES: [(&str, Piece); 2] = [("{key}", Piece::Key), ("{n}", Piece::Count)];

/// A request ready to be filled and sent.
#[derive(Clone, Debug)]
pub(super) struct Template {
    parts: Vec<Part>,
}

#[derive(Clone, Debug)]
enum Part {
    /// Bytes of the wire, the same in every request.
    Fixed(Vec<u8>),
    /// One argument; its length differs from request to request.
    Argument(Vec<Piece>),
}

#[derive(Clone, Debug)]
enum Piece {
    Text(Vec<u8>),
    Key,
    Count,
}

/// What goes into the holes of one request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Fill {
    pub(super) key: u64,
    pub(super) count: u64,
}

impl Template {
    /// `key_prefix` stands before the number of every `{key}`.
    pub(super) fn new(words: &[String], key_prefix: &str) -> Self {
        let mut fixed = Vec::new();
        write_header(b'*', words.len(), &mut fixed);
        let mut parts = Vec::new();
        for word in words {
            match pieces(word, key_prefix).as_slice() {
                [] => fixed.extend_from_slice(b"$0\r\n\r\n"),
                [Piece::Text(text)] => {
                    write_word(text, &mut fixed);
                }
                holed => {
                    parts.push(Part::Fixed(std::mem::take(&mut fixed)));
                    parts.push(Part::Argument(holed.to_vec()));
                }
            }
        }
        parts.push(Part::Fixed(fixed));
        Self { parts }
    }

    /// Appends one request.
    pub(super) fn encode(&self, fill: Fill, out: &mut Vec<u8>) {
        let (mut key, mut count) = (itoa::Buffer::new(), itoa::Buffer::new());
        let (key, count) = (key.format(fill.key).as_bytes(), count.format(fill.count).as_bytes());
        for part in &self.parts {
            match part {
                Part::Fixed(bytes) => out.extend_from_slice(bytes),
                Part::Argument(pieces) => {
                    let texts = pieces.iter().map(|piece| match piece {
                        Piece::Text(text) => text.as_slice(),
                        Piece::Key => key,
                        Piece::Count => count,
                    });
                    write_header(b'$', texts.clone().map(<[u8]>::len).sum(), out);
                    texts.for_each(|text| out.extend_from_slice(text));
                    out.extend_from_slice(b"\r\n");
                }
            }
        }
    }
}

fn pieces(word: &str, key_prefix: &str) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut text = Vec::new();
    let mut rest = word;
    while !rest.is_empty() {
        let Some((at, hole, piece)) = HOLES
            .iter()
            .filter_map(|(hole, piece)| rest.find(hole).map(|at| (at, hole, piece)))
            .min_by_key(|(at, ..)| *at)
        else {
            text.extend_from_slice(rest.as_bytes());
            break;
        };
        text.extend_from_slice(&rest.as_bytes()[..at]);
        if matches!(piece, Piece::Key) {
            text.extend_from_slice(key_prefix.as_bytes());
        }
        if !text.is_empty() {
            pieces.push(Piece::Text(std::mem::take(&mut text)));
        }
        pieces.push(piece.clone());
        rest = &rest[at + hole.len()..];
    }
    if !text.is_empty() {
        pieces.push(Piece::Text(text));
    }
    pieces
}

/// Draws what fills the requests of one thread: keys at random, counts in order.
///
/// The same seed draws the same keys, thread by thread.
#[derive(Clone, Debug)]
pub(super) struct Draw {
    state: u64,
    keys: u64,
    count: u64,
    stride: u64,
}

impl Draw {
    /// Thread `thread` of `threads`: its counts are those no other thread has.
    pub(super) fn new(seed: u64, keys: u64, thread: u64, threads: u64) -> Self {
        // Streams start far apart, since the step below is odd and this is another odd number.
        let state = seed ^ thread.wrapping_mul(0xD1B5_4A32_D192_ED03);
        Self { state, keys, count: thread, stride: threads }
    }

    pub(super) fn next(&mut self) -> Fill {
        let count = self.count;
        self.count += self.stride;
        Fill { key: self.below_keys(), count }
    }

    /// `SplitMix64`, brought below `keys` by the high half of a product.
    fn below_keys(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^= mixed >> 31;
        ((u128::from(mixed) * u128::from(self.keys)) >> 64) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(line: &str, fill: Fill) -> String {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        let mut out = Vec::new();
        Template::new(&words, "k:").encode(fill, &mut out);
        String::from_utf8(out).expect("ASCII in, ASCII out").replace("\r\n", "|")
    }

    #[test]
    fn holes_are_filled_and_lengths_follow() {
        let fill = |key, count| Fill { key, count };
        assert_eq!(
            encoded("RL.LIMIT {key} 100 1s", fill(7, 0)),
            "*4|$8|RL.LIMIT|$3|k:7|$3|100|$2|1s|"
        );
        assert_eq!(encoded("GET {key}", fill(12_345, 0)), "*2|$3|GET|$7|k:12345|");
        assert_eq!(encoded("SET {key} {n}", fill(1, 10)), "*3|$3|SET|$3|k:1|$2|10|");
        assert_eq!(encoded("SET a{key}b{n}{n}", fill(1, 2)), "*2|$3|SET|$7|ak:1b22|");
    }

    #[test]
    fn command_without_holes_is_sent_as_it_is() {
        let fill = Fill { key: 1, count: 1 };
        assert_eq!(encoded("PING", fill), "*1|$4|PING|");
        assert_eq!(encoded("SET {a}{ {", fill), "*3|$3|SET|$4|{a}{|$1|{|");
        assert_eq!(encoded("SET  x", fill), "*3|$3|SET|$0||$1|x|");
    }

    #[test]
    fn same_seed_draws_the_same_keys_within_bounds() {
        let draw = |seed, thread| {
            let mut draw = Draw::new(seed, 10, thread, 2);
            (0..1_000).map(|_| draw.next().key).collect::<Vec<_>>()
        };
        assert_eq!(draw(1, 0), draw(1, 0));
        assert_ne!(draw(1, 0), draw(2, 0));
        assert_ne!(draw(1, 0), draw(1, 1));
        let mut seen = draw(1, 0);
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen, (0..10).collect::<Vec<_>>());
    }

    #[test]
    fn counts_of_threads_never_meet() {
        let counts = |thread| {
            let mut draw = Draw::new(0, 1, thread, 3);
            (0..4).map(|_| draw.next().count).collect::<Vec<_>>()
        };
        assert_eq!(counts(0), [0, 3, 6, 9]);
        assert_eq!(counts(2), [2, 5, 8, 11]);
    }
}
