//! `cjson.decode`: JSON cut into its words.
//!
//! As the library whose place it takes, it reads up to the first zero byte, takes control
//! characters in texts as they are, and knows all numbers that C knows: also hexadecimal ones,
//! infinities and NaN, unless settings say otherwise.

/// A word, and where it begins.
pub(super) struct Token {
    pub(super) kind: Kind,
    pub(super) at: usize,
}

pub(super) enum Kind {
    ObjectBegin,
    ObjectEnd,
    ArrayBegin,
    ArrayEnd,
    Text(Vec<u8>),
    Number(f64),
    Boolean(bool),
    Null,
    Colon,
    Comma,
    End,
    /// No word: why not.
    Wrong(&'static str),
}

impl Kind {
    /// What errors call it.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::ObjectBegin => "T_OBJ_BEGIN",
            Self::ObjectEnd => "T_OBJ_END",
            Self::ArrayBegin => "T_ARR_BEGIN",
            Self::ArrayEnd => "T_ARR_END",
            Self::Text(_) => "T_STRING",
            Self::Number(_) => "T_NUMBER",
            Self::Boolean(_) => "T_BOOLEAN",
            Self::Null => "T_NULL",
            Self::Colon => "T_COLON",
            Self::Comma => "T_COMMA",
            Self::End => "T_END",
            Self::Wrong(why) => why,
        }
    }
}

pub(super) struct Tokens<'t> {
    text: &'t [u8],
    pub(super) at: usize,
    /// Numbers that are none in JSON are taken.
    takes_invalid: bool,
}

impl<'t> Tokens<'t> {
    pub(super) fn new(text: &'t [u8], takes_invalid: bool) -> Self {
        Self { text, at: 0, takes_invalid }
    }

    pub(super) fn next(&mut self) -> Token {
        while matches!(self.byte(0), b' ' | b'\t' | b'\n' | b'\r') {
            self.at += 1;
        }
        let at = self.at;
        let punctuation = match self.byte(0) {
            0 => return Token { kind: Kind::End, at },
            b'{' => Kind::ObjectBegin,
            b'}' => Kind::ObjectEnd,
            b'[' => Kind::ArrayBegin,
            b']' => Kind::ArrayEnd,
            b':' => Kind::Colon,
            b',' => Kind::Comma,
            b'"' => return self.text(),
            _ => return self.word(),
        };
        self.at += 1;
        Token { kind: punctuation, at }
    }

    /// The byte so far ahead; zero behind the end.
    fn byte(&self, ahead: usize) -> u8 {
        self.text.get(self.at + ahead).copied().unwrap_or(0)
    }

