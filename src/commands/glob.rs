//! Glob patterns as Redis matches them: `*`, `?`, `[a-z]`, `[^a]`, and `\` before any of these.
//!
//! A star first stands for nothing and is lengthened by one byte each time what follows does not
//! fit; only the last star is, which is enough. So a match takes at most the product of the two
//! lengths, where a recursive matcher can take longer than anyone waits.
//!
//! Redis's own corners are kept: a class that is never closed ends with the pattern, `[a-]` is a
//! range, the ends of a range may stand in either order and are compared as signed bytes, no
//! pattern but the empty one and `*` matches an empty text, and one of too many stars none at all.

/// Stars with something else behind them: Redis nests no deeper, and then finds nothing.
const STARS_MAX: usize = 1_000;

/// Whether all of `text` matches all of `pattern`.
pub(super) fn matches(pattern: &[u8], text: &[u8]) -> bool {
    if pattern == b"*" {
        return true;
    }
    if text.is_empty() {
        return pattern.is_empty();
    }
    let (mut at, mut pos, mut stars) = (0, 0, 0);
    // Behind the last star: the place in the pattern, and in the text where the star ends.
    let mut star: Option<(usize, usize)> = None;
    while let Some(&byte) = text.get(pos) {
        let rest = &pattern[at..];
        match rest.first() {
            Some(b'*') => {
                at += 1;
                star = Some((at, pos));
                // Stars side by side are one.
                stars += usize::from(rest.get(1).is_some_and(|next| *next != b'*'));
                if stars > STARS_MAX {
                    return false;
                }
                continue;
            }
            Some(_) => {
                let (fits, length) = first(rest, byte);
                if fits {
                    at += length;
                    pos += 1;
                    continue;
                }
            }
            None => {}
        }
        let Some((behind, end)) = star else { return false };
        star = Some((behind, end + 1));
        (at, pos) = (behind, end + 1);
    }
    pattern[at..].iter().all(|byte| *byte == b'*')
}

/// Whether the pattern's first element, which is no star, fits a byte; and its length.
fn first(pattern: &[u8], byte: u8) -> (bool, usize) {
    match pattern {
        [b'?', ..] => (true, 1),
        [b'[', b'^', members @ ..] => {
            let (fits, length) = class(members, byte);
            (!fits, 2 + length)
        }
        [b'[', members @ ..] => {
            let (fits, length) = class(members, byte);
            (fits, 1 + length)
        }
        [b'\\', literal, ..] => (*literal == byte, 2),
        [literal, ..] => (*literal == byte, 1),
        [] => (false, 0),
    }
}

/// Whether a byte is among the members of a class; and their length, the bracket included.
fn class(members: &[u8], byte: u8) -> (bool, usize) {
    let mut fits = false;
    let mut rest = members;
    loop {
        let length = match rest {
            [] => return (fits, members.len()),
            [b'\\', literal, ..] => {
                fits |= *literal == byte;
                2
            }
            [b']', ..] => return (fits, members.len() - rest.len() + 1),
            [from, b'-', to, ..] => {
                let [from, to, byte] = [*from, *to, byte].map(u8::cast_signed);
                fits |= (from.min(to)..=from.max(to)).contains(&byte);
                3
            }
            [literal, ..] => {
                fits |= *literal == byte;
                1
            }
        };
        rest = &rest[length..];
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn patterns_match_as_redis_matches_them() {
        let table: [(&str, &str, bool); 44] = [
            ("*", "", true),
            ("**", "", false),
            ("", "", true),
            ("", "a", false),
            ("?", "", false),
            ("*", "anything", true),
            ("a*", "a", true),
            ("a**", "a", true),
            ("*a", "banana", true),
            ("*an*an*", "banana", true),
            ("*an*an*an*", "banana", false),
            ("h?llo", "hello", true),
            ("h?llo", "hllo", false),
            ("h*llo", "heeeello", true),
            ("h[ae]llo", "hallo", true),
            ("h[ae]llo", "hillo", false),
            ("h[^e]llo", "hallo", true),
            ("h[^e]llo", "hello", false),
            ("h[a-b]llo", "hbllo", true),
            ("h[b-a]llo", "hallo", true),
            ("h[a-b]llo", "hcllo", false),
            ("\\*", "*", true),
            ("\\*", "a", false),
            ("\\", "\\", true),
            ("a\\", "a\\", true),
            ("[\\]]", "]", true),
            ("[\\]]", "\\", false),
            ("[abc", "b", true),
            ("[abc", "d", false),
            ("[a-", "-", true),
            ("[a-]", "]", true),
            ("[a-]", "a", true),
            ("[a-]x", "a", true),
            ("[a-]", "b", false),
            ("[", "[", false),
            ("[^", "x", true),
            ("[]", "a", false),
            ("[]a]", "a]", false),
            ("[^]a", "xa", true),
            ("[^^]", "^", false),
            ("[\\", "\\", true),
            ("[a\\", "\\", true),
            ("user:*:limit", "user:42:limit", true),
            ("user:*:limit", "user:42:limits", false),
        ];
        for (pattern, text, expected) in table {
            let found = matches(pattern.as_bytes(), text.as_bytes());
            assert_eq!(found, expected, "{pattern} {text}");
        }
    }

    #[test]
    fn ranges_compare_signed_bytes() {
        assert!(matches(b"[a-\xff]", b"A") && matches(b"[a-\xff]", b"\xff"));
        assert!(!matches(b"[a-\xff]", b"b") && !matches(b"[a-\xff]", b"\xfe"));
    }

    #[test]
    fn many_stars_take_no_longer_than_one() {
        let pattern = [b"a*".repeat(1_000), b"b".to_vec()].concat();
        assert!(!matches(&pattern, &b"a".repeat(20_000)));
    }

    #[test]
    fn more_than_a_thousand_stars_match_nothing() {
        let text = b"a".repeat(3_000);
        for (pattern, most) in [("*?", 1_000), ("**a", 1_000), ("a*", 1_001)] {
            let pattern = pattern.as_bytes();
            assert!(matches(&pattern.repeat(most), &text), "{most}");
            assert!(!matches(&pattern.repeat(most + 1), &text), "{most} and one");
        }
    }

    /// By trying every length of every star.
    fn slowly(pattern: &[u8], text: &[u8]) -> bool {
        match (pattern, text) {
            ([b'*', rest @ ..], _) => (0..=text.len()).any(|skip| slowly(rest, &text[skip..])),
            ([], []) => true,
            ([], _) | (_, []) => false,
            (_, [byte, others @ ..]) => {
                let (fits, length) = first(pattern, *byte);
                fits && slowly(&pattern[length..], others)
            }
        }
    }

    proptest! {
        #[test]
        fn matches_what_trying_everything_matches(
            pattern in r"[ab*?\[\]^\\-]{0,12}",
            text in r"[ab\]\\^-]{1,8}",
        ) {
            let (pattern, text) = (pattern.as_bytes(), text.as_bytes());
            prop_assert_eq!(matches(pattern, text), slowly(pattern, text));
        }

        #[test]
        fn arbitrary_bytes_never_panic(
            pattern in proptest::collection::vec(any::<u8>(), 0..40),
            text in proptest::collection::vec(any::<u8>(), 0..40),
        ) {
            let _ = matches(&pattern, &text);
        }
    }
}
