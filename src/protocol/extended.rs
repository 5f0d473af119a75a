//! INCRBYFLOAT's arithmetic: the 80-bit `long double` of x86, in software.
//!
//! Redis reads both numbers to 64 bits of mantissa, adds them, and prints 17 decimals without the
//! trailing zeros. Clients compare the text, and a 64-bit double gives another: 3200 + 0.1 is
//! `3200.10000000000000009`. So each step is done here to the bit, on every machine.
//!
//! Invariant: a finite number is `mantissa * 2^exponent` with the mantissa's top bit set, unless
//! the exponent is the smallest there is.

use super::binary::{EXTENDED, Unrounded, split_sign};
use num_bigint::BigUint;
use std::cmp::Ordering;
use std::fmt;

/// A longer text is no number: Redis's own buffer ends there.
const TEXT_BYTES_MAX: usize = 5 * 1_024;

/// Decimals printed, before trailing zeros are cut.
const DECIMALS: usize = 17;

/// A number as x86 computes with.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Extended(Kind);

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Kind {
    Finite(Finite),
    /// No sum with it is a number to store.
    Infinite {
        negative: bool,
    },
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Finite {
    negative: bool,
    mantissa: u64,
    exponent: i32,
}

impl Finite {
    const LARGEST: Self =
        Self { negative: false, mantissa: u64::MAX, exponent: EXTENDED.exponent_max };
}

impl Extended {
    /// Reads all of `text`. What is too large, too small, or not a number is refused; infinity is
    /// read, and refused by [`Extended::plus`] with another error.
    pub(crate) fn parse(text: &[u8]) -> Option<Self> {
        if text.len() >= TEXT_BYTES_MAX {
            return None;
        }
        let (negative, text) = split_sign(text);
        if text.eq_ignore_ascii_case(b"inf") || text.eq_ignore_ascii_case(b"infinity") {
            return Some(Self(Kind::Infinite { negative }));
        }
        let unrounded = Unrounded::parse(text)?;
        let (mantissa, exponent) = unrounded.round(EXTENDED)?;
        let vanished = mantissa == 0 && unrounded.mantissa != 0;
        (!vanished).then_some(Self(Kind::Finite(Finite { negative, mantissa, exponent })))
    }

    /// The largest finite number.
    pub(crate) const MAX: Self = Self(Kind::Finite(Finite::LARGEST));

    /// The smallest finite number.
    pub(crate) const MIN: Self = Self(Kind::Finite(Finite { negative: true, ..Finite::LARGEST }));

    pub(crate) const ZERO: Self = Self(Kind::Finite(Finite {
        negative: false,
        mantissa: 0,
        exponent: EXTENDED.exponent_min,
    }));

    pub(crate) fn is_infinite(self) -> bool {
        matches!(self.0, Kind::Infinite { .. })
    }

    fn is_negative(self) -> bool {
        match self.0 {
            Kind::Finite(Finite { negative, .. }) | Kind::Infinite { negative } => negative,
        }
    }

    pub(crate) fn negated(self) -> Self {
        Self(match self.0 {
            Kind::Finite(finite) => Kind::Finite(Finite { negative: !finite.negative, ..finite }),
            Kind::Infinite { negative } => Kind::Infinite { negative: !negative },
        })
    }

    /// Which of the two is larger; zero has no sign here.
    pub(crate) fn compare(self, other: Self) -> Ordering {
        let (size, other_size) = (self.size(), other.size());
        match (self.is_negative(), other.is_negative()) {
            _ if size == Self::ZERO.size() && size == other_size => Ordering::Equal,
            (false, false) => size.cmp(&other_size),
            (true, true) => other_size.cmp(&size),
            (true, false) => Ordering::Less,
            (false, true) => Ordering::Greater,
        }
    }

    /// Something that orders numbers without their sign: of two finite ones that have no top
    /// bit, both have the smallest exponent.
    fn size(self) -> (bool, i32, u64) {
        match self.0 {
            Kind::Infinite { .. } => (true, 0, 0),
            Kind::Finite(Finite { mantissa: 0, .. }) => (false, i32::MIN, 0),
            Kind::Finite(Finite { mantissa, exponent, .. }) => (false, exponent, mantissa),
        }
    }

    /// The rounded sum; `None` if it is not finite.
    pub(crate) fn plus(self, other: Self) -> Option<Self> {
        let (Kind::Finite(a), Kind::Finite(b)) = (self.0, other.0) else { return None };
        let (a, b) = (Term::of(a), Term::of(b));
        let (high, low) = if a.exponent >= b.exponent { (a, b) } else { (b, a) };
        let low_mantissa = shift_right(low.mantissa, high.exponent.abs_diff(low.exponent));
        let (negative, mantissa) = if high.negative == low.negative {
            (high.negative, high.mantissa + low_mantissa)
        } else {
            match high.mantissa.cmp(&low_mantissa) {
                Ordering::Greater => (high.negative, high.mantissa - low_mantissa),
                Ordering::Less => (low.negative, low_mantissa - high.mantissa),
                Ordering::Equal => (false, 0),
            }
        };
        let (mantissa, exponent) =
            Unrounded { mantissa, exponent: high.exponent }.round(EXTENDED)?;
        Some(Self(Kind::Finite(Finite { negative, mantissa, exponent })))
    }
}

/// A number with room below its lowest bit and one bit above its top.
struct Term {
    negative: bool,
    mantissa: u128,
    exponent: i32,
}

/// Below the lowest bit: more than the two that rounding a difference needs.
const GUARD_BITS: i32 = 62;

impl Term {
    fn of(number: Finite) -> Self {
        Self {
            negative: number.negative,
            mantissa: u128::from(number.mantissa) << GUARD_BITS,
            exponent: number.exponent - GUARD_BITS,
        }
    }
}

/// Shifts, and keeps in the lowest bit whether anything was lost.
fn shift_right(mantissa: u128, bits: u32) -> u128 {
    match mantissa.checked_shr(bits) {
        Some(shifted) => shifted | u128::from(shifted << bits != mantissa),
        None => u128::from(mantissa != 0),
    }
}

impl fmt::Display for Extended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Kind::Finite(Finite { negative, mantissa, exponent }) = self.0 else {
            return f.write_str(if self.is_negative() { "-inf" } else { "inf" });
        };
        let text = match u32::try_from(-exponent) {
            Ok(fraction_bits) if fraction_bits > 0 => with_decimals(mantissa, fraction_bits),
            _ => (BigUint::from(mantissa) << exponent.unsigned_abs()).to_string(),
        };
        let sign = if negative && text != "0" { "-" } else { "" };
        write!(f, "{sign}{text}")
    }
}

