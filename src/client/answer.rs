//! What a caller is answered: a verdict, what is left, and who said so.
//!
//! Five integers on the wire, and behind them the details of a check or the id of what is held.
//! Spans that the server told in milliseconds stay exact as spans.

use super::error::Error;
use crate::limit::Verdict;
use crate::protocol::{Answer as Reply, Part};
use crate::time::Duration;

/// The answer to one request.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Answer {
    pub verdict: Verdict,
    /// `None` where no quota applies, or nobody could be asked.
    pub quota: Option<Left>,
    /// From now until nothing is spent any more, if nothing else is spent.
    pub reset_after: Duration,
    pub source: Source,
}

/// Of the quota that decided.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Left {
    pub limit: u64,
    pub remaining: u64,
}

/// Who said so.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Source {
    Server,
    /// A denial of the server that still stands. For a cost above one only the verdict is
    /// certain: meanwhile something may remain, and others may have put off the retry.
    Memory,
    /// [`WithoutServer`](super::WithoutServer), because of this.
    WithoutServer(Error),
}

impl Answer {
    pub const fn is_allowed(&self) -> bool {
        matches!(self.verdict, Verdict::Allow)
    }

    /// The wait of a denial that ends.
    pub const fn retry_after(&self) -> Option<Duration> {
        match self.verdict {
            Verdict::Allow => None,
            Verdict::Deny { retry_after } => retry_after,
        }
    }

    /// Reads the five integers at the front of a reply.
    pub(super) fn read(reply: &Reply<'_>) -> Result<Self, Error> {
        let whole = matches!(reply.part(0), Some(Part::Array(count)) if count >= 5);
        let number = |index| reply.integer(index).filter(|_| whole).ok_or(Error::Unexpected);
        let span = |index| Ok::<_, Error>(u64::try_from(number(index)?).ok());
        let verdict = match number(1)? {
            0 => Verdict::Allow,
            1 => Verdict::Deny { retry_after: span(4)?.map(Duration::from_millis) },
            _ => return Err(Error::Unexpected),
        };
        let limit = u64::try_from(number(2)?).ok();
        let remaining = u64::try_from(number(3)?).unwrap_or(0);
        Ok(Self {
            verdict,
            quota: limit.map(|limit| Left { limit, remaining }),
            reset_after: Duration::from_millis(span(5)?.unwrap_or(0)),
            source: Source::Server,
        })
    }
}

/// How long the denial that a limit was answered stands whatever is spent meanwhile.
///
/// With nothing left, nothing can pass before the first unit is free, and nothing of this cost
/// before its retry.
pub(super) fn limit_stands(answer: &Answer) -> Option<Duration> {
    let is_empty = answer.quota.is_some_and(|quota| quota.remaining == 0);
    answer.retry_after().filter(|_| is_empty)
}

/// What a check's details say beside the answer.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Details {
    pub(super) revision: Option<u64>,
    /// How long the denial stands whatever is spent meanwhile. Only the server knows: a policy
    /// may count what it denies, hold back for reservations, or bound what is in flight. It
    /// says nothing where the denial may end earlier.
    pub(super) frozen: Option<Duration>,
}

impl Details {
    /// Reads the flat list of names and values behind the five integers; what is not there or
    /// not understood counts as not said.
    pub(super) fn read(reply: &Reply<'_>) -> Self {
        let mut details = Self::default();
        let Some(Part::Array(count)) = reply.part(6) else { return details };
        for at in (7..7 + count).step_by(2) {
            match reply.part(at) {
                Some(Part::Text(b"revision")) => details.revision = whole(reply.part(at + 1)),
                Some(Part::Text(b"frozen_ms")) => {
                    details.frozen = whole(reply.part(at + 1)).map(Duration::from_millis);
                }
                Some(Part::Text(_)) => {}
                _ => break,
            }
        }
        details
    }
}

/// A number that is not negative, sent as one or as text.
fn whole(part: Option<Part<'_>>) -> Option<u64> {
    match part? {
        Part::Integer(value) => u64::try_from(value).ok(),
        Part::Text(text) => str::from_utf8(text).ok()?.parse().ok(),
        Part::Error(_) | Part::Null | Part::Boolean(_) | Part::Array(_) | Part::Push(_) => None,
    }
}

