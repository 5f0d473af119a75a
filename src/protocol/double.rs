//! Text to a double, as Redis reads scores with the C library: in decimal or in hexadecimal.
//!
//! A score is read strictly; the bound of a range as leniently as Redis does, which takes
//! whatever `strtod` does not stop at. Neither is ever NaN.

use super::binary::{DOUBLE, Unrounded, split_sign};

/// Reads all of `text`. What is too large, too small, or not a number is refused; infinity is
/// read.
pub(crate) fn parse_f64(text: &[u8]) -> Option<f64> {
    let value = read(text)?;
    let out_of_range = if value == 0.0 {
        names_more_than_zero(text)
    } else {
        !names_infinity(text) && value.is_infinite()
    };
    (!out_of_range).then_some(value)
}

/// Reads the bound of a range: blanks may stand before it, it ends at a NUL, nothing at all is
/// zero, and what is too large is infinite.
pub(crate) fn parse_bound(text: &[u8]) -> Option<f64> {
    let text = &text[..memchr::memchr(0, text).unwrap_or(text.len())];
    if text.is_empty() {
        return Some(0.0);
    }
    // What C calls blank: here also the vertical tab.
    let is_blank = |byte: &u8| byte.is_ascii_whitespace() || *byte == 0x0b;
    read(&text[text.iter().take_while(|byte| is_blank(byte)).count()..])
}

/// Reads all of `text`: too large is infinite, too small is zero.
fn read(text: &[u8]) -> Option<f64> {
    let (negative, magnitude) = split_sign(text);
    if let [b'0', b'x' | b'X', ..] = magnitude {
        let value = match Unrounded::parse(magnitude)?.round(DOUBLE) {
            Some((mantissa, exponent)) => from_parts(mantissa, exponent),
            None => f64::INFINITY,
        };
        return Some(if negative { -value } else { value });
    }
    if let Some(value) = whole(magnitude) {
        return Some(if negative { -value } else { value });
    }
    let value: f64 = std::str::from_utf8(text).ok()?.parse().ok()?;
    (!value.is_nan()).then_some(value)
}

/// Digits alone that a double holds exactly, as nearly all scores are: a moment in microseconds
/// is one. No rounding is asked for, so they need no more than to be added up.
fn whole(digits: &[u8]) -> Option<f64> {
    const DIGITS_MAX: usize = 16;
    const EXACT_MAX: u64 = 1 << f64::MANTISSA_DIGITS;
    if digits.is_empty() || digits.len() > DIGITS_MAX || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let value = digits.iter().fold(0, |sum, digit| sum * 10 + u64::from(digit - b'0'));
    (value <= EXACT_MAX).then_some(value as f64)
}

/// `mantissa * 2^exponent` of a number that has been rounded to a double.
fn from_parts(mantissa: u64, exponent: i32) -> f64 {
    const FRACTION_BITS: u32 = f64::MANTISSA_DIGITS - 1;
    let fraction = mantissa & ((1 << FRACTION_BITS) - 1);
    if mantissa == fraction {
        // One of the smallest: all of them have the same exponent.
        return f64::from_bits(mantissa);
    }
    let biased = u64::from((exponent - DOUBLE.exponent_min + 1).unsigned_abs());
    f64::from_bits((biased << FRACTION_BITS) | fraction)
}

fn names_infinity(text: &[u8]) -> bool {
    split_sign(text).1.first().is_some_and(|byte| byte.eq_ignore_ascii_case(&b'i'))
}

/// Of a text that has been read as zero: whether a digit of it is not.
fn names_more_than_zero(text: &[u8]) -> bool {
    let (_, magnitude) = split_sign(text);
    let (digits, marker) = match magnitude {
        [b'0', b'x' | b'X', digits @ ..] => (digits, b'p'),
        digits => (digits, b'e'),
    };
    let end = digits.iter().position(|byte| byte.eq_ignore_ascii_case(&marker));
    digits[..end.unwrap_or(digits.len())].iter().any(|byte| !matches!(byte, b'0' | b'.'))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn scores_are_read_as_redis_reads_them() {
        let rows = [
            ("0", Some(0.0)),
            ("-0", Some(-0.0)),
            ("007", Some(7.0)),
            ("9007199254740992", Some(9_007_199_254_740_992.0)),
            ("9007199254740993", Some(9_007_199_254_740_992.0)),
            ("9007199254740995", Some(9_007_199_254_740_996.0)),
            ("-9999999999999999", Some(-1e16)),
            ("+5", Some(5.0)),
            ("1.", Some(1.0)),
            (".5", Some(0.5)),
            ("1e5", Some(1e5)),
            ("1E-5", Some(1e-5)),
            ("0e5", Some(0.0)),
            ("0.000e-999", Some(0.0)),
            ("1796044388207115", Some(1_796_044_388_207_115.0)),
            ("4e-320", Some(4e-320)),
            ("0x10", Some(16.0)),
            ("-0X1.8p1", Some(-3.0)),
            ("0x1p-1074", Some(5e-324)),
            ("0x1p-1075", None),
            ("0x0p9", Some(0.0)),
            ("0x1.fffffffffffffp1023", Some(f64::MAX)),
            ("0x1p1024", None),
            ("inf", Some(f64::INFINITY)),
            ("+Inf", Some(f64::INFINITY)),
            ("-INFINITY", Some(f64::NEG_INFINITY)),
            ("1e400", None),
            ("-1e400", None),
            ("1e-400", None),
            ("nan", None),
            ("-nan", None),
            ("", None),
            (".", None),
            ("-", None),
            ("1e", None),
            ("0x", None),
            (" 1", None),
            ("1 ", None),
            ("1\0", None),
            ("1_0", None),
            ("infinit", None),
        ];
        for (text, value) in rows {
            let bits = |value: Option<f64>| value.map(f64::to_bits);
            assert_eq!(bits(parse_f64(text.as_bytes())), bits(value), "{text:?}");
        }
    }

    #[test]
    fn bounds_are_read_as_leniently_as_redis_reads_them() {
        let rows = [
            ("", Some(0.0)),
            ("1", Some(1.0)),
            (" \t\n\x0b\x0c\r1", Some(1.0)),
            ("1\0x", Some(1.0)),
            ("\0", Some(0.0)),
            ("1e400", Some(f64::INFINITY)),
            ("-1e400", Some(f64::NEG_INFINITY)),
            ("1e-400", Some(0.0)),
            ("0x2", Some(2.0)),
            ("0x1p9999", Some(f64::INFINITY)),
            ("  ", None),
            ("1 ", None),
            ("nan", None),
            ("x", None),
            ("-", None),
        ];
        for (text, value) in rows {
            assert_eq!(parse_bound(text.as_bytes()), value, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn every_double_is_read_back(value in any::<f64>()) {
            prop_assume!(!value.is_nan());
            prop_assert_eq!(parse_f64(format!("{value:e}").as_bytes()), Some(value));
        }

        #[test]
        fn hexadecimal_parts_make_their_double(value in 0.0..f64::MAX) {
            let bits = value.to_bits();
            let (exponent, fraction) = (bits >> 52, bits & ((1 << 52) - 1));
            let whole = u8::from(exponent > 0);
            let power = exponent.max(1) as i64 - 1_023;
            let text = format!("0x{whole}.{fraction:013x}p{power}");
            prop_assert_eq!(parse_f64(text.as_bytes()), Some(value));
        }

        #[test]
        fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            let _ = (parse_f64(&bytes), parse_bound(&bytes));
        }
    }
}
