//! What may be written or not: fields, and the mapping of `match`.
//!
//! `Option` would take a field with nothing behind it for one that is not written.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde::de::{self, Deserializer, MapAccess, Visitor};

use super::pattern::Pattern;
use super::words::Name;

/// A field of a document: there, or not written.
#[derive(Clone, Debug)]
pub(super) struct Given<T>(pub(super) Option<T>);

impl<T> Given<T> {
    pub(super) fn is_given(&self) -> bool {
        self.0.is_some()
    }
}

impl<T> Default for Given<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Given<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        T::deserialize(deserializer).map(|value| Self(Some(value)))
    }
}

impl<T: JsonSchema> JsonSchema for Given<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        T::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        generator.subschema_for::<T>()
    }
}

/// Patterns of attributes, in the order of the document; no name stands twice.
#[derive(Debug)]
pub(super) struct Matches(pub(super) Vec<(Name, Pattern)>);

impl<'de> Deserialize<'de> for Matches {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Attributes)
    }
}

impl JsonSchema for Matches {
    fn schema_name() -> Cow<'static, str> {
        "Matches".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let pattern = generator.subschema_for::<Pattern>();
        json_schema!({"type": "object", "additionalProperties": pattern})
    }
}

struct Attributes;

impl<'de> Visitor<'de> for Attributes {
    type Value = Matches;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("attributes with their patterns, such as {country: DE}")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Matches, A::Error> {
        let mut matches: Vec<(Name, Pattern)> = Vec::new();
        while let Some(name) = map.next_key::<Name>()? {
            if matches.iter().any(|(known, _)| *known == name) {
                let twice = format!("`{}` stands here a second time", name.0);
                return Err(de::Error::custom(twice));
            }
            matches.push((name, map.next_value()?));
        }
        Ok(Matches(matches))
    }
}
