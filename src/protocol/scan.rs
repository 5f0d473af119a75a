//! The flat scan of one multibulk request: `*n`, then n times `$len`, the bytes, CR LF.
//!
//! Each step looks at the front of what is left and either moves on, finds the rest torn off,
//! or refuses. Nothing is copied but four-byte offsets, and nothing is looked at twice: a
//! [`Cursor`] can be kept while more bytes arrive.
//!
//! As Redis reads it, and stricter in one thing: what follows a bulk, and the CR of a header,
//! must be there, or half of a malformed request would run as the next one.

use super::args::Span;
use super::number::parse_i64;
use super::request::{Limits, ProtocolError, Trust};

/// The shortest argument on the wire: `$0`, CR LF, CR LF.
pub(super) const ARG_BYTES_MIN: usize = 6;

/// Arguments of a request from a connection that has not yet authenticated.
const UNAUTHENTICATED_ARGS_MAX: i64 = 10;
/// Bytes of one of them.
const UNAUTHENTICATED_BULK_BYTES_MAX: i64 = 16_384;

/// Why the scan of a request stopped.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Stop {
    Torn,
    Refused(ProtocolError),
}

/// Where the scan of one request stands.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cursor {
    /// Where the request begins.
    pub(super) start: usize,
    /// Where the next header begins.
    pub(super) at: usize,
    pub(super) args_left: usize,
    /// Bytes of the line at `at` that are known not to hold its end.
    pub(super) searched: usize,
    /// Where the request ends at the earliest, as far as announced.
    pub(super) end_min: usize,
}

/// Reads the `*n` at `cursor.at`, which stands on its `*`.
#[inline]
pub(super) fn count(
    input: &[u8],
    cursor: &mut Cursor,
    limits: &Limits,
    trust: Trust,
) -> Result<(), Stop> {
    let rest = input.get(cursor.at..).unwrap_or_default();
    if let [b'*', digit @ b'1'..=b'9', b'\r', b'\n', ..] = rest {
        // At most nine arguments are within every limit that can be set.
        cursor.args_left = usize::from(digit - b'0');
        cursor.at += 4;
        cursor.searched = 0;
        return Ok(());
    }
    let number = number_line(rest, cursor, limits, &MULTIBULK)?;
    if number > limits.args_max as i64 {
        return Err(Stop::Refused(ProtocolError::InvalidMultibulkLength));
    }
    if number > UNAUTHENTICATED_ARGS_MAX && trust == Trust::Unauthenticated {
        return Err(Stop::Refused(ProtocolError::UnauthenticatedMultibulkLength));
    }
    cursor.args_left = number.max(0) as usize;
    let announced = cursor.at - cursor.start + cursor.args_left * ARG_BYTES_MIN;
    if announced > limits.request_bytes_max {
        return Err(Stop::Refused(ProtocolError::RequestTooBig));
    }
    Ok(())
}

/// Reads the arguments that are left, and appends where each stands to `spans`.
#[inline]
pub(super) fn bulks(
    input: &[u8],
    cursor: &mut Cursor,
    spans: &mut Vec<Span>,
    limits: &Limits,
    trust: Trust,
) -> Result<(), Stop> {
    while cursor.args_left > 0 {
        let (body, length) = bulk_header(input, cursor, limits, trust)?;
        let end = body + length;
        let end_min = end + 2 + (cursor.args_left - 1) * ARG_BYTES_MIN;
        if end_min - cursor.start > limits.request_bytes_max {
            return Err(Stop::Refused(ProtocolError::RequestTooBig));
        }
        match input.get(end..end + 2) {
            Some(b"\r\n") => {}
            Some(_) => return Err(Stop::Refused(ProtocolError::UnterminatedBulk)),
            None => {
                cursor.end_min = end_min;
                return Err(Stop::Torn);
            }
        }
        spans.push(Span { start: body as u32, end: end as u32 });
        cursor.at = end + 2;
        cursor.searched = 0;
        cursor.args_left -= 1;
    }
    Ok(())
}

/// Reads the `$len` at `cursor.at` without moving there: where its bytes begin, and how many.
#[inline]
fn bulk_header(
    input: &[u8],
    cursor: &mut Cursor,
    limits: &Limits,
    trust: Trust,
) -> Result<(usize, usize), Stop> {
    let rest = input.get(cursor.at..).unwrap_or_default();
    let Some((digits, length)) = short_length(rest) else {
        return any_bulk_header(rest, cursor, limits, trust);
    };
    let body = cursor.at + b"$\r\n".len() + digits;
    if length > limits.bulk_bytes_max {
        return Err(Stop::Refused(ProtocolError::InvalidBulkLength));
    }
    Ok((body, length))
}

