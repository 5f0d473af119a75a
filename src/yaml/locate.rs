//! The place of a value, found by its path.
//!
//! The library tells places only with its complaints; so the document is read once more, and a
//! complaint is raised on arrival. That happens only for a document that is refused anyway.

use std::fmt;

use serde::de::{self, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::complaint::Complaint;

/// One step down into a document.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Step {
    Key(String),
    Index(usize),
}

/// Line and column of the value at the end of `path`, or of the nearest one around it that is
/// written.
pub(crate) fn locate(text: &str, path: &[Step]) -> (usize, usize) {
    let place = |length: usize| {
        let mut arrived = false;
        let walk = Walk { path: &path[..length], arrived: &mut arrived };
        let err = walk.deserialize(serde_yaml::Deserializer::from_str(text)).err()?;
        let Complaint { line, column, .. } = Complaint::from(err);
        arrived.then_some((line, column))
    };
    (0..=path.len()).rev().find_map(place).unwrap_or((1, 1))
}

struct Walk<'a> {
    path: &'a [Step],
    arrived: &'a mut bool,
}

impl Walk<'_> {
    fn arrive<E: de::Error>(self) -> Result<(), E> {
        if !self.path.is_empty() {
            return Ok(());
        }
        *self.arrived = true;
        Err(E::custom("here"))
    }
}

impl<'de> DeserializeSeed<'de> for Walk<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Walk<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_bool<E: de::Error>(self, _: bool) -> Result<(), E> {
        self.arrive()
    }

    fn visit_u64<E: de::Error>(self, _: u64) -> Result<(), E> {
        self.arrive()
    }

    fn visit_str<E: de::Error>(self, _: &str) -> Result<(), E> {
        self.arrive()
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        let Some((Step::Index(wanted), rest)) = self.path.split_first() else {
            return self.arrive();
        };
        for _ in 0..*wanted {
            list.next_element::<IgnoredAny>()?;
        }
        list.next_element_seed(Walk { path: rest, arrived: self.arrived })?;
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let Some((Step::Key(wanted), rest)) = self.path.split_first() else {
            return self.arrive();
        };
        while let Some(key) = map.next_key::<String>()? {
            if key == *wanted {
                map.next_value_seed(Walk { path: rest, arrived: &mut *self.arrived })?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn place_is_that_of_the_value_or_of_what_is_around_it() {
        let text = "tenants:\n  - name: a\n    rules:\n      - limit: 5\n      - {limit: x}\n";
        let key = |name: &str| Step::Key(name.to_owned());
        let rule = [key("tenants"), Step::Index(0), key("rules"), Step::Index(1)];
        assert_eq!(locate(text, &rule), (5, 9));
        let limit = [&rule[..], &[key("limit")]].concat();
        assert_eq!(locate(text, &limit), (5, 17));
        let missing = [&rule[..], &[key("window")]].concat();
        assert_eq!(locate(text, &missing), (5, 9));
        assert_eq!(locate(text, &[]), (1, 1));
    }
}
