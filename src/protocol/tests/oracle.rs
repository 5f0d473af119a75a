//! redis-protocol as the second opinion: it reads the requests that we scan, where both call them
//! well formed, and the replies that we write.

use super::super::{Error, Reply, Resp};
use super::{config, encode, scan_whole};
use proptest::prelude::*;
use redis_protocol::resp2::types::OwnedFrame as Frame2;
use redis_protocol::resp3::types::{OwnedFrame as Frame3, VerbatimStringFormat};

fn read_v2(mut bytes: &[u8]) -> Vec<Frame2> {
    let mut frames = Vec::new();
    while !bytes.is_empty() {
        let (frame, length) =
            redis_protocol::resp2::decode::decode(bytes).expect("well formed").expect("complete");
        frames.push(frame);
        bytes = &bytes[length..];
    }
    frames
}

fn read_v3(mut bytes: &[u8]) -> Vec<Frame3> {
    let mut frames = Vec::new();
    while !bytes.is_empty() {
        let (frame, length) = redis_protocol::resp3::decode::complete::decode(bytes)
            .expect("well formed")
            .expect("complete");
        frames.push(frame);
        bytes = &bytes[length..];
    }
    frames
}

fn written(resp: Resp, write: impl FnOnce(&mut Reply<'_>)) -> Vec<u8> {
    let mut out = Vec::new();
    write(&mut Reply::new(&mut out, resp));
    out
}

#[track_caller]
fn assert_bytes(write: impl Fn(&mut Reply<'_>), v2: &str, v3: &str) {
    assert_eq!(String::from_utf8_lossy(&written(Resp::V2, &write)), v2);
    assert_eq!(String::from_utf8_lossy(&written(Resp::V3, &write)), v3);
}

fn same(left: f64, right: f64) -> bool {
    left.to_bits() == right.to_bits() || left.is_nan() && right.is_nan()
}

fn bulks(args: &[Vec<u8>]) -> Frame2 {
    Frame2::Array(args.iter().cloned().map(Frame2::BulkString).collect())
}

proptest! {
    #![proptest_config(config(500))]

    #[test]
    fn requests_read_as_the_oracle_reads_them(
        requests in proptest::collection::vec(
            proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..130), 1..12),
            1..6,
        )
    ) {
        let input = encode(&requests);
        let (found, failed) = scan_whole(&input);
        prop_assert_eq!(failed, None);
        let frames: Vec<Frame2> = found.iter().map(|args| bulks(args)).collect();
        prop_assert_eq!(read_v2(&input), frames);
    }

    #[test]
    fn integers_and_bulks_read_back(
        integers in proptest::collection::vec(any::<i64>(), 0..8),
        bytes in proptest::collection::vec(any::<u8>(), 0..300),
    ) {
        let write = |reply: &mut Reply<'_>| {
            reply.integers(&integers);
            reply.bulk(&bytes);
            for value in &integers {
                reply.bulk_integer(*value);
            }
        };
        let data = integers.iter().map(|data| Frame2::Integer(*data)).collect();
        let mut v2 = vec![Frame2::Array(data), Frame2::BulkString(bytes.clone())];
        let texts = integers.iter().map(|value| value.to_string().into_bytes());
        v2.extend(texts.map(Frame2::BulkString));
        prop_assert_eq!(read_v2(&written(Resp::V2, write)), v2);
        // The kinds of RESP2 are written the same in RESP3.
        prop_assert_eq!(written(Resp::V3, write), written(Resp::V2, write));
    }

    #[test]
    fn doubles_read_back_to_the_same_number(data in proptest::num::f64::ANY) {
        let write = |reply: &mut Reply<'_>| reply.double(data);
        let v3 = read_v3(&written(Resp::V3, write));
        prop_assert!(matches!(&v3[..], [Frame3::Double { data: read, .. }]
            if same(*read, data)), "{:?}", v3);
        let v2 = read_v2(&written(Resp::V2, write));
        let [Frame2::BulkString(text)] = &v2[..] else { panic!("{v2:?}") };
        let read: f64 = std::str::from_utf8(text)?.parse()?;
        prop_assert!(same(read, data));
    }

    #[test]
    fn text_of_one_line_stays_one_line(text in proptest::collection::vec(any::<u8>(), 0..60)) {
        for resp in [Resp::V2, Resp::V3] {
            let out = written(resp, |reply| {
                reply.simple(&text);
                reply.error(&Error::raw(text.clone()));
            });
            let lines: Vec<&[u8]> = out.split(|byte| *byte == b'\n').collect();
            prop_assert_eq!(lines.len(), 3);
            prop_assert_eq!(lines[0].len(), text.len() + 2);
            prop_assert_eq!(lines[1].len(), text.len() + 2);
            prop_assert_eq!(out.split(|byte| *byte == b'\r').count(), 3);
        }
    }
}

