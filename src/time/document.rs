//! How a span stands in a document: as text with its unit, `30s`.
//!
//! A bare number is refused, save 0: people who come from Redis mean seconds by it, and the
//! native commands mean milliseconds.

use std::fmt;

use serde::de::{self, Deserialize, Deserializer, Unexpected, Visitor};
use serde::ser::{Serialize, Serializer};

use super::Duration;

impl Serialize for Duration {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Duration {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(SpanVisitor)
    }
}

struct SpanVisitor;

impl Visitor<'_> for SpanVisitor {
    type Value = Duration;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number with a unit such as 500ms, 30s, 5m, 1h or 1d")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Duration, E> {
        let bare = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        if bare && text.bytes().any(|byte| byte != b'0') {
            return Err(E::invalid_value(Unexpected::Str(text), &self));
        }
        text.parse().map_err(E::custom)
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<Duration, E> {
        match number {
            0 => Ok(Duration::ZERO),
            bare => Err(E::invalid_value(Unexpected::Unsigned(bare), &self)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Duration, String> {
        serde_yaml::from_str(text).map_err(|err| err.to_string())
    }

    #[test]
    fn span_in_a_document_needs_its_unit() {
        assert_eq!(read("30s"), Ok(Duration::from_secs(30)));
        assert_eq!(read("0"), Ok(Duration::ZERO));
        assert_eq!(read("0s"), Ok(Duration::ZERO));
        for bare in ["300", "'300'", "1.5", "-1", "30 s", "''"] {
            let complaint = read(bare).expect_err(bare);
            assert!(complaint.contains("30s, 5m"), "{bare}: {complaint}");
        }
    }

    #[test]
    fn span_reads_back_what_it_writes() {
        let span = Duration::from_millis(1_500);
        assert_eq!(serde_yaml::to_string(&span).expect("a span is text"), "1500ms\n");
        assert_eq!(read("1500ms"), Ok(span));
    }
}
