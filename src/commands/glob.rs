//! Glob patterns as Redis matches them: `*`, `?`, `[a-z]`, `[^a-z]`, and `\` before a byte that
//! is meant as it is.
//!
//! Only the last `*` seen is ever tried again, so a match costs at most the product of both
//! lengths, whatever pattern a client sends.

/// Whether letters of either case are the same.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Case {
    Exact,
    Ignored,
}

impl Case {
    fn fold(self, byte: u8) -> u8 {
        match self {
            Self::Exact => byte,
            Self::Ignored => byte.to_ascii_lowercase(),
        }
    }
}

pub(super) fn matches(pattern: &[u8], text: &[u8], case: Case) -> bool {
    let (mut rest, mut left) = (pattern, text);
    // Behind the last star, and the text that it has not swallowed yet.
    let mut star: Option<(&[u8], &[u8])> = None;
    loop {
        if let Some((b'*', behind)) = rest.split_first() {
            star = Some((behind, left));
            rest = behind;
            continue;
        }
        match left.split_first() {
            None => return rest.is_empty(),
            Some((&byte, after)) => {
                if let Some(behind) = one(rest, byte, case) {
                    (rest, left) = (behind, after);
                    continue;
                }
            }
        }
        let Some((behind, from)) = star else { return false };
        let Some((_, from)) = from.split_first() else { return false };
        star = Some((behind, from));
        (rest, left) = (behind, from);
    }
}

/// Matches one byte against the head of a pattern, which is no star. Returns what is left of it.
fn one(pattern: &[u8], byte: u8, case: Case) -> Option<&[u8]> {
    match pattern {
        [] => None,
        [b'?', rest @ ..] => Some(rest),
        [b'[', rest @ ..] => class(rest, byte, case),
        [b'\\', literal, rest @ ..] | [literal, rest @ ..] => {
            (case.fold(*literal) == case.fold(byte)).then_some(rest)
        }
    }
}

/// A class behind its bracket. One that is never closed ends with the pattern.
fn class(pattern: &[u8], byte: u8, case: Case) -> Option<&[u8]> {
    let byte = case.fold(byte);
    let (negated, mut rest) = match pattern {
        [b'^', rest @ ..] => (true, rest),
        rest => (false, rest),
    };
    let mut found = false;
    loop {
        let (first, last);
        (first, last, rest) = match rest {
            [] => break,
            [b']', after @ ..] => {
                rest = after;
                break;
            }
            [b'\\', literal, after @ ..] => (*literal, *literal, after),
            [first, b'-', last, after @ ..] => (*first.min(last), *first.max(last), after),
            [literal, after @ ..] => (*literal, *literal, after),
        };
        found |= (case.fold(first)..=case.fold(last)).contains(&byte);
    }
    (found != negated).then_some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_as_in_redis() {
        let rows: [(&str, &[&str], &[&str]); 13] = [
            ("*", &["", "a", "abc"], &[]),
            ("a*c", &["ac", "abc", "abbc", "acac"], &["a", "c", "acb"]),
            ("h?llo", &["hello", "hxllo"], &["hllo", "heello"]),
            ("h[ae]llo", &["hello", "hallo"], &["hillo"]),
            ("h[^e]llo", &["hallo"], &["hello", "hllo"]),
            ("h[a-c]llo", &["hbllo"], &["hdllo"]),
            ("[c-a]", &["b"], &["d"]),
            ("h\\*llo", &["h*llo"], &["hello"]),
            ("[\\]x]", &["]", "x"], &["\\"]),
            ("[abc", &["a", "c"], &["[abc", "d"]),
            ("a\\", &["a\\"], &["a"]),
            ("[]", &[], &["", "]", "a"]),
            ("", &[""], &["a"]),
        ];
        for (pattern, right, wrong) in rows {
            for (texts, expected) in [(right, true), (wrong, false)] {
                for text in texts {
                    let found = matches(pattern.as_bytes(), text.as_bytes(), Case::Exact);
                    assert_eq!(found, expected, "{pattern} on {text:?}");
                }
            }
        }
    }

    #[test]
    fn letters_of_either_case_match_where_case_is_ignored() {
        for pattern in ["MAX*", "max[A-Z]*", "MA?M*"] {
            assert!(matches(pattern.as_bytes(), b"maxmemory", Case::Ignored), "{pattern}");
            assert!(!matches(b"MAX*", b"maxmemory", Case::Exact));
        }
    }

    #[test]
    fn many_stars_do_not_take_for_ever() {
        let pattern = "a*".repeat(1_000) + "b";
        assert!(!matches(pattern.as_bytes(), &[b'a'; 10_000], Case::Exact));
    }
}
