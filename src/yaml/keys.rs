//! Finds a key that stands twice in one mapping, at any depth.
//!
//! Only asked once a document has been refused: reading into a type sees that a key stands twice
//! but not where. The complaint is raised while the library stands on the second of the two,
//! which is how it learns the place.

use std::collections::HashSet;
use std::fmt;

use serde::de::{self, DeserializeSeed, Deserializer, EnumAccess, IgnoredAny, MapAccess};
use serde::de::{SeqAccess, VariantAccess, Visitor};

use super::complaint::Complaint;

/// The complaint about the first such key.
pub(super) fn twice(text: &str) -> Option<Complaint> {
    let mut found = false;
    let err =
        Node { found: &mut found }.deserialize(serde_yaml::Deserializer::from_str(text)).err()?;
    found.then(|| Complaint::from(err))
}

struct Node<'a> {
    found: &'a mut bool,
}

impl<'de> DeserializeSeed<'de> for Node<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Node<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("anything")
    }

    fn visit_unit<E: de::Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_none<E: de::Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E: de::Error>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E: de::Error>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E: de::Error>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u128<E: de::Error>(self, _: u128) -> Result<(), E> {
        Ok(())
    }

    fn visit_i128<E: de::Error>(self, _: i128) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E: de::Error>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E: de::Error>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while list.next_element_seed(Node { found: &mut *self.found })?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut seen = HashSet::new();
        while map.next_key_seed(Key { seen: &mut seen, found: &mut *self.found })?.is_some() {
            map.next_value_seed(Node { found: &mut *self.found })?;
        }
        Ok(())
    }

    fn visit_enum<A: EnumAccess<'de>>(self, tagged: A) -> Result<(), A::Error> {
        let (IgnoredAny, value) = tagged.variant()?;
        value.newtype_variant_seed(self)
    }
}

struct Key<'a> {
    seen: &'a mut HashSet<String>,
    found: &'a mut bool,
}

impl<'de> DeserializeSeed<'de> for Key<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for Key<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E: de::Error>(self, key: &str) -> Result<(), E> {
        if self.seen.insert(key.to_owned()) {
            return Ok(());
        }
        *self.found = true;
        Err(E::custom(format!("`{key}` stands here a second time")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_that_stands_twice_is_told_at_any_depth() {
        let rows = [
            ("a: 1\nb: 2\na: 3\n", "3:1: `a` stands here a second time"),
            ("a:\n  - b: 1\n    c: {d: 1, d: 2}\n", "3:15: a[0].c: `d` stands here a second time"),
            ("{\"a\": {\"b\": 1,\n \"b\": 2}}", "2:2: a: `b` stands here a second time"),
            ("a: !t {b: 1, b: 2}\n", "1:14: a: `b` stands here a second time"),
            ("'a': 1\n\"a\": 2\n", "2:1: `a` stands here a second time"),
        ];
        for (text, complaint) in rows {
            assert_eq!(twice(text).expect(text).to_string(), complaint);
        }
        for once in ["a: {b: 1}\nb: {b: 1}\n", "- a: 1\n- a: 1\n", "a: [", "1: 2"] {
            assert_eq!(twice(once), None, "{once}");
        }
    }
}
