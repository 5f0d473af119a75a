//! redis-protocol as the second opinion on replies: both read the same parts out of them, whole
//! or cut anywhere.

use super::super::{Answer, Answers, Part};
use super::config;
use proptest::prelude::*;
use redis_protocol::resp3::decode::complete::decode;
use redis_protocol::resp3::types::OwnedFrame;

/// A reply of any shape that limiters use, nested at most three deep.
fn reply() -> impl Strategy<Value = Vec<u8>> {
    let leaf = prop_oneof![
        any::<i64>().prop_map(|value| format!(":{value}\r\n").into_bytes()),
        "[a-z ]{0,9}".prop_map(|text| format!("+{text}\r\n").into_bytes()),
        "[A-Z]{1,9} [a-z]{0,9}".prop_map(|text| format!("-{text}\r\n").into_bytes()),
        any::<bool>().prop_map(|value| format!("#{}\r\n", if value { 't' } else { 'f' }).into()),
        Just(b"_\r\n".to_vec()),
        proptest::collection::vec(any::<u8>(), 0..40).prop_map(|bytes| {
            let head = format!("${}\r\n", bytes.len()).into_bytes();
            [head.as_slice(), &bytes, b"\r\n"].concat()
        }),
    ];
    leaf.prop_recursive(3, 40, 6, |inner| {
        proptest::collection::vec(inner, 0..6).prop_map(|items| {
            let head = format!("*{}\r\n", items.len()).into_bytes();
            [head, items.concat()].concat()
        })
    })
}

/// What both must find, a line each.
fn ours(answer: &Answer<'_>) -> Vec<String> {
    let parts = (0..).map_while(|index| answer.part(index));
    let line = |part| match part {
        Part::Text(text) => format!("text {}", text.escape_ascii()),
        Part::Error(text) => format!("error {}", text.escape_ascii()),
        Part::Integer(value) => format!("integer {value}"),
        Part::Null => "null".to_owned(),
        Part::Boolean(value) => format!("boolean {value}"),
        Part::Array(count) | Part::Push(count) => format!("array {count}"),
    };
    parts.map(line).collect()
}

fn theirs(frame: &OwnedFrame, lines: &mut Vec<String>) {
    lines.push(match frame {
        OwnedFrame::BlobString { data, .. } | OwnedFrame::SimpleString { data, .. } => {
            format!("text {}", data.escape_ascii())
        }
        OwnedFrame::SimpleError { data, .. } => format!("error {}", data.as_bytes().escape_ascii()),
        OwnedFrame::Number { data, .. } => format!("integer {data}"),
        OwnedFrame::Null => "null".to_owned(),
        OwnedFrame::Boolean { data, .. } => format!("boolean {data}"),
        OwnedFrame::Array { data, .. } => format!("array {}", data.len()),
        other => panic!("{other:?} was not sent"),
    });
    if let OwnedFrame::Array { data, .. } = frame {
        for inner in data {
            theirs(inner, lines);
        }
    }
}

proptest! {
    #![proptest_config(config(500))]

    #[test]
    fn replies_read_as_the_oracle_reads_them(bytes in reply(), cut in any::<usize>()) {
        let mut answers = Answers::default();
        let torn = &bytes[..cut % bytes.len()];
        prop_assert!(matches!(answers.read(torn), Ok(None)));
        let (answer, len) = answers.read(&bytes).expect("well formed").expect("whole");
        let (frame, their_len) = decode(&bytes).expect("well formed").expect("whole");
        let mut lines = Vec::new();
        theirs(&frame, &mut lines);
        prop_assert_eq!((ours(&answer), len), (lines, their_len));
    }
}
