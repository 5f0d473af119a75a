//! From text to a binary floating-point number, rounded once.
//!
//! The C library reads numbers for Redis, in decimal or in hexadecimal: to 64 bits for
//! INCRBYFLOAT, to 53 for scores. An [`Unrounded`] holds what the text says to 127 bits, and one
//! more bit that says whether anything lies below; [`Unrounded::round`] then makes the nearest
//! number of a [`Format`], ties to even, as the processor would.

use num_bigint::BigUint;

/// A number `mantissa * 2^exponent`, at least 0. If its lowest bit is set, the true number may lie
/// anywhere between its neighbours: enough to round to half as many bits.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Unrounded {
    pub(super) mantissa: u128,
    pub(super) exponent: i32,
}

/// The width of a number.
#[derive(Clone, Copy, Debug)]
pub(super) struct Format {
    mantissa_bits: i32,
    /// The place of the lowest bit of the smallest number.
    pub(super) exponent_min: i32,
    /// The place of the lowest bit of the largest number.
    pub(super) exponent_max: i32,
}

/// `long double` of x86: what Redis adds with there.
pub(super) const EXTENDED: Format =
    Format { mantissa_bits: 64, exponent_min: -16_445, exponent_max: 16_320 };

/// What scores are.
pub(super) const DOUBLE: Format =
    Format { mantissa_bits: 53, exponent_min: -1_074, exponent_max: 971 };

/// Numbers of at least 10^this are larger than the largest of any format.
const MAGNITUDE_MAX: i64 = 4_940;
/// Numbers below 10^this round to zero in any format.
const MAGNITUDE_MIN: i64 = -4_960;

impl Unrounded {
    pub(super) const ZERO: Self = Self { mantissa: 0, exponent: 0 };

    /// Reads `12.5e-3` or `0x1.8p3`, without a sign, to the end. What is out of every format's
    /// range is no number.
    pub(super) fn parse(text: &[u8]) -> Option<Self> {
        match text {
            [b'0', b'x' | b'X', hexadecimal @ ..] => Self::parse_hexadecimal(hexadecimal),
            decimal => Self::parse_decimal(decimal),
        }
    }

    fn parse_decimal(text: &[u8]) -> Option<Self> {
        let (digits, exponent) = Digits::parse(text, b'e', u8::is_ascii_digit)?;
        if digits.significant.is_empty() {
            return Some(Self::ZERO);
        }
        let exponent = exponent.saturating_sub(digits.fraction as i64);
        let magnitude = exponent.saturating_add(digits.significant.len() as i64);
        if !(MAGNITUDE_MIN..=MAGNITUDE_MAX).contains(&magnitude) {
            return None;
        }
        let whole = BigUint::parse_bytes(&digits.significant, 10)?;
        let power = BigUint::from(10_u8).pow(u32::try_from(exponent.unsigned_abs()).ok()?);
        if exponent >= 0 {
            return Some(Self::from_big(&(whole * power), 0, false));
        }
        // Enough bits of the quotient for any format, and to tell whether there are more.
        let shift = (128 + power.bits()).saturating_sub(whole.bits());
        let shifted = whole << shift;
        let quotient = &shifted / &power;
        let inexact = &quotient * &power != shifted;
        Some(Self::from_big(&quotient, -(shift as i32), inexact))
    }

    fn parse_hexadecimal(text: &[u8]) -> Option<Self> {
        let (digits, exponent) = Digits::parse(text, b'p', u8::is_ascii_hexdigit)?;
        if digits.significant.is_empty() {
            return Some(Self::ZERO);
        }
        let whole = BigUint::parse_bytes(&digits.significant, 16)?;
        let exponent = exponent.saturating_sub(4 * digits.fraction as i64);
        // Far beyond any format either way; rounding settles what becomes of it.
        let exponent = exponent.clamp(-(1 << 20), 1 << 20) as i32;
        Some(Self::from_big(&whole, exponent, false))
    }

