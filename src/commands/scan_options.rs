//! What SCAN and its likes ask: a cursor, how much to look at, and what of it to show.

use super::glob;
use crate::protocol::{Args, Error, parse_i64};

/// Elements looked at where COUNT does not say.
const COUNT: usize = 10;

/// What is scanned.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Scanned {
    /// The keyspace, where TYPE can be asked for.
    Keys,
    /// One collection.
    Elements,
}

/// The options of a scan.
#[derive(Clone, Copy, Debug)]
pub(super) struct ScanOptions<'a> {
    /// How many to look at, matching or not: at least one.
    pub(super) count: usize,
    pattern: Option<&'a [u8]>,
    type_name: Option<&'a [u8]>,
}

impl<'a> ScanOptions<'a> {
    /// Reads the words behind the cursor.
    pub(super) fn read(words: Args<'a>, scanned: Scanned) -> Result<Self, Error> {
        let mut options = Self { count: COUNT, pattern: None, type_name: None };
        let mut at = 0;
        while let (Some(word), Some(value)) = (words.get(at), words.get(at + 1)) {
            if word.eq_ignore_ascii_case(b"COUNT") {
                let count = parse_i64(value).ok_or(Error::NotInteger)?;
                let count = usize::try_from(count).ok().filter(|count| *count > 0);
                options.count = count.ok_or(Error::Syntax)?;
            } else if word.eq_ignore_ascii_case(b"MATCH") {
                options.pattern = Some(value);
            } else if word.eq_ignore_ascii_case(b"TYPE") && scanned == Scanned::Keys {
                options.type_name = Some(value);
            } else {
                return Err(Error::Syntax);
            }
            at += 2;
        }
        if at < words.len() { Err(Error::Syntax) } else { Ok(options) }
    }

    /// Whether a key, field or member is to be shown.
    pub(super) fn wants(&self, element: &[u8]) -> bool {
        self.pattern.is_none_or(|pattern| glob::matches(pattern, element))
    }

    /// Whether keys of this type are to be shown.
    pub(super) fn wants_type(&self, name: &str) -> bool {
        self.type_name.is_none_or(|wanted| wanted.eq_ignore_ascii_case(name.as_bytes()))
    }
}

/// Reads a cursor as leniently as Redis does: with a sign, with zeros in front, or empty for 0.
pub(super) fn cursor(text: &[u8]) -> Result<u64, Error> {
    let negative = text.starts_with(b"-");
    let digits = text.strip_prefix(b"+").or(text.strip_prefix(b"-")).unwrap_or(text);
    if digits.is_empty() && !text.is_empty() {
        return Err(Error::InvalidCursor);
    }
    let number = digits.iter().try_fold(0_u64, |number, byte| {
        let digit = byte.checked_sub(b'0').filter(|digit| *digit <= 9)?;
        number.checked_mul(10)?.checked_add(digit.into())
    });
    let number = number.ok_or(Error::InvalidCursor)?;
    Ok(if negative { number.wrapping_neg() } else { number })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursors_are_read_as_redis_reads_them() {
        for (text, expected) in [
            ("0", Some(0)),
            ("", Some(0)),
            ("007", Some(7)),
            ("+7", Some(7)),
            ("-1", Some(u64::MAX)),
            ("18446744073709551615", Some(u64::MAX)),
            ("18446744073709551616", None),
            (" 1", None),
            ("1a", None),
            ("0x1", None),
        ] {
            assert_eq!(cursor(text.as_bytes()).ok(), expected, "{text:?}");
        }
    }
}
