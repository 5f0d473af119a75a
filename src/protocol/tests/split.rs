//! A stream may be cut anywhere: what is found does not depend on where.

use super::super::{Limits, Trust, cut, scan_pieces};
use super::{byte_by_byte, config, encode, scan_whole};
use proptest::prelude::*;
use proptest::sample::select;
use std::fmt::Write;

fn argument() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        4 => proptest::collection::vec(any::<u8>(), 0..24),
        2 => proptest::collection::vec(select(b"\r\n$*0123456789 \"'\\".to_vec()), 0..12),
        1 => proptest::collection::vec(any::<u8>(), 90..1_200),
    ]
}

fn requests() -> impl Strategy<Value = Vec<Vec<Vec<u8>>>> {
    proptest::collection::vec(proptest::collection::vec(argument(), 1..14), 1..6)
}

/// Bytes that look like RESP often enough to get deep into the scanner.
fn nearly_resp() -> impl Strategy<Value = Vec<u8>> {
    let token = prop_oneof![
        6 => select(vec![
            "*1\r\n", "*2\r\n", "*3\r\n", "*0\r\n", "*-1\r\n", "*12\r\n", "$0\r\n\r\n",
            "$1\r\na\r\n", "$3\r\nGET\r\n", "$12\r\nabcdefghijkl\r\n", "$2\r\nab\r\n", "PING\r\n",
            "\r\n", "\n", "\r", "set a \"b\"\n", "'", "\"", "$", "*", "$5\r\n", "*1", "$1",
            "$-1\r\n",
            "*x\r\n", "POST /\n", "$130\r\n", "*1048577\r\n", "$536870913\r\n",
        ]).prop_map(|text| text.as_bytes().to_vec()),
        1 => proptest::collection::vec(any::<u8>(), 0..6),
    ];
    proptest::collection::vec(token, 0..24).prop_map(|tokens| tokens.concat())
}

proptest! {
    #![proptest_config(config(60))]

    #[test]
    fn requests_scan_back_the_same_at_every_split_point(requests in requests()) {
        let input = encode(&requests);
        let expected = (requests, None);
        prop_assert_eq!(&scan_whole(&input), &expected);
        for split in 0..=input.len() {
            let (head, tail) = input.split_at(split);
            let found = scan_pieces(Limits::default(), Trust::Authenticated, &[head, tail]);
            prop_assert_eq!(&found, &expected, "split at {}", split);
        }
        let pieces = byte_by_byte(&input);
        prop_assert_eq!(&scan_pieces(Limits::default(), Trust::Authenticated, &pieces), &expected);
    }
}

proptest! {
    #![proptest_config(config(2_000))]

    #[test]
    fn pieces_find_what_the_whole_finds(
        input in prop_oneof![nearly_resp(), proptest::collection::vec(any::<u8>(), 0..200)],
        cuts in proptest::collection::vec(any::<usize>(), 0..12),
        authenticated in any::<bool>(),
        pipeline_max in 1_usize..5,
    ) {
        let limits = Limits { pipeline_max, inline_bytes_max: 60, ..Limits::default() };
        let trust = if authenticated { Trust::Authenticated } else { Trust::Unauthenticated };
        let whole = scan_pieces(limits, trust, &[&input]);
        prop_assert_eq!(&scan_pieces(limits, trust, &cut(&input, &cuts)), &whole);
        prop_assert_eq!(&scan_pieces(limits, trust, &byte_by_byte(&input)), &whole);
    }

    #[test]
    fn inline_words_are_those_that_were_quoted(
        args in proptest::collection::vec(argument(), 1..5)
    ) {
        let mut line = String::new();
        for arg in &args {
            line.push('"');
            for byte in arg {
                write!(line, "\\x{byte:02x}")?;
            }
            line.push_str("\" ");
        }
        prop_assume!(!args[0].eq_ignore_ascii_case(b"post"));
        prop_assert_eq!(scan_whole((line + "\n").as_bytes()), (vec![args], None));
    }
}
