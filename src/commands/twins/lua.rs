//! What Lua makes of numbers and booleans, where a twin has to make the same.

use crate::lua::put_number;
use crate::protocol::Reply;

/// Digits that `tostring` writes.
const DIGITS: usize = 14;

/// `tostring` of a number.
pub(super) fn text(number: f64) -> Vec<u8> {
    let mut text = Vec::with_capacity(24);
    put_number(number, DIGITS, &mut text);
    text
}

/// `%` of two numbers.
pub(super) fn modulo(number: f64, by: f64) -> f64 {
    number - (number / by).floor() * by
}

/// `math.max`: the first where neither is larger.
pub(super) fn max(first: f64, second: f64) -> f64 {
    if second > first { second } else { first }
}

/// A boolean that a script returns, in the protocol that it begins with.
pub(super) fn boolean(value: bool, reply: &mut Reply<'_>) {
    if value { reply.integer(1) } else { reply.null() }
}

/// A number in digits, maybe with a point and an exponent, which C and Rust read alike. Not `-0`:
/// Lua writes it as another text.
pub(super) fn decimal(text: &[u8]) -> Option<f64> {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    let is_plain = digits.iter().all(|byte| byte.is_ascii_digit() || b".e+-".contains(byte))
        && digits.first().is_some_and(u8::is_ascii_digit);
    let number: f64 = std::str::from_utf8(text).ok().filter(|_| is_plain)?.parse().ok()?;
    (number != 0.0 || number.is_sign_positive()).then_some(number)
}
