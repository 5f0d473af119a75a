//! Errors of our own commands, and of what Redis leaves to its modules.
//!
//! They name the command or argument, quote the offending word, and say what would be right.

use std::borrow::Cow;

use super::error::Error;

/// Bytes of an offending word that are shown back.
const SHOWN_MAX: usize = 64;

impl Error {
    /// `name` in capitals; a subcommand as `CLIENT|LIST`.
    pub(crate) fn wrong_arity(name: &str) -> Self {
        Self::WrongArity(Cow::Owned(name.to_ascii_lowercase()))
    }

    /// A number that no 32 bits hold, where Redis wants one.
    pub(crate) fn out_of_range(min: i64, max: i64) -> Self {
        Self::text(format!("value is out of range, value must between {min} and {max}"))
    }

    /// An argument that is not what it should be.
    pub(crate) fn bad_argument(name: &'static str, word: &[u8], right: &str) -> Self {
        Self::argument(name, format!("{right}, not '{}'", shown(word)))
    }

    /// A word that the command does not know.
    pub(crate) fn bad_word(command: &str, word: &[u8], right: &str) -> Self {
        Self::text(format!("{command}: unknown option '{}', expected {right}", shown(word)))
    }

    /// An option at the end of the request whose value is missing.
    pub(crate) fn missing_value(command: &str, word: &[u8], right: &str) -> Self {
        Self::text(format!("{command}: '{}' needs a value, expected {right}", shown(word)))
    }

    pub(crate) fn hello_option(word: &[u8]) -> Self {
        Self::text(format!("Syntax error in HELLO option '{}'", shown(word)))
    }

    pub(crate) fn key_too_long(len: usize, max: usize) -> Self {
        Self::text(format!("key: {len} bytes are more than key_bytes_max ({max})"))
    }

    /// The code that clients dispatch on: the first word.
    pub(crate) fn code(&self) -> Cow<'static, str> {
        match self {
            Self::Text { code, .. } => Cow::Borrowed(code),
            other => {
                let line = other.to_string();
                Cow::Owned(line.split(' ').next().unwrap_or_default().to_owned())
            }
        }
    }
}

fn shown(word: &[u8]) -> String {
    let cut = word.get(..SHOWN_MAX).unwrap_or(word);
    String::from_utf8_lossy(cut).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_name_the_argument_the_word_and_what_is_right() {
        let error = Error::bad_argument("limit", b"ten", "expected a whole number");
        assert_eq!(error.to_string(), "ERR limit: expected a whole number, not 'ten'");
        assert_eq!(error.code(), "ERR");
        assert_eq!(Error::WrongType.code(), "WRONGTYPE");
    }
}
