//! Replies as a caller reads them: RESP2 and RESP3, flat.
//!
//! An [`Answer`] is one reply as the list of its parts in the order they stand on the wire; an
//! array or a map is a part that says how many follow. So nothing here recurses, however deep a
//! server nests, and a reply that arrives in pieces goes on where it stopped.
//!
//! Invariants: never panics; a reply is refused as soon as it announces more than
//! [`ANSWER_BYTES_MAX`] or [`PARTS_MAX`], before that is held.

use super::number::parse_i64;

/// No reply to a limiter command comes near this.
const ANSWER_BYTES_MAX: usize = 1 << 20;

/// Parts of one reply, all that nest in it counted.
const PARTS_MAX: usize = 1 << 12;

/// Why what a server sent cannot be a reply of it.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub(crate) enum Malformed {
    #[error("the answer is not RESP")]
    NotResp,
    #[error("the answer is longer than a limiter's can be")]
    TooLong,
}

/// One part of a reply.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Part<'a> {
    /// A simple or a bulk string, or a number that is no integer, as text.
    Text(&'a [u8]),
    /// Without its `-`.
    Error(&'a [u8]),
    Integer(i64),
    Null,
    Boolean(bool),
    /// As many parts follow, those that nest in them not counted.
    Array(usize),
    /// What nobody asked for: otherwise as an array.
    Push(usize),
}

#[derive(Clone, Copy, Debug)]
enum Stored {
    Text { start: u32, end: u32 },
    Error { start: u32, end: u32 },
    Integer(i64),
    Null,
    Boolean(bool),
    Array(u32),
    Push(u32),
}

/// One whole reply.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answer<'a> {
    bytes: &'a [u8],
    parts: &'a [Stored],
}

impl<'a> Answer<'a> {
    pub(crate) fn part(&self, index: usize) -> Option<Part<'a>> {
        let text =
            |start: u32, end: u32| self.bytes.get(start as usize..end as usize).unwrap_or_default();
        Some(match *self.parts.get(index)? {
            Stored::Text { start, end } => Part::Text(text(start, end)),
            Stored::Error { start, end } => Part::Error(text(start, end)),
            Stored::Integer(value) => Part::Integer(value),
            Stored::Null => Part::Null,
            Stored::Boolean(value) => Part::Boolean(value),
            Stored::Array(count) => Part::Array(count as usize),
            Stored::Push(count) => Part::Push(count as usize),
        })
    }

    pub(crate) fn integer(&self, index: usize) -> Option<i64> {
        match self.part(index)? {
            Part::Integer(value) => Some(value),
            Part::Text(_)
            | Part::Error(_)
            | Part::Null
            | Part::Boolean(_)
            | Part::Array(_)
            | Part::Push(_) => None,
        }
    }
}

/// Reads replies from the front of a buffer that grows at its end.
#[derive(Debug, Default)]
pub(crate) struct Answers {
    parts: Vec<Stored>,
    /// How far the reply at the front has been read.
    at: usize,
    /// Parts that it still lacks.
    missing: usize,
    state: State,
}

#[derive(Debug, Default, Eq, PartialEq)]
enum State {
    #[default]
    Fresh,
    Torn,
}

impl Answers {
    /// The reply at the front of `bytes` and its length, by which the caller shortens the buffer
    /// before it asks again; `None` while it is torn, when the buffer may only grow.
    pub(crate) fn read<'a>(
        &'a mut self,
        bytes: &'a [u8],
    ) -> Result<Option<(Answer<'a>, usize)>, Malformed> {
        if self.state == State::Fresh {
            self.parts.clear();
            (self.at, self.missing, self.state) = (0, 1, State::Torn);
        }
        while self.missing > 0 {
            let Some((part, end)) = read_part(bytes, self.at)? else {
                let is_long = bytes.len() - self.at.min(bytes.len()) >= ANSWER_BYTES_MAX;
                return if is_long { Err(Malformed::TooLong) } else { Ok(None) };
            };
            let inside = match part {
                Stored::Array(count) | Stored::Push(count) => count as usize,
                Stored::Text { .. }
                | Stored::Error { .. }
                | Stored::Integer(_)
                | Stored::Null
                | Stored::Boolean(_) => 0,
            };
            self.parts.push(part);
            self.at = end;
            self.missing += inside;
            self.missing -= 1;
            if self.parts.len() + self.missing > PARTS_MAX || end > ANSWER_BYTES_MAX {
                return Err(Malformed::TooLong);
            }
        }
        self.state = State::Fresh;
        Ok(Some((Answer { bytes, parts: &self.parts }, self.at)))
    }
}