#[test]
fn each_kind_of_reply_is_written_as_redis_writes_it() {
    let fixed = |reply: &mut Reply<'_>| {
        reply.ok();
        reply.null();
    };
    assert_bytes(fixed, "+OK\r\n$-1\r\n", "+OK\r\n_\r\n");
    assert_bytes(|reply| reply.simple("a\r\nb"), "+a  b\r\n", "+a  b\r\n");
    assert_bytes(
        |reply| reply.error(&Error::Syntax),
        "-ERR syntax error\r\n",
        "-ERR syntax error\r\n",
    );
    assert_bytes(|reply| reply.integer(-1), ":-1\r\n", ":-1\r\n");
    assert_bytes(
        |reply| reply.integer(i64::MIN),
        ":-9223372036854775808\r\n",
        ":-9223372036854775808\r\n",
    );
    assert_bytes(|reply| reply.bulk(b""), "$0\r\n\r\n", "$0\r\n\r\n");
    assert_bytes(
        |reply| reply.bulk("tollgate-1"),
        "$10\r\ntollgate-1\r\n",
        "$10\r\ntollgate-1\r\n",
    );
    assert_bytes(|reply| reply.array(12), "*12\r\n", "*12\r\n");
    assert_bytes(|reply| reply.map(7), "*14\r\n", "%7\r\n");
    assert_bytes(|reply| reply.set(2), "*2\r\n", "~2\r\n");
    assert_bytes(|reply| reply.double(0.1), "$3\r\n0.1\r\n", ",0.1\r\n");
    assert_bytes(|reply| reply.double(5.0), "$1\r\n5\r\n", ",5\r\n");
    assert_bytes(|reply| reply.double(f64::NEG_INFINITY), "$4\r\n-inf\r\n", ",-inf\r\n");
    assert_bytes(|reply| reply.verbatim("a:1\r\n"), "$5\r\na:1\r\n\r\n", "=9\r\ntxt:a:1\r\n\r\n");
    assert_bytes(|reply| reply.integers(&[0, -1]), "*2\r\n:0\r\n:-1\r\n", "*2\r\n:0\r\n:-1\r\n");
    let longest = "*5\r\n".to_owned() + &":-9223372036854775808\r\n".repeat(5);
    assert_bytes(|reply| reply.integers(&[i64::MIN; 5]), &longest, &longest);
}

#[test]
fn kinds_of_resp3_read_back() {
    let out = written(Resp::V3, |reply| {
        reply.map(1);
        reply.bulk("proto");
        reply.integer(3);
        reply.set(1);
        reply.simple("fast");
        reply.null();
        reply.verbatim("text");
    });
    let [map, set, null, verbatim] = &read_v3(&out)[..] else { panic!("four replies") };
    let Frame3::Map { data, .. } = map else { panic!("{map:?}") };
    let key = Frame3::BlobString { data: b"proto".to_vec(), attributes: None };
    assert_eq!(data.get(&key), Some(&Frame3::Number { data: 3, attributes: None }));
    let Frame3::Set { data, .. } = set else { panic!("{set:?}") };
    assert!(data.contains(&Frame3::SimpleString { data: b"fast".to_vec(), attributes: None }));
    assert_eq!(null, &Frame3::Null);
    let Frame3::VerbatimString { data, format, .. } = verbatim else { panic!("{verbatim:?}") };
    assert_eq!((&data[..], format), (&b"text"[..], &VerbatimStringFormat::Text));
}

#[test]
fn protocol_can_be_switched_between_replies() {
    let mut out = b"+first\r\n".to_vec();
    let mut reply = Reply::new(&mut out, Resp::default());
    reply.null();
    reply.switch(Resp::V3);
    reply.null();
    assert_eq!(out, b"+first\r\n$-1\r\n_\r\n");
}
