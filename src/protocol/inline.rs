//! Inline commands: a line typed by hand, split into words the way a shell would.
//!
//! The rules are those of Redis. Words are parted by blanks. In double quotes `\n \r \t \b \a`,
//! `\xHH` and `\` before any other byte are escapes; in single quotes only `\'` is. A closing
//! quote ends the word, and a blank or the end must follow it.
//!
//! Unlike Redis, where a NUL ends the line for a C string's sake, it is a byte like any other.

use super::args::Span;

/// A quote was not closed, or was closed in the middle of a word.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Unbalanced;

/// Appends the words of `line` to `text`, and where each stands there to `spans`.
pub(super) fn split(
    line: &[u8],
    text: &mut Vec<u8>,
    spans: &mut Vec<Span>,
) -> Result<(), Unbalanced> {
    let mut rest = line;
    loop {
        let blanks = rest.iter().take_while(|byte| is_blank(**byte)).count();
        rest = &rest[blanks..];
        if rest.is_empty() {
            return Ok(());
        }
        let start = text.len() as u32;
        rest = word(rest, text)?;
        spans.push(Span { start, end: text.len() as u32 });
    }
}

/// Takes one word off the front, up to a blank or through its closing quote.
fn word<'a>(mut rest: &'a [u8], text: &mut Vec<u8>) -> Result<&'a [u8], Unbalanced> {
    loop {
        match rest {
            // Vertical tab and form feed part words but do not end one.
            [] | [b' ' | b'\t' | b'\r' | b'\n', ..] => return Ok(rest),
            [b'"', tail @ ..] => return closed(double_quoted(tail, text)?),
            [b'\'', tail @ ..] => return closed(single_quoted(tail, text)?),
            [byte, tail @ ..] => {
                text.push(*byte);
                rest = tail;
            }
        }
    }
}

fn closed(rest: &[u8]) -> Result<&[u8], Unbalanced> {
    match rest.first() {
        Some(byte) if !is_blank(*byte) => Err(Unbalanced),
        _ => Ok(rest),
    }
}

fn double_quoted<'a>(mut rest: &'a [u8], text: &mut Vec<u8>) -> Result<&'a [u8], Unbalanced> {
    loop {
        let (byte, tail) = match rest {
            [] => return Err(Unbalanced),
            [b'"', tail @ ..] => return Ok(tail),
            [b'\\', b'x', high, low, tail @ ..]
                if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() =>
            {
                (hex(*high) << 4 | hex(*low), tail)
            }
            [b'\\', escaped, tail @ ..] => (unescape(*escaped), tail),
            [byte, tail @ ..] => (*byte, tail),
        };
        text.push(byte);
        rest = tail;
    }
}

fn single_quoted<'a>(mut rest: &'a [u8], text: &mut Vec<u8>) -> Result<&'a [u8], Unbalanced> {
    loop {
        let (byte, tail) = match rest {
            [] => return Err(Unbalanced),
            [b'\'', tail @ ..] => return Ok(tail),
            [b'\\', b'\'', tail @ ..] => (b'\'', tail),
            [byte, tail @ ..] => (*byte, tail),
        };
        text.push(byte);
        rest = tail;
    }
}

fn unescape(escaped: u8) -> u8 {
    match escaped {
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'b' => 0x08,
        b'a' => 0x07,
        other => other,
    }
}

fn hex(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        _ => (digit | 0x20) - b'a' + 10,
    }
}

/// Blanks of the C locale.
fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | 0x09..=0x0d)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Result<Vec<Vec<u8>>, Unbalanced> {
        let (mut text, mut spans) = (Vec::new(), Vec::new());
        split(line.as_bytes(), &mut text, &mut spans)?;
        Ok(spans.iter().map(|span| text[span.start as usize..span.end as usize].to_vec()).collect())
    }

    #[test]
    fn words_are_parted_and_unescaped_as_redis_does() {
        let table: [(&str, &[&[u8]]); 14] = [
            ("", &[]),
            (" \t\x0b\x0c ", &[]),
            ("PING", &[b"PING"]),
            ("  set  a\tb  ", &[b"set", b"a", b"b"]),
            (r#"echo "a b""#, &[b"echo", b"a b"]),
            (r#"echo "\n\r\t\b\a\q\"\\""#, &[b"echo", b"\n\r\t\x08\x07q\"\\"]),
            (r#"echo "\x00\xfF\x4g\x""#, &[b"echo", b"\x00\xffx4gx"]),
            (r"echo 'a\nb\'c'", &[b"echo", br"a\nb'c"]),
            (r#"echo '"' "'""#, &[b"echo", b"\"", b"'"]),
            (r#"echo """#, &[b"echo", b""]),
            (r#"pre"fix ed""#, &[b"prefix ed"]),
            (r"back\slash", &[br"back\slash"]),
            ("a\x0bb", &[b"a\x0bb"]),
            ("nul\0in \0", &[b"nul\0in", b"\0"]),
        ];
        for (line, expected) in table {
            assert_eq!(words(line).expect(line), expected, "{line:?}");
        }
    }

    #[test]
    fn unbalanced_quotes_are_refused() {
        for line in [r#"""#, "'", r#""a"b"#, "'a'b", r#""a\""#, r"'a\'", r#"a "b" "c"#, r#""\"#] {
            assert_eq!(words(line), Err(Unbalanced), "{line:?}");
        }
    }
}
