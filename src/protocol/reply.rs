//! Replies, written by hand into the worker's output buffer.
//!
//! One method a kind of reply; where RESP2 has no such kind, the method writes what Redis writes
//! there instead (a map as a flat array, a double as a bulk). A container's header comes first
//! with its length; its elements follow as replies of their own.
//!
//! Invariant: simple strings and errors are one line whatever their text holds, or a client
//! would read one reply as two.

use super::error::Error;
use super::float::FloatText;

/// A kind, the 20 characters of the longest number, CR LF.
const NUMBER_BYTES_MAX: usize = 23;

/// So many integers of an array are written at once: those of a limiter.
const AT_ONCE_MAX: usize = 5;

/// Room for them behind a header of one digit: a power of two, so that any place is within it by
/// a mask.
const AT_ONCE_BYTES: usize = 128;

const _: () = assert!(AT_ONCE_BYTES >= b"*5\r\n".len() + AT_ONCE_MAX * NUMBER_BYTES_MAX);

/// What is written at once of a number: it may begin at the last place of all.
const DIGITS_AT_ONCE: usize = 8;
const EIGHT_DIGITS: u64 = 100_000_000;

/// Where integers are written, from the last to the first.
type AtOnce = [u8; AT_ONCE_BYTES + DIGITS_AT_ONCE];

/// Which protocol a connection speaks.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) enum Resp {
    #[default]
    V2,
    V3,
}

/// Writes replies to one connection.
#[derive(Debug)]
pub(crate) struct Reply<'b> {
    out: &'b mut Vec<u8>,
    resp: Resp,
}

impl<'b> Reply<'b> {
    pub(crate) fn new(out: &'b mut Vec<u8>, resp: Resp) -> Self {
        Self { out, resp }
    }

    /// HELLO and RESET change it for what follows.
    pub(crate) fn switch(&mut self, resp: Resp) {
        self.resp = resp;
    }

    pub(crate) fn ok(&mut self) {
        self.out.extend_from_slice(b"+OK\r\n");
    }

    pub(crate) fn simple(&mut self, text: impl AsRef<[u8]>) {
        self.out.push(b'+');
        self.line(text.as_ref());
    }

    pub(crate) fn error(&mut self, error: &Error) {
        self.out.push(b'-');
        let start = self.out.len();
        error.write(self.out);
        one_line(&mut self.out[start..]);
        self.out.extend_from_slice(b"\r\n");
    }

    #[inline]
    pub(crate) fn integer(&mut self, value: i64) {
        self.number(b':', value);
    }

    /// An array of integers, the reply of every limiter command.
    pub(crate) fn integers(&mut self, values: &[i64]) {
        if values.len() > AT_ONCE_MAX {
            self.array(values.len());
            for value in values {
                self.integer(*value);
            }
            return;
        }
        // From the last to the first, so that no number's length is needed before its digits.
        let mut text = [0; AT_ONCE_BYTES + DIGITS_AT_ONCE];
        let mut at = AT_ONCE_BYTES;
        for value in values.iter().rev() {
            at = put_number(&mut text, at, b':', *value);
        }
        at = put_number(&mut text, at, b'*', values.len() as i64);
        self.out.extend_from_slice(&text[at..AT_ONCE_BYTES]);
    }

    #[inline]
    pub(crate) fn bulk(&mut self, bytes: impl AsRef<[u8]>) {
        let bytes = bytes.as_ref();
        self.out.reserve(NUMBER_BYTES_MAX + bytes.len() + 2);
        self.header(b'$', bytes.len());
        self.out.extend_from_slice(bytes);
        self.out.extend_from_slice(b"\r\n");
    }

    /// An array of bulk strings.
    pub(crate) fn bulks<T: AsRef<[u8]>>(&mut self, texts: &[T]) {
        self.array(texts.len());
        for text in texts {
            self.bulk(text);
        }
    }

    /// An integer as text.
    pub(crate) fn bulk_integer(&mut self, value: i64) {
        self.bulk(itoa::Buffer::new().format(value));
    }