    fn rest(&self) -> &'t [u8] {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn wrong(&self, why: &'static str) -> Token {
        Token { kind: Kind::Wrong(why), at: self.at }
    }

    /// A number, or a word of letters.
    fn word(&mut self) -> Token {
        let rest = self.rest();
        if matches!(rest.first(), Some(b'-' | b'0'..=b'9')) {
            if !self.takes_invalid && is_invalid_number(rest) {
                return self.wrong("invalid number");
            }
            return self.number();
        }
        let words: [(&[u8], Kind); 3] = [
            (b"true", Kind::Boolean(true)),
            (b"false", Kind::Boolean(false)),
            (b"null", Kind::Null),
        ];
        let at = self.at;
        for (word, kind) in words {
            if rest.starts_with(word) {
                self.at += word.len();
                return Token { kind, at };
            }
        }
        let begins = matches!(rest.first(), Some(b'+' | b'i' | b'I' | b'n' | b'N'));
        if begins && self.takes_invalid && is_invalid_number(rest) {
            return self.number();
        }
        self.wrong("invalid token")
    }

    fn number(&mut self) -> Token {
        let at = self.at;
        match parse_number(self.rest()) {
            Some((number, len)) => {
                self.at += len;
                Token { kind: Kind::Number(number), at }
            }
            None => self.wrong("invalid number"),
        }
    }

    /// From a quote to the next.
    fn text(&mut self) -> Token {
        let begin = self.at;
        self.at += 1;
        let mut text = Vec::new();
        loop {
            match self.byte(0) {
                0 => return self.wrong("unexpected end of string"),
                b'"' => {
                    self.at += 1;
                    return Token { kind: Kind::Text(text), at: begin };
                }
                b'\\' => {
                    let escaped = match self.byte(1) {
                        escaped @ (b'"' | b'\\' | b'/') => escaped,
                        b'b' => 8,
                        b't' => b'\t',
                        b'n' => b'\n',
                        b'f' => 12,
                        b'r' => b'\r',
                        b'u' => {
                            let Some((letter, len)) = self.unicode() else {
                                return self.wrong("invalid unicode escape code");
                            };
                            text.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes());
                            self.at += len;
                            continue;
                        }
                        _ => return self.wrong("invalid escape code"),
                    };
                    text.push(escaped);
                    self.at += 2;
                }
                byte => {
                    text.push(byte);
                    self.at += 1;
                }
            }
        }
    }

    /// A letter by its number, or by the two halves of it, and how long that was.
    fn unicode(&self) -> Option<(char, usize)> {
        let first = self.hex4(2)?;
        if first & 0xf800 != 0xd800 {
            return Some((char::from_u32(first)?, 6));
        }
        if first & 0x400 != 0 || self.byte(6) != b'\\' || self.byte(7) != b'u' {
            return None;
        }
        let second = self.hex4(8).filter(|second| second & 0xfc00 == 0xdc00)?;
        Some((char::from_u32(((first & 0x3ff) << 10 | second & 0x3ff) + 0x1_0000)?, 12))
    }

    fn hex4(&self, ahead: usize) -> Option<u32> {
        (ahead..ahead + 4).try_fold(0, |number, ahead| {
            Some(number << 4 | char::from(self.byte(ahead)).to_digit(16)?)
        })
    }
}

/// What C reads as a number, and JSON does not.
fn is_invalid_number(text: &[u8]) -> bool {
    if text.starts_with(b"+") {
        return true;
    }
    let unsigned = text.strip_prefix(b"-").unwrap_or(text);
    match unsigned {
        [b'0', next, ..] => matches!(next, b'x' | b'X' | b'0'..=b'9'),
        _ => starts_like(unsigned, b"inf") || starts_like(unsigned, b"nan"),
    }
}

fn starts_like(text: &[u8], word: &[u8]) -> bool {
    text.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word))
}

/// The longest number at the start as C reads it, and how long it is.
fn parse_number(text: &[u8]) -> Option<(f64, usize)> {
    let (sign, unsigned) = match text {
        [b'-', rest @ ..] => (-1.0, rest),
        [b'+', rest @ ..] | rest => (1.0, rest),
    };
    let (number, len) = if starts_like(unsigned, b"infinity") {
        (f64::INFINITY, 8)
    } else if starts_like(unsigned, b"inf") {
        (f64::INFINITY, 3)
    } else if starts_like(unsigned, b"nan") {
        (f64::NAN, 3 + named_nan(&unsigned[3..]))
    } else {
        hexadecimal(unsigned).or_else(|| decimal(unsigned))?
    };
    Some((number.copysign(sign), text.len() - unsigned.len() + len))
}

/// Letters in brackets after a NaN.
fn named_nan(text: &[u8]) -> usize {
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    let [b'(', rest @ ..] = text else { return 0 };
    let len = rest.iter().take_while(|byte| is_name(byte)).count();
    if rest.get(len) == Some(&b')') { len + 2 } else { 0 }
}

fn decimal(text: &[u8]) -> Option<(f64, usize)> {
    let (len, has_digits) = mantissa_len(text, u8::is_ascii_digit);
    if !has_digits {
        return None;
    }
    let len = len + exponent_len(&text[len..], b'e');
    let number = std::str::from_utf8(&text[..len]).ok()?.parse().ok()?;
    Some((number, len))
}

/// Digits, a point and digits: how long, and whether there is a digit.
fn mantissa_len(text: &[u8], is_digit: fn(&u8) -> bool) -> (usize, bool) {
    let count = |text: &[u8]| text.iter().take_while(|byte| is_digit(byte)).count();
    let before = count(text);
    let after = match &text[before..] {
        [b'.', rest @ ..] => Some(count(rest)),
        _ => None,
    };
    let has_digits = before + after.unwrap_or(0) > 0;
    (before + after.map_or(0, |after| after + 1), has_digits)
}