    /// The top 127 bits; what is below them, or `inexact`, sets the lowest.
    fn from_big(whole: &BigUint, exponent: i32, inexact: bool) -> Self {
        let dropped = whole.bits().saturating_sub(127);
        let below = whole.trailing_zeros().is_some_and(|zeros| zeros < dropped);
        let top = u128::try_from(whole >> dropped).expect("127 bits are left");
        let mantissa = top | u128::from(below || inexact);
        Self { mantissa, exponent: exponent.saturating_add(dropped as i32) }
    }

    /// The nearest number of the format, ties to even, as `mantissa * 2^exponent` with the top bit
    /// of the mantissa set unless it is one of the smallest. `None` if it is too large.
    pub(super) fn round(self, format: Format) -> Option<(u64, i32)> {
        debug_assert!(self.mantissa >> 127 == 0, "rounding up must not overflow");
        if self.mantissa == 0 {
            return Some((0, format.exponent_min));
        }
        let width = 128 - self.mantissa.leading_zeros() as i32;
        let drop = (width - format.mantissa_bits).max(format.exponent_min - self.exponent);
        let exponent = self.exponent + drop;
        if drop <= 0 {
            let mantissa = (self.mantissa << -drop) as u64;
            return (exponent <= format.exponent_max).then_some((mantissa, exponent));
        }
        if drop > 127 {
            return Some((0, format.exponent_min));
        }
        let mut mantissa = (self.mantissa >> drop) as u64;
        let rest = self.mantissa & ((1 << drop) - 1);
        let half = 1 << (drop - 1);
        let mut carry = 0;
        if rest > half || rest == half && mantissa & 1 == 1 {
            let full = u64::MAX >> (64 - format.mantissa_bits);
            carry = i32::from(mantissa == full);
            mantissa = if carry == 1 { full / 2 + 1 } else { mantissa + 1 };
        }
        let exponent = exponent + carry;
        (exponent <= format.exponent_max).then_some((mantissa, exponent))
    }
}

/// The digits of a number without its point.
struct Digits {
    /// From the first that is not zero.
    significant: Vec<u8>,
    /// How many digits stood behind the point.
    fraction: usize,
}

impl Digits {
    /// Reads digits with at most one point, then `marker` and a decimal exponent if it is there.
    fn parse(text: &[u8], marker: u8, is_digit: fn(&u8) -> bool) -> Option<(Self, i64)> {
        let end =
            text.iter().position(|byte| byte.eq_ignore_ascii_case(&marker) && !is_digit(byte));
        let (mantissa, exponent) = match end {
            Some(end) => (&text[..end], parse_exponent(&text[end + 1..])?),
            None => (text, 0),
        };
        let point = mantissa.iter().position(|byte| *byte == b'.');
        let (whole, fraction) = match point {
            Some(point) => (&mantissa[..point], &mantissa[point + 1..]),
            None => (mantissa, &[][..]),
        };
        let all = || whole.iter().chain(fraction);
        if all().count() == 0 || !all().all(is_digit) {
            return None;
        }
        let significant = all().skip_while(|digit| **digit == b'0').copied().collect();
        Some((Self { significant, fraction: fraction.len() }, exponent))
    }
}

/// Takes one sign off the front: whether it was a minus, and the rest.
pub(super) fn split_sign(text: &[u8]) -> (bool, &[u8]) {
    match text.split_first() {
        Some((b'-', rest)) => (true, rest),
        Some((b'+', rest)) => (false, rest),
        _ => (false, text),
    }
}

/// Saturates: no range tells a huge exponent from a larger one.
fn parse_exponent(text: &[u8]) -> Option<i64> {
    let (negative, digits) = split_sign(text);
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let magnitude = digits.iter().fold(0_i64, |value, digit| {
        value.saturating_mul(10).saturating_add(i64::from(digit - b'0')).min(1 << 40)
    });
    Some(if negative { -magnitude } else { magnitude })
}
