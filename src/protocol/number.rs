//! Whole numbers in arguments and headers, as strictly as Redis reads them.
//!
//! One text for one number: no blanks, no `+`, no leading zeros, no `-0`.

/// Reads a signed number.
pub(crate) fn parse_i64(text: &[u8]) -> Option<i64> {
    match text {
        [b'-', digits @ ..] => {
            let magnitude = parse_u64(digits).filter(|magnitude| *magnitude != 0)?;
            0_i64.checked_sub_unsigned(magnitude)
        }
        digits => i64::try_from(parse_u64(digits)?).ok(),
    }
}

/// Reads a number without a sign.
pub(crate) fn parse_u64(text: &[u8]) -> Option<u64> {
    match text {
        [digit @ b'0'..=b'9'] => Some(u64::from(digit - b'0')),
        [b'1'..=b'9', ..] if text.len() <= U64_DIGITS_MAX => {
            text.iter().try_fold(0_u64, |value, byte| {
                let digit = byte.wrapping_sub(b'0');
                if digit > 9 {
                    return None;
                }
                value.checked_mul(10)?.checked_add(u64::from(digit))
            })
        }
        _ => None,
    }
}

/// The digits of `u64::MAX`; a longer text is over without being read.
const U64_DIGITS_MAX: usize = 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_text_reads_as_one_number() {
        for value in [0, 1, -1, 9, 10, -10, 1_000_000_007, i64::MAX, i64::MIN, i64::MIN + 1] {
            assert_eq!(parse_i64(value.to_string().as_bytes()), Some(value));
        }
        for value in [0, 9, 10, u64::MAX - 1, u64::MAX] {
            assert_eq!(parse_u64(value.to_string().as_bytes()), Some(value));
        }
    }

    #[test]
    fn other_texts_are_no_numbers() {
        for text in [
            "",
            "-",
            "+",
            "+5",
            "-0",
            "00",
            "010",
            "-010",
            " 10",
            "10 ",
            "1.5",
            "1e3",
            "0x10",
            "--1",
            "9223372036854775808",
            "-9223372036854775809",
            "99999999999999999999",
            "18446744073709551616",
            "100000000000000000000",
            "1\0",
            "\0",
            "/",
            ":",
            "1:",
            "1/",
        ] {
            assert_eq!(parse_i64(text.as_bytes()), None, "{text:?}");
        }
        for text in ["", "-1", "-0", "+1", "01", "18446744073709551616", "184467440737095516150"] {
            assert_eq!(parse_u64(text.as_bytes()), None, "{text:?}");
        }
    }
}