/// The length of an exponent with at least one digit.
fn exponent_len(text: &[u8], letter: u8) -> usize {
    let [first, rest @ ..] = text else { return 0 };
    if !first.eq_ignore_ascii_case(&letter) {
        return 0;
    }
    let sign = usize::from(matches!(rest.first(), Some(b'+' | b'-')));
    match rest[sign..].iter().take_while(|byte| byte.is_ascii_digit()).count() {
        0 => 0,
        digits => 1 + sign + digits,
    }
}

/// `0x` with hexadecimal digits, and a power of two behind `p`.
fn hexadecimal(text: &[u8]) -> Option<(f64, usize)> {
    let [b'0', b'x' | b'X', rest @ ..] = text else { return None };
    let (len, has_digits) = mantissa_len(rest, u8::is_ascii_hexdigit);
    if !has_digits {
        return None;
    }
    // 60 bits hold more than a double does; of what comes after, only whether it is nothing.
    let (mut bits, mut power, mut is_behind_point) = (0_u64, 0_i64, false);
    for byte in &rest[..len] {
        let Some(digit) = char::from(*byte).to_digit(16) else {
            is_behind_point = true;
            continue;
        };
        if bits >> 60 == 0 {
            bits = bits << 4 | u64::from(digit);
            power -= if is_behind_point { 4 } else { 0 };
        } else {
            bits |= u64::from(digit != 0);
            power += if is_behind_point { 0 } else { 4 };
        }
    }
    let exponent = exponent_len(&rest[len..], b'p');
    if exponent > 0 {
        let digits = &rest[len + 1..len + exponent];
        let text = std::str::from_utf8(digits).ok()?.trim_start_matches('+');
        let huge = if text.starts_with('-') { i64::from(i32::MIN) } else { i64::from(i32::MAX) };
        power = power.saturating_add(text.parse::<i32>().map_or(huge, i64::from));
    }
    Some((scale(bits, power), 2 + len + exponent))
}

/// `bits * 2^power`, rounded once, to the nearest even.
fn scale(bits: u64, power: i64) -> f64 {
    /// The power of a double's last bit where it is smallest.
    const POWER_MIN: i64 = -1_074;
    let width = i64::from(u64::BITS - bits.leading_zeros());
    if bits == 0 || width + power < POWER_MIN {
        return 0.0;
    }
    if width + power > 1_024 {
        return f64::INFINITY;
    }
    // As many bits as the double has at this height, and where they end.
    let last = (power + width - 53).max(POWER_MIN);
    let dropped = last - power;
    let kept = if dropped <= 0 {
        // What was dropped counts as a last bit: nothing is dropped here.
        return bits as f64 * two_to(power);
    } else if dropped >= 64 {
        0
    } else {
        bits >> dropped
    };
    let half = 1_u64 << (dropped - 1).min(63);
    let rest = if dropped >= 64 { bits } else { bits & ((1 << dropped) - 1) };
    let rounds_up = rest > half || rest == half && kept & 1 == 1;
    (kept + u64::from(rounds_up)) as f64 * two_to(last)
}

/// Powers of two that may be smaller than what a double can be on its own.
fn two_to(power: i64) -> f64 {
    let power = power as i32;
    if power < -1_000 { 2_f64.powi(-1_000) * 2_f64.powi(power + 1_000) } else { 2_f64.powi(power) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Lua reads numbers with C's own function.
        #[test]
        fn numbers_are_read_as_c_reads_them(
            text in "[+-]?(0x[0-9a-f]{0,20}[.]?[0-9a-f]{0,20}(p[+-]?[0-9]{1,4})?\
                |[0-9]{0,25}[.]?[0-9]{0,25}(e[+-]?[0-9]{1,3})?|inf|nan)",
        ) {
            let lua = mlua::Lua::new();
            let value = mlua::Value::String(lua.create_string(&text).expect("a string"));
            // What Lua does not read as a whole, C may have read in part.
            if let Some(expected) = lua.coerce_number(value).expect("no error") {
                let (number, len) = parse_number(text.as_bytes()).expect("C reads it");
                prop_assert_eq!(len, text.len());
                prop_assert!(number.to_bits() == expected.to_bits() || expected.is_nan());
            }
        }
    }
}