    /// A missing value.
    pub(crate) fn null(&mut self) {
        self.out.extend_from_slice(match self.resp {
            Resp::V2 => b"$-1\r\n",
            Resp::V3 => b"_\r\n",
        });
    }

    /// A missing list, and what an aborted EXEC answers.
    pub(crate) fn null_array(&mut self) {
        self.out.extend_from_slice(match self.resp {
            Resp::V2 => b"*-1\r\n",
            Resp::V3 => b"_\r\n",
        });
    }

    pub(crate) fn boolean(&mut self, value: bool) {
        match self.resp {
            Resp::V2 => self.integer(value.into()),
            Resp::V3 => self.out.extend_from_slice(if value { b"#t\r\n" } else { b"#f\r\n" }),
        }
    }

    /// What is sent unasked: `elements` replies follow.
    pub(crate) fn push(&mut self, elements: usize) {
        match self.resp {
            Resp::V2 => self.header(b'*', elements),
            Resp::V3 => self.header(b'>', elements),
        }
    }

    pub(crate) fn resp(&self) -> Resp {
        self.resp
    }

    #[inline]
    pub(crate) fn array(&mut self, elements: usize) {
        self.header(b'*', elements);
    }

    /// `pairs` keys, each followed by its value.
    pub(crate) fn map(&mut self, pairs: usize) {
        match self.resp {
            Resp::V2 => self.header(b'*', pairs * 2),
            Resp::V3 => self.header(b'%', pairs),
        }
    }

    pub(crate) fn set(&mut self, elements: usize) {
        match self.resp {
            Resp::V2 => self.header(b'*', elements),
            Resp::V3 => self.header(b'~', elements),
        }
    }

    pub(crate) fn double(&mut self, value: f64) {
        let text = FloatText::new(value);
        match self.resp {
            Resp::V2 => self.bulk(text.as_bytes()),
            Resp::V3 => {
                self.out.push(b',');
                self.out.extend_from_slice(text.as_bytes());
                self.out.extend_from_slice(b"\r\n");
            }
        }
    }

    /// A double as text.
    pub(crate) fn bulk_double(&mut self, value: f64) {
        self.bulk(FloatText::new(value).as_bytes());
    }

    /// A number that is no double, given as its text.
    pub(crate) fn decimal(&mut self, text: impl AsRef<[u8]>) {
        match self.resp {
            Resp::V2 => self.bulk(text),
            Resp::V3 => {
                self.out.push(b',');
                self.line(text.as_ref());
            }
        }
    }

    /// A whole number beyond 64 bits, given as its text.
    pub(crate) fn big_number(&mut self, text: impl AsRef<[u8]>) {
        match self.resp {
            Resp::V2 => {
                let mut text = text.as_ref().to_vec();
                one_line(&mut text);
                self.bulk(text);
            }
            Resp::V3 => {
                self.out.push(b'(');
                self.line(text.as_ref());
            }
        }
    }

    /// Text for people.
    pub(crate) fn verbatim(&mut self, text: impl AsRef<[u8]>) {
        self.verbatim_as(*b"txt", text);
    }

    /// Text for people, in a format named by three letters.
    pub(crate) fn verbatim_as(&mut self, format: [u8; 3], text: impl AsRef<[u8]>) {
        let text = text.as_ref();
        match self.resp {
            Resp::V2 => self.bulk(text),
            Resp::V3 => {
                self.header(b'=', format.len() + 1 + text.len());
                self.out.extend_from_slice(&format);
                self.out.push(b':');
                self.out.extend_from_slice(text);
                self.out.extend_from_slice(b"\r\n");
            }
        }
    }

    /// Bytes of the whole output so far.
    pub(crate) fn written(&self) -> usize {
        self.out.len()
    }

    /// Takes back what was written after `mark`.
    pub(crate) fn take_back(&mut self, mark: usize) {
        self.out.truncate(mark);
    }

    #[inline]
    fn header(&mut self, kind: u8, length: usize) {
        self.number(kind, length as i64);
    }