/// The id behind the five integers: there if something is held.
pub(super) fn held_id(reply: &Reply<'_>) -> Option<Box<[u8]>> {
    match reply.part(6)? {
        Part::Text(id) => Some(id.into()),
        Part::Integer(id) => Some(itoa::Buffer::new().format(id).as_bytes().into()),
        Part::Error(_) | Part::Null | Part::Boolean(_) | Part::Array(_) | Part::Push(_) => None,
    }
}

/// Whether what was to be settled was still held.
pub(super) fn settled(reply: &Reply<'_>) -> bool {
    !matches!(reply.part(0), Some(Part::Integer(0) | Part::Null))
}

/// How much was given back or forgotten.
pub(super) fn count(reply: &Reply<'_>) -> Result<u64, Error> {
    whole(reply.part(0)).ok_or(Error::Unexpected)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::Answers;

    fn with<T>(bytes: &[u8], read: impl FnOnce(&Reply<'_>) -> T) -> T {
        let mut answers = Answers::default();
        read(&answers.read(bytes).expect("well formed").expect("whole").0)
    }

    fn decided(bytes: &[u8]) -> Result<Answer, Error> {
        with(bytes, Answer::read)
    }

    #[test]
    fn five_integers_are_an_answer() {
        let denied = decided(b"*5\r\n:1\r\n:5\r\n:0\r\n:340\r\n:1000\r\n").expect("a decision");
        assert_eq!(denied.retry_after(), Some(Duration::from_millis(340)));
        assert_eq!(denied.quota, Some(Left { limit: 5, remaining: 0 }));
        assert_eq!(limit_stands(&denied), Some(Duration::from_millis(340)));
        let never = decided(b"*5\r\n:1\r\n:5\r\n:5\r\n:-1\r\n:0\r\n").expect("a decision");
        assert_eq!((never.is_allowed(), never.retry_after()), (false, None));
        let some_left = decided(b"*5\r\n:1\r\n:5\r\n:2\r\n:340\r\n:1000\r\n").expect("a decision");
        assert_eq!(limit_stands(&some_left), None);
    }

    #[test]
    fn nothing_that_limits_is_no_quota() {
        let answer = decided(b"*5\r\n:0\r\n:-1\r\n:-1\r\n:-1\r\n:0\r\n").expect("a decision");
        assert_eq!((answer.is_allowed(), answer.quota), (true, None));
    }

    #[test]
    fn other_shapes_are_unexpected() {
        for other in [
            &b"+OK\r\n"[..],
            b"*4\r\n:0\r\n:1\r\n:1\r\n:1\r\n",
            b"*5\r\n:2\r\n:1\r\n:1\r\n:1\r\n:1\r\n",
            b"*5\r\n+0\r\n:1\r\n:1\r\n:1\r\n:1\r\n",
            b"*-1\r\n",
        ] {
            assert_eq!(decided(other), Err(Error::Unexpected), "{other:?}");
        }
    }

    #[test]
    fn details_are_names_and_values_in_any_order() {
        let five = "*6\r\n:1\r\n:5\r\n:0\r\n:340\r\n:1000\r\n";
        let detailed = format!(
            "{five}*6\r\n+rule\r\n$5\r\nlogin\r\n+frozen_ms\r\n:300\r\n+revision\r\n$2\r\n17\r\n"
        );
        let details = with(detailed.as_bytes(), Details::read);
        let frozen = Some(Duration::from_millis(300));
        assert_eq!(details, Details { revision: Some(17), frozen });
        let silent = format!("{five}*2\r\n+frozen_ms\r\n_\r\n");
        assert_eq!(with(silent.as_bytes(), Details::read), Details::default());
        let none = b"*5\r\n:1\r\n:5\r\n:0\r\n:340\r\n:1000\r\n";
        assert_eq!(with(none, Details::read), Details::default());
    }

    #[test]
    fn sixth_part_is_the_id_of_what_is_held() {
        let five = "*6\r\n:0\r\n:5\r\n:0\r\n:-1\r\n:1000\r\n";
        for (last, id) in [("$2\r\na7\r\n", Some("a7")), (":12\r\n", Some("12")), ("_\r\n", None)] {
            let found = with(format!("{five}{last}").as_bytes(), held_id);
            assert_eq!(found.as_deref(), id.map(str::as_bytes));
        }
        assert!(with(b":1\r\n", settled) && with(b"+OK\r\n", settled));
        assert!(!with(b":0\r\n", settled));
        assert_eq!(with(b":3\r\n", count), Ok(3));
        assert_eq!(with(b"+OK\r\n", count), Err(Error::Unexpected));
    }
}
