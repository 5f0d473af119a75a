//! How the parameters of CONFIG are read and written: what a value must be, and whose words
//! refuse another.
//!
//! The rows stand in `parameter_table.rs`. A value is read in full before any is written, so a
//! CONFIG SET of several parameters changes all of them or none.

use super::host::Host;
use super::service::Service;
use crate::protocol::parse_i64;
use crate::size::{Bytes, BytesMax, ParseBytesMaxError};
use crate::time::Duration;

/// One parameter: its name, how it reads now, and what may be written.
pub(super) struct Parameter {
    pub(super) name: &'static str,
    pub(super) read: fn(&Place<'_>) -> String,
    pub(super) write: Write,
}

/// Where parameters live.
#[derive(Clone, Copy)]
pub(super) struct Place<'c> {
    pub(super) service: &'c Service,
    pub(super) host: &'c dyn Host,
}

impl Place<'_> {
    /// A setting as it was at the start; empty where there is none of this path.
    pub(super) fn setting(&self, path: &str) -> String {
        let settings = self.host.settings();
        let found = settings.iter().find(|(known, _)| known == path);
        found.map(|(_, value)| value.clone()).unwrap_or_default()
    }
}

/// What CONFIG SET may write.
#[derive(Clone, Copy)]
pub(super) enum Write {
    /// Nothing, as in Redis.
    Never,
    /// Only what it is already; else this reason is told.
    Same(&'static str),
    Whole {
        min: i64,
        max: i64,
        set: fn(&Service, i64),
    },
    Memory(fn(&Service, u64)),
    /// What something may have at most.
    MemoryMax(fn(&Service, BytesMax)),
    Span(fn(&Service, Duration)),
    Switch(fn(&Service, bool)),
    OneOf {
        names: fn() -> Vec<&'static str>,
        set: fn(&Service, &str),
    },
    /// Text that only who asks for it may see.
    Secret(fn(&Service, &str)),
    /// What fits is kept to be told again, and nothing comes of it. Parameters of one `shared`
    /// name are one.
    Noted {
        fits: Fits,
        shared: &'static str,
    },
}

/// What a noted value must be.
#[derive(Clone, Copy)]
pub(super) enum Fits {
    Whole {
        min: i64,
        max: i64,
    },
    Memory,
    Switch,
    OneOf(&'static [&'static str]),
    /// Text that only who asks for it may see.
    Secret,
}

/// Bytes of a noted text: no password is longer, and anybody may set one.
const NOTED_TEXT_BYTES_MAX: usize = 1_024;

impl Fits {
    /// The value as it will be told.
    fn canonical(self, word: &[u8]) -> Result<String, String> {
        Ok(match self {
            Self::Whole { min, max } => whole(word, min, max)?.to_string(),
            Self::Memory => memory(word)?.to_string(),
            Self::Switch => if switch(word)? { "yes" } else { "no" }.into(),
            Self::OneOf(names) => one_of(word, names)?.into(),
            Self::Secret => {
                let text = text(word).filter(|text| text.len() <= NOTED_TEXT_BYTES_MAX);
                text.ok_or("argument must be UTF-8 text and not too long")?.into()
            }
        })
    }
}

/// A value that was read and fits, ready to be written.
pub(super) type Change<'v> = Box<dyn FnOnce(&Service) + 'v>;

/// Redis's words for what is settled at the start.
pub(super) const IMMUTABLE: &str = "can't set immutable config";

impl Parameter {
    /// Nothing can ever be written.
    pub(super) fn is_settled(&self) -> bool {
        matches!(self.write, Write::Never)
    }

    pub(super) fn is_secret(&self) -> bool {
        matches!(self.write, Write::Secret(_) | Write::Noted { fits: Fits::Secret, .. })
    }

    /// How it reads now.
    pub(super) fn value(&self, place: &Place<'_>) -> String {
        let noted = match self.write {
            Write::Noted { shared, .. } => {
                place.service.runtime().noted.read().get(shared).cloned()
            }
            _ => None,
        };
        noted.unwrap_or_else(|| (self.read)(place))
    }

    /// Reads a value. The complaint is a fragment, in Redis's words where Redis has any.
    pub(super) fn parse<'v>(
        &self,
        word: &'v [u8],
        place: &Place<'_>,
    ) -> Result<Change<'v>, String> {
        match self.write {
            Write::Never => Err(IMMUTABLE.into()),
            Write::Same(_) if is_same(word, &(self.read)(place)) => Ok(Box::new(|_| {})),
            Write::Same(reason) => Err(reason.into()),
            Write::Whole { min, max, set } => {
                let value = whole(word, min, max)?;
                Ok(Box::new(move |service| set(service, value)))
            }
            Write::Memory(set) => {
                let bytes = memory(word)?;
                Ok(Box::new(move |service| set(service, bytes)))
            }
            Write::MemoryMax(set) => {
                let text = text(word).ok_or("argument must be a memory value")?;
                let max: BytesMax = text.parse().map_err(|error| match error {
                    ParseBytesMaxError::Bytes(_) => "argument must be a memory value".to_owned(),
                    ParseBytesMaxError::Zero => error.to_string(),
                })?;
                Ok(Box::new(move |service| set(service, max)))
            }
            Write::Span(set) => {
                let span = Duration::parse(word).map_err(|error| error.to_string())?;
                Ok(Box::new(move |service| set(service, span)))
            }
            Write::Switch(set) => {
                let on = switch(word)?;
                Ok(Box::new(move |service| set(service, on)))
            }
            Write::OneOf { names, set } => {
                let name = one_of(word, &names())?;
                Ok(Box::new(move |service| set(service, name)))
            }
            Write::Secret(set) => {
                let text = text(word).ok_or("argument must be UTF-8 text")?;
                Ok(Box::new(move |service| set(service, text)))
            }
            Write::Noted { fits, shared } => {
                let value = fits.canonical(word)?;
                Ok(Box::new(move |service| {
                    service.runtime().noted.write().insert(shared, value);
                }))
            }
        }
    }
}

/// The same text, or the same number of bytes.
fn is_same(word: &[u8], value: &str) -> bool {
    let bytes = |text: &str| text.parse::<Bytes>().ok();
    word.eq_ignore_ascii_case(value.as_bytes())
        || text(word).and_then(bytes).is_some_and(|given| bytes(value) == Some(given))
}

fn text(word: &[u8]) -> Option<&str> {
    str::from_utf8(word).ok()
}

fn memory(word: &[u8]) -> Result<u64, String> {
    let bytes = text(word).and_then(|text| text.parse::<Bytes>().ok());
    Ok(bytes.ok_or("argument must be a memory value")?.as_u64())
}

fn one_of(word: &[u8], names: &[&'static str]) -> Result<&'static str, String> {
    let named = names.iter().find(|name| name.as_bytes().eq_ignore_ascii_case(word)).copied();
    named.ok_or_else(|| format!("argument(s) must be one of the following: {}", names.join(", ")))
}

fn whole(word: &[u8], min: i64, max: i64) -> Result<i64, String> {
    let value = parse_i64(word).ok_or("argument couldn't be parsed into an integer")?;
    if (min..=max).contains(&value) {
        return Ok(value);
    }
    Err(format!("argument must be between {min} and {max} inclusive"))
}

fn switch(word: &[u8]) -> Result<bool, String> {
    match word.to_ascii_lowercase().as_slice() {
        b"yes" | b"true" => Ok(true),
        b"no" | b"false" => Ok(false),
        _ => Err("argument must be 'yes' or 'no'".into()),
    }
}
