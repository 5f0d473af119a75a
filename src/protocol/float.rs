//! Floating-point numbers, written as Redis 7.2 and later write them.
//!
//! That is the shortest text that reads back to the same number. Whole numbers up to 2^62 have
//! no point; others keep plain notation while it is short, else `1.5e-9`; then `inf`, `-inf`,
//! `nan`. The text lives on the stack.

/// The longest text has 17 significant digits, six zeros or so, a sign, a point, an exponent.
const TEXT_BYTES_MAX: usize = 32;

/// A number as text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FloatText {
    bytes: [u8; TEXT_BYTES_MAX],
    length: usize,
}

impl FloatText {
    pub(crate) fn new(value: f64) -> Self {
        let mut text = Self { bytes: [0; TEXT_BYTES_MAX], length: 0 };
        text.write(value);
        text
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }

    fn write(&mut self, value: f64) {
        if value.is_nan() {
            return self.push(b"nan");
        }
        if value.is_sign_negative() {
            self.push(b"-");
        }
        let value = value.abs();
        if value.is_infinite() {
            return self.push(b"inf");
        }
        if value <= INTEGER_MAX && value.fract() == 0.0 {
            return self.push(itoa::Buffer::new().format(value as u64).as_bytes());
        }
        self.write_shortest(value);
    }

    /// Writes a positive number from the digits and the exponent of its shortest form.
    fn write_shortest(&mut self, value: f64) {
        let (digits, exponent) = Digits::of(ryu::Buffer::new().format_finite(value));
        let digits = digits.as_bytes();
        let count = digits.len() as i32;
        // The place of the first digit: 0 for ones, -1 for tenths.
        let leading = exponent + count - 1;
        if exponent >= 0 && leading < count + 7 {
            self.push(digits);
            self.push_zeros(exponent);
        } else if exponent < 0 && (exponent > -7 || leading.abs() < 4) {
            if leading < 0 {
                self.push(b"0.");
                self.push_zeros(-1 - leading);
                return self.push(digits);
            }
            let (whole, fraction) = digits.split_at(leading as usize + 1);
            self.push(whole);
            self.push(b".");
            self.push(fraction);
        } else {
            let (first, others) = digits.split_at(1);
            self.push(first);
            if !others.is_empty() {
                self.push(b".");
                self.push(others);
            }
            self.push(if leading < 0 { b"e-" } else { b"e+" });
            self.push(itoa::Buffer::new().format(leading.unsigned_abs()).as_bytes());
        }
    }

    fn push_zeros(&mut self, count: i32) {
        for _ in 0..count {
            self.push(b"0");
        }
    }

    /// No number's text is longer than the buffer: see [`TEXT_BYTES_MAX`].
    fn push(&mut self, part: &[u8]) {
        let end = self.length + part.len();
        self.bytes[self.length..end].copy_from_slice(part);
        self.length = end;
    }
}

/// Whole numbers within this are written without a point or an exponent.
const INTEGER_MAX: f64 = (i64::MAX / 2) as f64;

/// The significant digits of a number, at most 17.
struct Digits {
    bytes: [u8; 17],
    count: usize,
}

impl Digits {
    /// Takes apart `123.45`, `1e-7` or `1.2345e20`: value = digits * 10^exponent.
    fn of(text: &str) -> (Self, i32) {
        let (mantissa, exponent) = text.split_once('e').unwrap_or((text, "0"));
        let mut exponent: i32 = exponent.parse().expect("ryu writes a decimal exponent");
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let fraction = fraction.trim_end_matches('0');
        exponent -= fraction.len() as i32;
        let mut digits = Self { bytes: [0; 17], count: 0 };
        let all = whole.bytes().chain(fraction.bytes()).skip_while(|digit| *digit == b'0');
        let mut trailing_zeros = 0;
        for digit in all {
            trailing_zeros = if digit == b'0' { trailing_zeros + 1 } else { 0 };
            if let Some(slot) = digits.bytes.get_mut(digits.count) {
                *slot = digit;
            }
            digits.count += 1;
        }
        digits.count -= trailing_zeros;
        (digits, exponent + trailing_zeros as i32)
    }

    fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.count]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(value: f64) -> String {
        String::from_utf8(FloatText::new(value).as_bytes().to_vec()).expect("digits")
    }

    #[test]
    fn numbers_are_written_as_redis_7_2_writes_them() {
        let table: [(f64, &str); 30] = [
            (0.0, "0"),
            (-0.0, "-0"),
            (5.0, "5"),
            (-5.0, "-5"),
            (0.1, "0.1"),
            (0.1 + 0.2, "0.30000000000000004"),
            (1.0 / 3.0, "0.3333333333333333"),
            (1e-7, "1e-7"),
            (1e-6, "0.000001"),
            (1.5e-9, "1.5e-9"),
            (0.001_234_567_890_123_456_7, "0.0012345678901234567"),
            (0.000_123_456_789_012_345_67, "1.2345678901234567e-4"),
            (123_456_789.123_456_79, "1.2345678912345679e+8"),
            (17_960_443_882_071.15, "17960443882071.15"),
            (1_796_044_388_461.169_7, "1796044388461.1697"),
            (1_796_044_388_207_115.0, "1796044388207115"),
            (9_007_199_254_740_992.0, "9007199254740992"),
            (1e17, "100000000000000000"),
            (123_456_789_012_345_678.0, "123456789012345680"),
            (4_611_686_018_427_387_904.0, "4611686018427387904"),
            (9_223_372_036_854_775_808.0, "9223372036854776000"),
            (1e19, "1e+19"),
            (1e20, "1e+20"),
            (1.5e300, "1.5e+300"),
            (f64::MAX, "1.7976931348623157e+308"),
            (f64::MIN_POSITIVE, "2.2250738585072014e-308"),
            (5e-324, "5e-324"),
            (f64::INFINITY, "inf"),
            (f64::NEG_INFINITY, "-inf"),
            (f64::NAN, "nan"),
        ];
        for (value, expected) in table {
            assert_eq!(text(value), expected, "{value:e}");
        }
    }
}
