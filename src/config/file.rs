//! Lays a file of settings on the layers, reading it key by key.
//!
//! The reader is our own because two things matter that a derived one does not do: a key that
//! stands twice is refused, and a complaint is raised while the reader stands on the offending
//! word, which is how the YAML library learns its line and column.

use std::collections::HashSet;
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use serde::de::{self, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_yaml::Value;

use crate::size::Bytes;
use crate::yaml::Complaint;

use super::Error;
use super::layers::{Layers, join};

/// Far above any file of settings that a person wrote; bounds what a wrong path can cost.
const FILE_BYTES_MAX: Bytes = Bytes::new(1 << 20);

pub(super) fn lay(layers: &mut Layers, path: &Path) -> Result<(), Error> {
    let document = read(path)?;
    let section = Section { layers, path: "" };
    section.deserialize(serde_yaml::Deserializer::from_str(&document)).map_err(|err| {
        let Complaint { line, column, text: complaint } = Complaint::from(err);
        Error::InFile { path: path.to_owned(), line, column, complaint }
    })
}

fn read(path: &Path) -> Result<String, Error> {
    let unreadable = |source: io::Error| Error::Read { path: path.to_owned(), source };
    let mut bytes = Vec::new();
    File::open(path)
        .map_err(unreadable)?
        .take(FILE_BYTES_MAX.as_u64() + 1)
        .read_to_end(&mut bytes)
        .map_err(unreadable)?;
    if bytes.len() as u64 > FILE_BYTES_MAX.as_u64() {
        return Err(Error::TooLarge { path: path.to_owned(), max: FILE_BYTES_MAX });
    }
    String::from_utf8(bytes)
        .map_err(|err| unreadable(io::Error::new(io::ErrorKind::InvalidData, err)))
}

/// Reads the keys of a section; the whole document is the section with the path "".
struct Section<'a> {
    layers: &'a mut Layers,
    path: &'a str,
}

impl<'de> DeserializeSeed<'de> for Section<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Section<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a section with the keys {}", self.layers.keys(self.path))
    }

    /// A section whose keys are all commented out.
    fn visit_unit<E: de::Error>(self) -> Result<(), E> {
        Ok(())
    }

    /// A document that is empty as a whole.
    fn visit_none<E: de::Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut seen = HashSet::new();
        while let Some(path) = map.next_key_seed(Key { section: &self, seen: &mut seen })? {
            if self.layers.section(&path).is_some() {
                map.next_value_seed(Section { layers: &mut *self.layers, path: &path })?;
            } else {
                map.next_value_seed(Setting { layers: &mut *self.layers, path: &path })?;
            }
        }
        Ok(())
    }
}

/// Reads one key of a section to the path of what it names.
struct Key<'a, 'layers> {
    section: &'a Section<'layers>,
    seen: &'a mut HashSet<String>,
}

impl<'de> DeserializeSeed<'de> for Key<'_, '_> {
    type Value = String;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<String, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for Key<'_, '_> {
    type Value = String;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a setting")
    }

    fn visit_str<E: de::Error>(self, key: &str) -> Result<String, E> {
        let Section { layers, path } = self.section;
        let known = layers.section(path).is_some_and(|section| section.contains_key(key));
        let path = join(path, key);
        if !known {
            return Err(E::custom(layers.unknown(&path, key)));
        }
        if !self.seen.insert(key.to_owned()) {
            return Err(E::custom(format!("`{key}` stands here a second time")));
        }
        Ok(path)
    }
}

/// Reads the value of one setting and lays it on.
struct Setting<'a> {
    layers: &'a mut Layers,
    path: &'a str,
}

impl Setting<'_> {
    fn lay<E: de::Error>(self, value: impl Into<Value>) -> Result<(), E> {
        self.layers.lay(self.path, value.into()).map_err(E::custom)
    }
}

impl<'de> DeserializeSeed<'de> for Setting<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Setting<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E: de::Error>(self) -> Result<(), E> {
        self.lay(Value::Null)
    }

    fn visit_bool<E: de::Error>(self, yes: bool) -> Result<(), E> {
        self.lay(yes)
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<(), E> {
        self.lay(number)
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<(), E> {
        self.lay(number)
    }

    fn visit_f64<E: de::Error>(self, number: f64) -> Result<(), E> {
        self.lay(number)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<(), E> {
        self.lay(text)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        let mut items = Vec::new();
        while let Some(item) = list.next_element::<Value>()? {
            items.push(item);
        }
        self.lay(items)
    }
}
