//! The name of a script: the SHA-1 of its exact text.
//!
//! Clients send it as forty hexadecimal digits in either case; Redis writes it in lower case.

use std::fmt;

/// Digits of the hexadecimal text.
const HEX_DIGITS: usize = 40;

/// A script's name.
#[derive(Clone, Copy, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub(crate) struct Sha([u8; 20]);

impl Sha {
    pub(crate) fn of(text: &[u8]) -> Self {
        Self(sha1_smol::Sha1::from(text).digest().bytes())
    }

    /// Reads forty digits; anything else names no script.
    pub(crate) fn parse(hex: &[u8]) -> Option<Self> {
        if hex.len() != HEX_DIGITS {
            return None;
        }
        let (mut bytes, mut seen) = ([0; 20], 0);
        for (byte, pair) in bytes.iter_mut().zip(hex.chunks_exact(2)) {
            let (high, low) = (DIGITS[usize::from(pair[0])], DIGITS[usize::from(pair[1])]);
            seen |= high | low;
            *byte = (high << 4) | low;
        }
        (seen < NO_DIGIT).then_some(Self(bytes))
    }

    pub(crate) fn hex(&self) -> String {
        self.to_string()
    }
}

impl fmt::Display for Sha {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Sha {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// By the byte of a hexadecimal digit, its value; of other bytes more than a digit has.
const DIGITS: [u8; 256] = {
    let mut digits = [NO_DIGIT; 256];
    let mut value = 0;
    while value < 16 {
        digits[b"0123456789abcdef"[value] as usize] = value as u8;
        digits[b"0123456789ABCDEF"[value] as usize] = value as u8;
        value += 1;
    }
    digits
};

const NO_DIGIT: u8 = 0x80;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn either_case_names_the_script_and_lower_case_is_written() {
        let sha = Sha::of(b"return 1");
        let hex = "e0e1f9fabfc9d4800c877a703b823ac0578ff8db";
        assert_eq!(sha.hex(), hex);
        assert_eq!(Sha::parse(hex.as_bytes()), Some(sha));
        assert_eq!(Sha::parse(hex.to_uppercase().as_bytes()), Some(sha));
        for wrong in ["", "short", &hex[1..], &format!("{hex}0"), &hex.replace('e', "g")] {
            assert_eq!(Sha::parse(wrong.as_bytes()), None, "{wrong}");
        }
    }
}
