//! Lua values as the words of a command.
//!
//! Strings go as they are; numbers as Redis 7.2 writes them: whole ones without a point, others
//! by the shortest text that reads back. Nothing else is a word.

use mlua::{MultiValue, Value};

use crate::protocol::{FloatText, OwnedArgs};

const NO_WORD: &str = "Lua redis lib command arguments must be strings or integers";

const TOO_LARGE: &str = "Too many bytes in the arguments of a command called from a script";

/// Bytes of all words, as of a client's request.
const WORDS_BYTES_MAX: usize = 1 << 30;

/// Whole numbers beyond this are written as doubles, with zeros for the digits they do not have.
const WHOLE_MAX: u64 = i64::MAX as u64 / 2;

/// Writes all values as words, or says what is wrong. One string can be many words, so that they
/// are more than Lua holds: `bytes_max` counts them all.
pub(super) fn fill(
    words: &mut OwnedArgs,
    values: &MultiValue,
    bytes_max: usize,
) -> Result<(), &'static str> {
    let mut room = bytes_max.min(WORDS_BYTES_MAX);
    for value in values {
        match value {
            Value::String(text) => {
                let text = text.as_bytes();
                room = room.checked_sub(text.len()).ok_or(TOO_LARGE)?;
                words.push(&text);
            }
            Value::Integer(number) => push_integer(words, *number),
            Value::Number(number) => push_number(words, *number),
            _ => return Err(NO_WORD),
        }
    }
    Ok(())
}

fn push_integer(words: &mut OwnedArgs, number: i64) {
    if number.unsigned_abs() > WHOLE_MAX {
        push_number(words, number as f64);
    } else {
        words.push(itoa::Buffer::new().format(number).as_bytes());
    }
}

fn push_number(words: &mut OwnedArgs, number: f64) {
    if number == 0.0 {
        words.push(b"0");
    } else if number.is_nan() && number.is_sign_negative() {
        words.push(b"-nan");
    } else {
        words.push(FloatText::new(number).as_bytes());
    }
}

/// A string or number as Lua's `tostring` writes it; `None` for other values.
pub(super) fn as_text(value: &Value) -> Option<Vec<u8>> {
    match value {
        Value::String(text) => Some(text.as_bytes().to_vec()),
        Value::Integer(_) | Value::Number(_) => value.to_string().ok().map(String::into_bytes),
        _ => None,
    }
}

/// A number, or a string that reads as one in Lua.
pub(super) fn as_number(value: &Value) -> Option<f64> {
    match value {
        Value::Integer(number) => Some(*number as f64),
        Value::Number(number) => Some(*number),
        Value::String(text) => {
            let text = text.to_str().ok()?;
            let text = text.trim();
            match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
                Some(hex) => u64::from_str_radix(hex, 16).ok().map(|number| number as f64),
                None => text.parse().ok(),
            }
        }
        _ => None,
    }
}
