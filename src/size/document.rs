//! How an amount stands in a document: as text, `64kb`, or as a bare number, 65536.

use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;

use serde::de::{self, Deserialize, Deserializer, Visitor};
use serde::ser::{Serialize, Serializer};

use super::{Bytes, BytesMax, OrAuto};

impl Serialize for Bytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let text = self.to_string();
        match text.parse::<u64>() {
            Ok(bare) => serializer.serialize_u64(bare),
            Err(_has_a_unit) => serializer.serialize_str(&text),
        }
    }
}

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TextVisitor { expecting: "a size", read: PhantomData })
    }
}

impl Serialize for BytesMax {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.bytes().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for BytesMax {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TextVisitor { expecting: "a size", read: PhantomData })
    }
}

impl<T: Serialize> Serialize for OrAuto<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Auto => serializer.serialize_str("auto"),
            Self::Exactly(amount) => amount.serialize(serializer),
        }
    }
}

impl<T: FromStr<Err: fmt::Display>> FromStr for OrAuto<T> {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.eq_ignore_ascii_case("auto") {
            return Ok(Self::Auto);
        }
        text.parse().map(Self::Exactly).map_err(|err: T::Err| format!("{err}, or the word auto"))
    }
}

impl<'de, T: FromStr<Err: fmt::Display>> Deserialize<'de> for OrAuto<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer
            .deserialize_any(TextVisitor { expecting: "an amount or auto", read: PhantomData })
    }
}

/// Reads text and whole numbers alike by way of `FromStr`.
struct TextVisitor<T> {
    expecting: &'static str,
    read: PhantomData<T>,
}

impl<T: FromStr<Err: fmt::Display>> Visitor<'_> for TextVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.expecting)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
        text.parse().map_err(E::custom)
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<T, E> {
        self.visit_str(&number.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read<T: de::DeserializeOwned>(text: &str) -> Result<T, String> {
        serde_yaml::from_str(text).map_err(|err| err.to_string())
    }

    #[test]
    fn size_in_a_document_is_text_or_number() {
        assert_eq!(read("64kb"), Ok(Bytes::new(65_536)));
        assert_eq!(read("65535"), Ok(Bytes::new(65_535)));
        assert_eq!(read("'512'"), Ok(Bytes::new(512)));
        for wrong in ["-1", "1.5", "[1]", "many", "true"] {
            assert!(read::<Bytes>(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn amount_may_be_left_to_the_machine() {
        assert_eq!(read("auto"), Ok(OrAuto::<Bytes>::Auto));
        assert_eq!(read("1gb"), Ok(OrAuto::Exactly(Bytes::new(1 << 30))));
        assert_eq!(read("7379"), Ok(OrAuto::Exactly(7_379_u16)));
        let complaint = read::<OrAuto<u16>>("70000").expect_err("a port has 16 bits");
        assert!(complaint.contains("or the word auto"), "{complaint}");
    }

    #[test]
    fn amounts_read_back_what_they_write() {
        for text in ["64kb\n", "512\n", "auto\n"] {
            let amount: OrAuto<Bytes> = read(text).expect(text);
            assert_eq!(serde_yaml::to_string(&amount).expect("an amount is text"), text);
        }
    }
}