/// The part that begins at `start`, and where it ends; `None` while it is torn.
fn read_part(bytes: &[u8], start: usize) -> Result<Option<(Stored, usize)>, Malformed> {
    let Some((kind, rest)) = bytes.get(start..).and_then(<[u8]>::split_first) else {
        return Ok(None);
    };
    if !b"+-:$*_#,(=!~%>".contains(kind) {
        return Err(Malformed::NotResp);
    }
    let Some(line_len) = rest.iter().position(|byte| *byte == b'\n') else { return Ok(None) };
    let line = rest[..line_len].strip_suffix(b"\r").ok_or(Malformed::NotResp)?;
    let end = start + 1 + line_len + 1;
    let text = (start as u32 + 1, (start + 1 + line.len()) as u32);
    let part = match kind {
        b'+' | b',' | b'(' => Stored::Text { start: text.0, end: text.1 },
        b'-' => Stored::Error { start: text.0, end: text.1 },
        b':' => Stored::Integer(parse_i64(line).ok_or(Malformed::NotResp)?),
        b'_' => Stored::Null,
        b'#' => Stored::Boolean(line == b"t"),
        b'$' | b'=' | b'!' => return read_bulk(bytes, (*kind, line), end),
        b'*' | b'~' | b'%' | b'>' => match length(line, PARTS_MAX)? {
            None => Stored::Null,
            Some(count) if *kind == b'>' => Stored::Push(count),
            Some(count) if *kind == b'%' => Stored::Array(count * 2),
            Some(count) => Stored::Array(count),
        },
        _ => return Err(Malformed::NotResp),
    };
    Ok(Some((part, end)))
}

/// What a line announced that holds the length of the bytes behind it.
fn read_bulk(
    bytes: &[u8],
    (kind, line): (u8, &[u8]),
    start: usize,
) -> Result<Option<(Stored, usize)>, Malformed> {
    let Some(len) = length(line, ANSWER_BYTES_MAX)? else {
        return Ok(Some((Stored::Null, start)));
    };
    let end = start + len as usize;
    match bytes.get(end..end + 2) {
        None => Ok(None),
        Some(b"\r\n") => {
            let (start, text_end) = (start as u32, end as u32);
            Ok(Some(match kind {
                b'!' => (Stored::Error { start, end: text_end }, end + 2),
                // A verbatim string says its format in its first four bytes.
                b'=' => (Stored::Text { start: (start + 4).min(text_end), end: text_end }, end + 2),
                _ => (Stored::Text { start, end: text_end }, end + 2),
            }))
        }
        Some(_) => Err(Malformed::NotResp),
    }
}

