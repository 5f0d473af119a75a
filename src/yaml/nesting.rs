//! Refuses a document that nests too deep, before the library reads it.
//!
//! The library looks at every open bracket again for each word, and knows the depth only once
//! it has read everything: a megabyte of `[` would take it half a minute. This look is one pass
//! that knows just enough of YAML: a bracket counts where a value can begin, or anywhere within
//! another bracket; text in quotes and comments does not. It may count a bracket of a plain text
//! too many, so the bound is far above what a policy needs.

use super::complaint::Complaint;

/// Brackets within brackets; a policy needs five.
const DEPTH_MAX: usize = 64;

pub(super) fn check(text: &str) -> Result<(), Complaint> {
    let bytes = text.as_bytes();
    let mut depth = 0_usize;
    // Whether a value can begin here, as after a space.
    let mut begins = true;
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'"' | b'\'' if begins => {
                at = end_of_quote(bytes, at);
                begins = false;
                continue;
            }
            b'#' if begins => {
                at += memchr::memchr(b'\n', &bytes[at..]).unwrap_or(bytes.len() - at);
                continue;
            }
            b'[' | b'{' if begins || depth > 0 => {
                depth += 1;
                if depth > DEPTH_MAX {
                    let deep = format!("brackets nest deeper than {DEPTH_MAX}");
                    return Err(Complaint::at_byte(bytes, at, deep));
                }
                begins = true;
            }
            b']' | b'}' => {
                depth = depth.saturating_sub(1);
                begins = false;
            }
            b' ' | b'\t' | b'\n' | b'\r' => begins = true,
            b',' | b':' => begins = depth > 0,
            _ => begins = false,
        }
        at += 1;
    }
    Ok(())
}

/// Behind the quote that closes the one at `at`, or the end of the text.
fn end_of_quote(bytes: &[u8], mut at: usize) -> usize {
    let quote = bytes[at];
    at += 1;
    while let Some(&byte) = bytes.get(at) {
        at += 1;
        let is_escape = byte == b'\\' && quote == b'"';
        let is_doubled = byte == b'\'' && quote == b'\'' && bytes.get(at) == Some(&b'\'');
        if is_escape || is_doubled {
            at += 1;
        } else if byte == quote {
            break;
        }
    }
    at.min(bytes.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brackets_within_brackets_are_counted_where_they_are_meant() {
        let deep = "[".repeat(DEPTH_MAX + 1);
        for hostile in [deep.clone(), format!("a:\n  - {deep}"), "{a: ".repeat(65)] {
            assert!(check(&hostile).is_err(), "{hostile}");
        }
        assert_eq!(check(&format!("a:\n  {deep}")).expect_err("deep").column, 67);
        let quoted = [format!("a: \"{deep}\""), format!("a: '{deep}'"), format!("# {deep}")];
        for harmless in quoted {
            assert_eq!(check(&harmless), Ok(()));
        }
        let many = "- endpoint: /a[[[[\n- {a: [1, 2], b: 'it''s [', c: \"\\\"[\"}\n".repeat(100);
        assert_eq!(check(&many), Ok(()));
    }
}
