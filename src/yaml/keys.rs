//! Finds a key that stands twice in one mapping, at any depth; and aliases that repeat too much.
//!
//! The first is only asked once a document has been refused: reading into a type sees that a key
//! stands twice but not where. The complaint is raised while the library stands on the second of
//! the two, which is how it learns the place. The second is asked of documents with anchors: the
//! library reads a hundred times what is written, which is more than is worth remembering.

use std::collections::HashSet;
use std::fmt;

use serde::de::{self, DeserializeSeed, Deserializer, EnumAccess, IgnoredAny, MapAccess};
use serde::de::{SeqAccess, VariantAccess, Visitor};

use super::complaint::Complaint;

/// Keys and values of a document with anchors: as many as it has bytes, as without, but so many
/// at least.
const ALIASED_NODES_MIN: usize = 65_536;

/// The complaint about the first key that stands twice.
pub(super) fn twice(text: &str) -> Option<Complaint> {
    let mut walk = Walk { nodes_left: usize::MAX, found: false };
    let err = Node(&mut walk).deserialize(serde_yaml::Deserializer::from_str(text)).err()?;
    walk.found.then(|| Complaint::from(err))
}

/// Refuses a document that becomes far more than is written.
pub(super) fn check_aliases(text: &str) -> Result<(), Complaint> {
    if !text.contains('&') {
        return Ok(());
    }
    let mut walk = Walk { nodes_left: text.len().max(ALIASED_NODES_MIN), found: false };
    let walked = Node(&mut walk).deserialize(serde_yaml::Deserializer::from_str(text));
    match walked {
        Err(err) if walk.nodes_left == 0 => Err(Complaint::from(err)),
        // What else is wrong is told by who reads the document.
        Ok(()) | Err(_) => Ok(()),
    }
}

struct Walk {
    nodes_left: usize,
    found: bool,
}

impl Walk {
    fn step<E: de::Error>(&mut self) -> Result<(), E> {
        self.nodes_left = self.nodes_left.saturating_sub(1);
        if self.nodes_left == 0 {
            return Err(E::custom("aliases repeat too much; write it out"));
        }
        Ok(())
    }
}

struct Node<'a>(&'a mut Walk);

impl<'de> DeserializeSeed<'de> for Node<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        self.0.step()?;
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
        while list.next_element_seed(Node(&mut *self.0))?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut seen = HashSet::new();
        while map.next_key_seed(Key { seen: &mut seen, walk: &mut *self.0 })?.is_some() {
            map.next_value_seed(Node(&mut *self.0))?;
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
    walk: &'a mut Walk,
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
        self.walk.found = true;
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

    #[test]
    fn aliases_may_repeat_a_little() {
        let repeated = |times: usize| {
            let list = "x, ".repeat(1_000);
            format!("a: &a [{list}]\nb: [{}]\n", "*a, ".repeat(times))
        };
        assert_eq!(check_aliases(&repeated(50)), Ok(()));
        let refused = check_aliases(&repeated(90)).expect_err("ninety thousand");
        assert_eq!(refused.text, "b[64]: aliases repeat too much; write it out");
    }
}
