//! Documents that people write: read strictly, and every complaint with its place.
//!
//! YAML, and with it JSON. The library reads a key that stands twice as its last value, or tells
//! no place for it, and spends time in the square of how deep brackets nest; both are looked at
//! here. Complaints that only show when a whole document is understood name their place by the
//! path of keys, which [`locate()`] turns into line and column.
//!
//! Invariant: time is about linear in the bytes of a document, whatever stands in it. The caller
//! bounds the bytes.

mod complaint;
mod keys;
mod locate;
mod nesting;

use serde::de::{DeserializeOwned, IgnoredAny};

pub(crate) use complaint::{Complaint, nearest};
pub(crate) use locate::{Step, locate};

/// Reads a document as `T`; the first complaint where it is none.
pub(crate) fn read<T: DeserializeOwned>(text: &str) -> Result<T, Complaint> {
    nesting::check(text)?;
    keys::check_aliases(text)?;
    let err = match T::deserialize(serde_yaml::Deserializer::from_str(text)) {
        Ok(document) => return Ok(document),
        Err(err) => err,
    };
    // JSON may write a character as two escapes, which the YAML library does not know.
    if serde_json::from_str::<IgnoredAny>(text).is_ok()
        && serde_yaml::from_str::<IgnoredAny>(text).is_err()
    {
        return serde_json::from_str(text).map_err(Complaint::from);
    }
    Err(keys::twice(text).unwrap_or_else(|| Complaint::from(err)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    use serde_yaml::Value;

    type Numbers = BTreeMap<String, u64>;

    fn complaint(text: &str) -> String {
        read::<Numbers>(text).expect_err(text).to_string()
    }

    #[test]
    fn complaint_names_line_column_and_path() {
        assert_eq!(
            complaint("a: 1\nb: lots\n"),
            "2:4: b: invalid type: string \"lots\", expected u64"
        );
        let open = read::<Value>("a: 1\nb: {c: [1\n").expect_err("a bracket stays open");
        assert_eq!((open.line, open.column), (3, 1), "{open}");
    }

    #[test]
    fn two_documents_are_none() {
        let text = complaint("a: 1\n---\nb: 2\n");
        assert_eq!(text, "1:1: a second document begins here or below; write one");
    }

    #[test]
    fn json_with_a_character_as_two_escapes_is_read() {
        let read: BTreeMap<String, String> =
            read("{\n\t\"a\": \"\\ud83d\\ude00\"\n}").expect("it is JSON");
        assert_eq!(read["a"], "\u{1f600}");
        let text = complaint("{\"a\": \"\\ud83d\\ude00\"}");
        assert!(text.contains("expected u64"), "{text}");
    }

    #[test]
    fn hostile_documents_are_answered_in_time_linear_in_their_bytes() {
        // One doubles a list thirty times, the others nest as deep as their bytes go.
        let mut bomb = "a0: &a0 [x, x]\n".to_owned();
        for level in 1..30 {
            let before = level - 1;
            let line = format!("a{level}: &a{level} [*a{before}, *a{before}]\n");
            bomb.push_str(&line);
        }
        let deep = 1 << 18;
        let hostile = [
            bomb,
            "[".repeat(deep),
            "{a: ".repeat(deep / 4),
            "[&a ".repeat(deep / 4),
            "- ".repeat(deep / 2),
            "? ".repeat(deep / 2),
            "'".repeat(deep - 1),
            "a: &a [*a]".to_owned(),
        ];
        for text in hostile {
            assert!(read::<Value>(&text).is_err(), "{}", &text[..text.len().min(40)]);
        }
    }
}