/// `mantissa / 2^fraction_bits` to the nearest 17th decimal, ties to even, zeros cut.
fn with_decimals(mantissa: u64, fraction_bits: u32) -> String {
    const ONE: u128 = 10_u128.pow(DECIMALS as u32);
    // Below 2^121, so nothing overflows, and a shift past that leaves less than a half.
    let scaled = u128::from(mantissa) * ONE;
    let rounded = match scaled.checked_shr(fraction_bits) {
        Some(whole) => {
            let rest = scaled - (whole << fraction_bits);
            let half = 1 << (fraction_bits - 1);
            whole + u128::from(rest > half || rest == half && whole % 2 == 1)
        }
        None => 0,
    };
    let (whole, fraction) = (rounded / ONE, rounded % ONE);
    let text = format!("{whole}.{fraction:0DECIMALS$}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comparison_follows_the_order_of_numbers() {
        let ascending = [
            "-inf", "-1e4000", "-2", "-1.5", "-1e-4940", "0", "1e-4945", "1e-4940", "1.5", "2",
            "3", "1e4000", "inf",
        ];
        let numbers = ascending.map(|text| Extended::parse(text.as_bytes()).expect(text));
        for (at, left) in numbers.iter().enumerate() {
            for (other, right) in numbers.iter().enumerate() {
                assert_eq!(left.compare(*right), at.cmp(&other), "{left} {right}");
            }
        }
        assert_eq!(Extended::ZERO.negated().compare(Extended::ZERO), Ordering::Equal);
    }

    #[test]
    fn nothing_finite_is_larger_than_the_largest() {
        assert!(Extended::MAX.plus(Extended::MAX).is_none());
        assert_eq!(Extended::MAX.plus(Extended::MIN), Some(Extended::ZERO));
        let text = Extended::MAX.to_string();
        assert_eq!((text.len(), Extended::parse(text.as_bytes())), (4_933, Some(Extended::MAX)));
    }
}
