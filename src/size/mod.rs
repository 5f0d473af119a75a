//! How much: byte counts as people write them, and amounts that may be left to the machine.
//!
//! The units are Redis's own, so that a figure from a `redis.conf` keeps its meaning: `k`, `m`,
//! `g` and `t` are powers of 1000, `kb`, `mb`, `gb` and `tb` powers of 1024.

use std::fmt;
use std::str::FromStr;

#[cfg(feature = "server")]
mod document;

/// A number of bytes.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Bytes(u64);

/// Why a text is not a number of bytes.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum ParseBytesError {
    #[error("expected a whole number of bytes with or without a unit such as 512, 64kb or 1gb")]
    Malformed,
    #[error("the number of bytes does not fit 64 bits")]
    TooLarge,
}

/// Longer units first: a text is read by the first unit it ends in.
const UNITS: [(&str, u64); 9] = [
    ("kb", 1 << 10),
    ("mb", 1 << 20),
    ("gb", 1 << 30),
    ("tb", 1 << 40),
    ("k", 1_000),
    ("m", 1_000_000),
    ("g", 1_000_000_000),
    ("t", 1_000_000_000_000),
    ("b", 1),
];

impl Bytes {
    pub const ZERO: Self = Self(0);

    pub const fn new(bytes: u64) -> Self {
        Self(bytes)
    }

    pub const fn as_u64(self) -> u64 {
        self.0
    }

    /// Saturates where an address has fewer than 64 bits.
    pub fn as_usize(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }
}

/// What the system's allocator spends on a block: a word before it, in steps of 16, at least 32.
pub const fn malloc_bytes(size: usize) -> usize {
    let spent = (size + 8).next_multiple_of(16);
    if spent < 32 { 32 } else { spent }
}

/// What is spent on what a collection or a string owns: an empty one owns no block.
pub const fn allocated_bytes(size: usize) -> usize {
    if size == 0 { 0 } else { malloc_bytes(size) }
}

impl FromStr for Bytes {
    type Err = ParseBytesError;

    fn from_str(text: &str) -> Result<Self, ParseBytesError> {
        let lower = text.to_ascii_lowercase();
        let (digits, unit) = UNITS
            .iter()
            .find_map(|&(name, unit)| lower.strip_suffix(name).map(|digits| (digits, unit)))
            .unwrap_or((lower.as_str(), 1));
        if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(ParseBytesError::Malformed);
        }
        digits
            .parse::<u64>()
            .ok()
            .and_then(|count| count.checked_mul(unit))
            .map(Self)
            .ok_or(ParseBytesError::TooLarge)
    }
}

/// The most bytes that something may have: at least 1, for nothing fits into none.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct BytesMax(Bytes);

/// Why a text is no bound on bytes.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum ParseBytesMaxError {
    #[error(transparent)]
    Bytes(#[from] ParseBytesError),
    #[error("expected at least 1 byte, for nothing fits into none")]
    Zero,
}

impl BytesMax {
    pub const fn bytes(self) -> Bytes {
        self.0
    }

    /// Saturates where an address has fewer than 64 bits.
    pub fn as_usize(self) -> usize {
        self.0.as_usize()
    }
}

impl FromStr for BytesMax {
    type Err = ParseBytesMaxError;

    fn from_str(text: &str) -> Result<Self, ParseBytesMaxError> {
        let bytes: Bytes = text.parse()?;
        if bytes == Bytes::ZERO { Err(ParseBytesMaxError::Zero) } else { Ok(Self(bytes)) }
    }
}

impl fmt::Display for BytesMax {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The shortest form that reads back to the same number; of two as short, the larger unit.
impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let with_units = UNITS
            .iter()
            .filter(|(_, unit)| *unit > 1 && self.0 != 0 && self.0.is_multiple_of(*unit))
            .map(|(name, unit)| format!("{}{name}", self.0 / unit));
        let shortest = with_units
            .chain([self.0.to_string()])
            .min_by_key(|form| (form.len(), form.bytes().take_while(u8::is_ascii_digit).count()));
        f.write_str(shortest.as_deref().unwrap_or("0"))
    }
}

/// An amount that is given, or left to be found out from the machine.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum OrAuto<T> {
    Auto,
    Exactly(T),
}

impl<T> OrAuto<T> {
    /// The given amount, or else the one that `found` tells.
    pub fn unwrap_or_else(self, found: impl FnOnce() -> T) -> T {
        match self {
            Self::Auto => found(),
            Self::Exactly(amount) => amount,
        }
    }
}

impl<T: fmt::Display> fmt::Display for OrAuto<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Exactly(amount) => amount.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_in_the_units_of_redis() {
        let rows = [
            ("0", 0),
            ("512", 512),
            ("512b", 512),
            ("1k", 1_000),
            ("1kb", 1_024),
            ("64KB", 65_536),
            ("1m", 1_000_000),
            ("1Mb", 1_048_576),
            ("512mb", 536_870_912),
            ("1g", 1_000_000_000),
            ("1gb", 1_073_741_824),
            ("2tb", 2_199_023_255_552),
            ("18446744073709551615", u64::MAX),
        ];
        for (text, bytes) in rows {
            assert_eq!(text.parse(), Ok(Bytes::new(bytes)), "{text}");
        }
    }

    #[test]
    fn malformed_sizes_are_refused() {
        for text in ["", "kb", "-1", "+1", "1.5gb", "1 kb", "1kib", "1kbb", "0x10", "auto"] {
            assert_eq!(text.parse::<Bytes>(), Err(ParseBytesError::Malformed), "{text}");
        }
        for text in ["18446744073709551616", "16777216tb", "99999999999999999999g"] {
            assert_eq!(text.parse::<Bytes>(), Err(ParseBytesError::TooLarge), "{text}");
        }
    }

    #[test]
    fn size_prints_its_shortest_form() {
        let rows = [
            (0, "0"),
            (1, "1"),
            (512, "512"),
            (1_000, "1k"),
            (1_024, "1kb"),
            (1_500, "1500"),
            (65_536, "64kb"),
            (1_000_000, "1m"),
            (536_870_912, "512mb"),
            (1_073_741_824, "1gb"),
            (1_025, "1025"),
            (10_240_000, "10240k"),
        ];
        for (bytes, text) in rows {
            assert_eq!(Bytes::new(bytes).to_string(), text);
            assert_eq!(text.parse(), Ok(Bytes::new(bytes)));
        }
    }

    #[test]
    fn bound_on_bytes_is_at_least_one() {
        assert_eq!("1kb".parse::<BytesMax>().map(BytesMax::as_usize), Ok(1_024));
        assert_eq!("0kb".parse::<BytesMax>(), Err(ParseBytesMaxError::Zero));
        let malformed = ParseBytesMaxError::Bytes(ParseBytesError::Malformed);
        assert_eq!("-1".parse::<BytesMax>(), Err(malformed));
    }

    #[test]
    fn given_amount_wins_over_the_found_one() {
        assert_eq!(OrAuto::Exactly(3).unwrap_or_else(|| 7), 3);
        assert_eq!(OrAuto::Auto.unwrap_or_else(|| 7), 7);
    }
}