/// A length, or `None` for RESP2's missing value.
fn length(line: &[u8], max: usize) -> Result<Option<u32>, Malformed> {
    match parse_i64(line).ok_or(Malformed::NotResp)? {
        -1 => Ok(None),
        len if len < -1 => Err(Malformed::NotResp),
        len if len as u64 > max as u64 => Err(Malformed::TooLong),
        len => Ok(Some(len as u32)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(bytes: &[u8]) -> Option<Malformed> {
        Answers::default().read(bytes).err()
    }

    #[test]
    fn parts_of_every_kind_are_read() {
        for (bytes, expected) in [
            (&b"+OK\r\n"[..], vec![Part::Text(b"OK")]),
            (b"-ERR no\r\n", vec![Part::Error(b"ERR no")]),
            (b"!6\r\nERR no\r\n", vec![Part::Error(b"ERR no")]),
            (b":-5\r\n", vec![Part::Integer(-5)]),
            (b"$2\r\nhi\r\n", vec![Part::Text(b"hi")]),
            (b"=6\r\ntxt:hi\r\n", vec![Part::Text(b"hi")]),
            (b"=1\r\nt\r\n", vec![Part::Text(b"")]),
            (b"$-1\r\n", vec![Part::Null]),
            (b"*-1\r\n", vec![Part::Null]),
            (b"_\r\n", vec![Part::Null]),
            (b"#t\r\n", vec![Part::Boolean(true)]),
            (b",1.5\r\n", vec![Part::Text(b"1.5")]),
            (b"*0\r\n", vec![Part::Array(0)]),
            (b"%1\r\n+a\r\n:1\r\n", vec![Part::Array(2), Part::Text(b"a"), Part::Integer(1)]),
            (b">1\r\n+a\r\n", vec![Part::Push(1), Part::Text(b"a")]),
            (
                b"*2\r\n*1\r\n:1\r\n:2\r\n",
                vec![Part::Array(2), Part::Array(1), Part::Integer(1), Part::Integer(2)],
            ),
        ] {
            let mut answers = Answers::default();
            let (answer, len) = answers.read(bytes).expect("well formed").expect("whole");
            let parts: Vec<_> = (0..).map_while(|index| answer.part(index)).collect();
            assert_eq!((parts, len), (expected, bytes.len()), "{bytes:?}");
        }
    }

    #[test]
    fn reply_in_pieces_reads_as_the_whole() {
        let whole = b"*3\r\n:1\r\n$3\r\na\r\n\r\n*1\r\n+x\r\n";
        let mut answers = Answers::default();
        for cut in 0..whole.len() {
            assert_eq!(answers.read(&whole[..cut]).map(|read| read.is_some()), Ok(false), "{cut}");
        }
        let (answer, len) = answers.read(whole).expect("well formed").expect("whole");
        assert_eq!(len, whole.len());
        assert_eq!(answer.part(2), Some(Part::Text(b"a\r\n")));
        assert_eq!((answer.integer(1), answer.integer(2), answer.part(9)), (Some(1), None, None));
    }

    #[test]
    fn one_reader_reads_one_reply_after_another() {
        let mut bytes = &b"+a\r\n:2\r\n*1\r\n:3\r\n"[..];
        let mut answers = Answers::default();
        let mut found = Vec::new();
        while let Some((answer, len)) = answers.read(bytes).expect("well formed") {
            found.push((answer.part(0).is_some(), len));
            bytes = &bytes[len..];
            if bytes.is_empty() {
                break;
            }
        }
        assert_eq!(found, [(true, 4), (true, 4), (true, 8)]);
    }

    #[test]
    fn what_is_no_reply_is_refused() {
        for bytes in [&b"HTTP/1.1 400\r\n"[..], b"+a\n", b":x\r\n", b"$2\r\nabc\r\n", b"*-2\r\n"] {
            assert_eq!(refusal(bytes), Some(Malformed::NotResp), "{bytes:?}");
        }
    }

    #[test]
    fn too_much_is_refused_when_it_is_announced() {
        for bytes in [&b"$1048577\r\n"[..], b"*4097\r\n", b"%4000\r\n", b"*4096\r\n"] {
            assert_eq!(refusal(bytes), Some(Malformed::TooLong), "{bytes:?}");
        }
        let endless = vec![b'+'; ANSWER_BYTES_MAX + 1];
        assert_eq!(refusal(&endless), Some(Malformed::TooLong));
        let deep = b"*1\r\n".repeat(PARTS_MAX + 1);
        assert_eq!(refusal(&deep), Some(Malformed::TooLong));
    }
}