    #[inline]
    fn number(&mut self, kind: u8, value: i64) {
        // Flags, counts and short lengths have one digit: four bytes stored at once.
        if let 0..=9 = value {
            self.out.extend_from_slice(&[kind, b'0' + value as u8, b'\r', b'\n']);
            return;
        }
        self.out.reserve(NUMBER_BYTES_MAX);
        self.out.push(kind);
        self.out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
        self.out.extend_from_slice(b"\r\n");
    }

    fn line(&mut self, text: &[u8]) {
        let start = self.out.len();
        self.out.extend_from_slice(text);
        one_line(&mut self.out[start..]);
        self.out.extend_from_slice(b"\r\n");
    }
}

/// Writes a number so that it ends before `end`. Returns where it begins.
#[inline(always)]
fn put_number(text: &mut AtOnce, end: usize, kind: u8, value: i64) -> usize {
    if let 0..=9 = value {
        return put(text, end, [kind, b'0' + value as u8, b'\r', b'\n']);
    }
    let mut at = put(text, end, *b"\r\n");
    let mut rest = value.unsigned_abs();
    while rest >= EIGHT_DIGITS {
        at = put(text, at, ascii(eight_digits(rest % EIGHT_DIGITS)));
        rest /= EIGHT_DIGITS;
    }
    let digits = eight_digits(rest);
    // The zeros that it begins with are overwritten by what comes before.
    at = put(text, at, ascii(digits)) + digits.trailing_zeros() as usize / 8;
    if value < 0 {
        at = put(text, at, [b'-']);
    }
    put(text, at, [kind])
}

#[inline(always)]
fn put<const N: usize>(text: &mut AtOnce, end: usize, bytes: [u8; N]) -> usize {
    let at = (end - N) % AT_ONCE_BYTES;
    text[at..at + N].copy_from_slice(&bytes);
    at
}

/// The digits of a number of at most eight, a byte each, the first in the lowest byte.
///
/// The number is cut in halves, these in halves again, and so on; all parts of one size stand
/// side by side in a word and are divided together, by a multiplication.
const fn eight_digits(number: u64) -> u64 {
    let halves = (number / 10_000) | ((number % 10_000) << 32);
    let hundreds = ((halves * 10_486) >> 20) & 0x0000_007f_0000_007f;
    let quarters = hundreds | ((halves - hundreds * 100) << 16);
    let tens = ((quarters * 103) >> 10) & 0x000f_000f_000f_000f;
    tens | ((quarters - tens * 10) << 8)
}

const fn ascii(digits: u64) -> [u8; DIGITS_AT_ONCE] {
    (digits | u64::from_ne_bytes([b'0'; 8])).to_le_bytes()
}

fn one_line(text: &mut [u8]) {
    for byte in text.iter_mut().filter(|byte| matches!(byte, b'\r' | b'\n')) {
        *byte = b' ';
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eight_digits_are_those_of_the_number() {
        let samples = (0..EIGHT_DIGITS).step_by(9_973);
        for number in (0..20_000).chain(samples).chain(EIGHT_DIGITS - 20_000..EIGHT_DIGITS) {
            assert_eq!(ascii(eight_digits(number)), format!("{number:08}").as_bytes());
        }
    }

    #[test]
    fn integers_written_at_once_are_those_written_one_by_one() {
        let powers = (0..19).map(|power| 10_i64.pow(power));
        let edges = powers.flat_map(|power| [power - 1, power, power + 1, -power, 1 - power]);
        for edge in edges.chain([i64::MIN, i64::MAX]) {
            let values = [edge, -1, 0, edge, edge];
            let (mut at_once, mut one_by_one) = (Vec::new(), Vec::new());
            Reply::new(&mut at_once, Resp::V2).integers(&values);
            let mut reply = Reply::new(&mut one_by_one, Resp::V2);
            reply.array(values.len());
            for value in values {
                reply.integer(value);
            }
            assert_eq!(at_once, one_by_one);
        }
    }
}
