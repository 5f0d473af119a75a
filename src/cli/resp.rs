//! Replies as a caller sees them: bytes to what they mean.
//!
//! A reply is mostly asked one question only: is it a decision (the five integers of `RL.LIMIT`
//! and its kin), an error, or anything else; or it is taken whole. Replies
//! are read as RESP2, since no `HELLO` is sent.

use redis_protocol::resp2::decode::{decode as decode_owned, decode_range};
use redis_protocol::resp2::types::{OwnedFrame, RangeFrame};

/// A reply longer than this is not one that the tools here ask for.
pub(super) const REPLY_BYTES_MAX: usize = 64 << 20;

/// What a server answered.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Reply<'a> {
    Decision(Decision),
    /// The error's text without its `-`.
    Error(&'a [u8]),
    Other,
}

/// The five integers of a limiter command.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Decision {
    pub(super) verdict: Verdict,
    pub(super) limit: i64,
    pub(super) remaining: i64,
    /// -1: allowed, or never.
    pub(super) retry_after_ms: i64,
    pub(super) reset_after_ms: i64,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Verdict {
    Allowed,
    Denied,
}

#[derive(Debug, thiserror::Error)]
#[error("the answer is not RESP: is this the port of HTTP, or another program's? ({0})")]
pub(super) struct Malformed(String);

/// Reads one reply from the front of `bytes` and tells its length; `None` while it is torn.
pub(super) fn decode(bytes: &[u8]) -> Result<Option<(Reply<'_>, usize)>, Malformed> {
    let Some((frame, length)) =
        decode_range(bytes).map_err(|err| Malformed(err.details().to_owned()))?
    else {
        return Ok(None);
    };
    let reply = match frame {
        RangeFrame::Error((start, end)) => Reply::Error(&bytes[start..end]),
        RangeFrame::Array(items) => decision(&items).map_or(Reply::Other, Reply::Decision),
        RangeFrame::SimpleString(_)
        | RangeFrame::Integer(_)
        | RangeFrame::BulkString(_)
        | RangeFrame::Null => Reply::Other,
    };
    Ok(Some((reply, length)))
}

/// Reads one reply as it is; `None` while it is torn.
pub(super) fn decode_whole(bytes: &[u8]) -> Result<Option<(OwnedFrame, usize)>, Malformed> {
    decode_owned(bytes).map_err(|err| Malformed(err.details().to_owned()))
}

/// The text of a string, of whichever kind; none of anything else.
pub(super) fn text(frame: &OwnedFrame) -> Option<String> {
    let (OwnedFrame::SimpleString(bytes) | OwnedFrame::BulkString(bytes)) = frame else {
        return None;
    };
    Some(String::from_utf8_lossy(bytes).into_owned())
}

fn decision(items: &[RangeFrame]) -> Option<Decision> {
    let &[
        RangeFrame::Integer(limited),
        RangeFrame::Integer(limit),
        RangeFrame::Integer(remaining),
        RangeFrame::Integer(retry_after_ms),
        RangeFrame::Integer(reset_after_ms),
    ] = items
    else {
        return None;
    };
    let verdict = match limited {
        0 => Verdict::Allowed,
        1 => Verdict::Denied,
        _ => return None,
    };
    Some(Decision { verdict, limit, remaining, retry_after_ms, reset_after_ms })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(bytes: &[u8]) -> Option<(Reply<'_>, usize)> {
        decode(bytes).expect("well-formed")
    }

    #[test]
    fn first_of_five_integers_is_the_verdict() {
        let allowed = b"*5\r\n:0\r\n:100\r\n:99\r\n:-1\r\n:1000\r\n";
        let Some((Reply::Decision(decision), length)) = decoded(allowed) else {
            panic!("not a decision");
        };
        assert_eq!((decision.verdict, length), (Verdict::Allowed, allowed.len()));
        assert_eq!(
            (decision.limit, decision.remaining, decision.retry_after_ms, decision.reset_after_ms),
            (100, 99, -1, 1_000)
        );
        let denied = b"*5\r\n:1\r\n:5\r\n:0\r\n:340\r\n:1000\r\n+NEXT";
        let Some((Reply::Decision(decision), length)) = decoded(denied) else {
            panic!("not a decision");
        };
        assert_eq!((decision.verdict, length), (Verdict::Denied, denied.len() - 5));
    }

    #[test]
    fn other_shapes_are_no_decision() {
        for other in [
            &b"+OK\r\n"[..],
            b":1\r\n",
            b"$-1\r\n",
            b"$2\r\nhi\r\n",
            b"*4\r\n:0\r\n:1\r\n:1\r\n:1\r\n",
            b"*6\r\n:0\r\n:1\r\n:1\r\n:1\r\n:1\r\n:1\r\n",
            b"*5\r\n:2\r\n:1\r\n:1\r\n:1\r\n:1\r\n",
            b"*5\r\n+0\r\n:1\r\n:1\r\n:1\r\n:1\r\n",
            b"*0\r\n",
            b"*-1\r\n",
        ] {
            assert_eq!(decoded(other), Some((Reply::Other, other.len())), "{other:?}");
        }
    }

    #[test]
    fn error_keeps_its_text() {
        let error = b"-NOAUTH Authentication required.\r\n";
        assert_eq!(
            decoded(error),
            Some((Reply::Error(b"NOAUTH Authentication required."), error.len()))
        );
    }

    #[test]
    fn torn_reply_is_none_at_every_cut() {
        let whole = b"*5\r\n:0\r\n:100\r\n:99\r\n:-1\r\n:1000\r\n";
        for cut in 0..whole.len() {
            assert_eq!(decoded(&whole[..cut]), None, "cut at {cut}");
        }
    }

    #[test]
    fn foreign_protocol_is_malformed() {
        assert!(decode(b"HTTP/1.1 400 Bad Request\r\n").is_err());
    }
}