/// A length below 100, as nearly every argument has it, and how many digits it is written with.
///
/// Four bytes are compared at once: where they are as expected, what differs from those of a zero
/// is the digits.
#[inline(always)]
fn short_length(rest: &[u8]) -> Option<(usize, usize)> {
    let head = u32::from_le_bytes(*rest.first_chunk()?);
    // Turned so that the digit stands lowest: anything else that differs makes it larger.
    let ones = (head ^ u32::from_le_bytes(*b"$0\r\n")).rotate_right(8);
    if ones <= 9 {
        return Some((1, ones as usize));
    }
    let digits = (head ^ u32::from_le_bytes(*b"$00\r")).rotate_right(8);
    let (tens, ones) = (digits & 0xff, digits >> 8);
    let is_short = (1..=9).contains(&tens) && ones <= 9 && rest.get(4) == Some(&b'\n');
    is_short.then_some((2, (tens * 10 + ones) as usize))
}

#[inline(never)]
fn any_bulk_header(
    rest: &[u8],
    cursor: &mut Cursor,
    limits: &Limits,
    trust: Trust,
) -> Result<(usize, usize), Stop> {
    cursor.end_min = cursor.at + cursor.args_left * ARG_BYTES_MIN;
    match rest.first() {
        None => return Err(Stop::Torn),
        Some(b'$') => {}
        Some(other) => return Err(Stop::Refused(ProtocolError::ExpectedBulk(*other))),
    }
    let header = cursor.at;
    let number = number_line(rest, cursor, limits, &BULK)?;
    let body = std::mem::replace(&mut cursor.at, header);
    if number < 0 || number > limits.bulk_bytes_max as i64 {
        return Err(Stop::Refused(ProtocolError::InvalidBulkLength));
    }
    if number > UNAUTHENTICATED_BULK_BYTES_MAX && trust == Trust::Unauthenticated {
        return Err(Stop::Refused(ProtocolError::UnauthenticatedBulkLength));
    }
    Ok((body, number as usize))
}

/// The two things that can be wrong with a header line.
struct Header {
    too_long: ProtocolError,
    malformed: ProtocolError,
}

const MULTIBULK: Header = Header {
    too_long: ProtocolError::MultibulkHeaderTooBig,
    malformed: ProtocolError::InvalidMultibulkLength,
};
const BULK: Header = Header {
    too_long: ProtocolError::BulkHeaderTooBig,
    malformed: ProtocolError::InvalidBulkLength,
};

/// Reads the number of the header line that `rest` begins with, and moves past its CR LF.
#[inline(never)]
fn number_line(
    rest: &[u8],
    cursor: &mut Cursor,
    limits: &Limits,
    header: &Header,
) -> Result<i64, Stop> {
    let line = rest.get(..=limits.header_bytes_max).unwrap_or(rest);
    let unseen = line.get(cursor.searched..).unwrap_or_default();
    let Some(found) = memchr::memchr(b'\r', unseen) else {
        if line.len() > limits.header_bytes_max {
            return Err(Stop::Refused(header.too_long));
        }
        cursor.searched = line.len();
        cursor.end_min = cursor.end_min.max(cursor.at + line.len() + 2);
        return Err(Stop::Torn);
    };
    let end = cursor.searched + found;
    match rest.get(end + 1) {
        Some(b'\n') => {}
        Some(_) => return Err(Stop::Refused(header.malformed)),
        None => {
            cursor.searched = end;
            cursor.end_min = cursor.end_min.max(cursor.at + end + 2);
            return Err(Stop::Torn);
        }
    }
    let digits = rest.get(1..end).unwrap_or_default();
    let number = parse_i64(digits).ok_or(Stop::Refused(header.malformed))?;
    cursor.searched = 0;
    cursor.at += end + 2;
    Ok(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_length_is_read_where_its_header_is_plain() {
        for length in 0..200_usize {
            let header = format!("${length}\r\n");
            let expected = (length < 100).then(|| (header.len() - 3, length));
            assert_eq!(short_length(header.as_bytes()), expected, "{header:?}");
            assert_eq!(short_length(format!("{header}*").as_bytes()), expected, "{header:?}");
            // Any other byte anywhere is left to who reads every header there can be.
            for at in 0..header.len() {
                for byte in (0..=255).filter(|byte: &u8| !byte.is_ascii_digit()) {
                    let mut torn = header.clone().into_bytes();
                    if torn[at] != byte {
                        torn[at] = byte;
                        assert_eq!(short_length(&torn), None, "{torn:?}");
                    }
                }
                assert_eq!(short_length(&header.as_bytes()[..at]), None, "{header:?}, {at}");
            }
        }
        assert_eq!(short_length(b"$01\r\n"), None);
    }
}
