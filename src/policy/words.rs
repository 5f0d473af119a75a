//! Scalars of a document: numbers in their range, windows, moments, patterns, and chosen words.
//!
//! Each is read as what it means, while the library stands on it; so a complaint has the place of
//! the word, and nothing later asks again. Numbers are written as numbers and text as text:
//! `"5"` is no limit, and `42` no caller until it stands in quotes.

use std::fmt;
use std::marker::PhantomData;

use jiff::tz::TimeZone;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Deserialize, Deserializer, Unexpected, Visitor};

use crate::limit::{Algorithm, Align};
use crate::load::Tier;
use crate::time::{Duration, Timestamp};
use crate::yaml::nearest;

use super::calendar::CalendarUnit;
use super::options::Unmatched;
use super::pattern::Pattern;
use super::rule::{Degrade, Enforcement, ManagedBy, Mode, Scope};

/// Bytes of a name or a pattern: each stands in the key of every bucket.
const TEXT_BYTES_MAX: usize = 1_024;

/// What is written as a word out of a few.
pub(super) trait Word: Copy + PartialEq + 'static {
    /// What the words choose, for the schema.
    const TITLE: &'static str;
    /// Every spelling, the first of each meaning its own.
    const WORDS: &'static [(&'static str, Self)];
}

/// The word of a meaning; of several the first.
pub(super) fn spelling<T: Word>(meaning: T) -> &'static str {
    let word = T::WORDS.iter().find(|(_, known)| *known == meaning);
    word.map(|(word, _)| *word).expect("every meaning has a word in its list")
}

/// A word of a document, read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Spelled<T>(pub(super) T);

/// A whole number of which a reply can tell every value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Count(pub(super) u64);

/// A whole number from 0 to 100.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Percent(pub(super) u8);

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum LimitWord {
    Count(u64),
    Unlimited,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum WindowWord {
    Span(Duration),
    Calendar(CalendarUnit),
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Moment(pub(super) Timestamp);

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Zone(pub(super) TimeZone);

/// A name of a tenant, a rule, a quota or an attribute: not empty, and fit for a line of a log.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Name(pub(super) String);

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum BurstMode {
    Additive,
    Credit,
}

/// An enforcement as it may be written; the policy takes only what there is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum EnforcementWord {
    Central,
    Distributed,
}

impl EnforcementWord {
    pub(super) fn known(self) -> Result<Enforcement, &'static str> {
        match self {
            Self::Central => Ok(Enforcement::Central),
            Self::Distributed => Err("`distributed` comes in a later version, write `central`"),
        }
    }
}

macro_rules! words {
    ($($type:ty, $title:literal: $($word:literal => $meaning:expr),+;)+) => {
        $(impl Word for $type {
            const TITLE: &'static str = $title;
            const WORDS: &'static [(&'static str, Self)] = &[$(($word, $meaning)),+];
        })+
    };
}

words! {
    Algorithm, "Algorithm":
        "sliding-log" => Self::SlidingLog, "sliding-window" => Self::SlidingWindow,
        "sliding-counter" => Self::SlidingCounter, "fixed-window" => Self::FixedWindow,
        "gcra" => Self::Gcra, "token-bucket" => Self::Gcra;
    Align, "Align": "epoch" => Self::Epoch, "first" => Self::First;
    BurstMode, "BurstMode": "additive" => Self::Additive, "credit" => Self::Credit;
    Degrade, "Degrade": "open" => Self::Open, "closed" => Self::Closed, "ratio" => Self::Ratio;
    EnforcementWord, "Enforcement":
        "central" => Self::Central, "distributed" => Self::Distributed;
    ManagedBy, "ManagedBy": "human" => Self::Human, "rlc" => Self::Rlc;
    Mode, "Mode":
        "enforce" => Self::Enforce, "shadow" => Self::Shadow, "off" => Self::Off,
        "deny" => Self::Enforce, "allow" => Self::Shadow;
    Scope, "Scope":
        "zone" => Self::Zone, "region" => Self::Region, "global" => Self::Global;
    Tier, "Tier":
        "t0" => Self::T0, "t1" => Self::T1, "t2" => Self::T2, "t3" => Self::T3,
        "t4" => Self::T4, "t5" => Self::T5;
    Unmatched, "Unmatched": "allow" => Self::Allow, "deny" => Self::Deny;
}

/// Reads text by `read`, whose error says what would be right.
struct Text<T> {
    expected: &'static str,
    read: fn(&str) -> Result<T, String>,
}

impl<T> Visitor<'_> for Text<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.expected)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
        (self.read)(text).map_err(|right| E::custom(format!("it cannot be `{text}`, {right}")))
    }
}

impl<'de, T: Word> Deserialize<'de> for Spelled<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(OneOf(PhantomData))
    }
}

struct OneOf<T>(PhantomData<T>);

impl<T: Word> OneOf<T> {
    fn words() -> impl Iterator<Item = &'static str> {
        T::WORDS.iter().map(|(word, _)| *word)
    }
}

impl<T: Word> Visitor<'_> for OneOf<T> {
    type Value = Spelled<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "one of {}", Self::words().collect::<Vec<_>>().join(", "))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Spelled<T>, E> {
        let meant = T::WORDS.iter().find(|(word, _)| *word == text);
        meant.map(|(_, meaning)| Spelled(*meaning)).ok_or_else(|| {
            let near = nearest(text, Self::words());
            let words = Self::words().collect::<Vec<_>>().join(", ");
            E::custom(format!("it cannot be `{text}`, the nearest is `{near}` (known: {words})"))
        })
    }
}

impl<T: Word> JsonSchema for Spelled<T> {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        T::TITLE.into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"enum": OneOf::<T>::words().collect::<Vec<_>>()})
    }
}

/// Reads a whole number from `min` to `max`, and where there is one, a word instead.
struct Whole<T> {
    max: u64,
    expected: &'static str,
    number: fn(u64) -> T,
    word: fn(&str) -> Option<Result<T, String>>,
}

impl<T> Visitor<'_> for Whole<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.expected)
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<T, E> {
        if number > self.max {
            return Err(E::invalid_value(Unexpected::Unsigned(number), &self));
        }
        Ok((self.number)(number))
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<T, E> {
        match u64::try_from(number) {
            Ok(number) => self.visit_u64(number),
            Err(_) => Err(E::invalid_value(Unexpected::Signed(number), &self)),
        }
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
        match (self.word)(text) {
            Some(read) => {
                read.map_err(|right| E::custom(format!("it cannot be `{text}`, {right}")))
            }
            None => Err(E::invalid_type(Unexpected::Str(text), &self)),
        }
    }
}

const COUNT_MAX: u64 = i64::MAX as u64;

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let expected = "a whole number from 0 to 9223372036854775807";
        let whole = Whole { max: COUNT_MAX, expected, number: Count, word: |_| None };
        deserializer.deserialize_any(whole)
    }
}

impl<'de> Deserialize<'de> for Percent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let expected = "a whole number from 0 to 100";
        let number = |number| Percent(number as u8);
        deserializer.deserialize_any(Whole { max: 100, expected, number, word: |_| None })
    }
}

impl<'de> Deserialize<'de> for LimitWord {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let expected = "a whole number from 0 to 9223372036854775807, or unlimited";
        let word = |text: &str| (text == "unlimited").then_some(Ok(LimitWord::Unlimited));
        let number = LimitWord::Count;
        deserializer.deserialize_any(Whole { max: COUNT_MAX, expected, number, word })
    }
}

impl<'de> Deserialize<'de> for WindowWord {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let expected =
            "a window such as 500ms, 30s, 5m, 1h or 1d, whole milliseconds, or a calendar word";
        let number = |millis| WindowWord::Span(Duration::from_millis(millis));
        let word = |text: &str| Some(window(text));
        deserializer.deserialize_any(Whole { max: COUNT_MAX / 1_000, expected, number, word })
    }
}

fn window(text: &str) -> Result<WindowWord, String> {
    if let Some(unit) = CalendarUnit::parse(text) {
        return Ok(WindowWord::Calendar(unit));
    }
    Duration::parse(text.as_bytes()).map(WindowWord::Span).map_err(|err| {
        let span = match text {
            "second" => "1s",
            "minute" => "1m",
            "hour" => "1h",
            _ => return format!("{err}, or day, week, month, year"),
        };
        format!("write {span} (of the calendar: day, week, month, year)")
    })
}

impl<'de> Deserialize<'de> for Moment {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let expected = "a moment with its zone such as 2027-01-31T18:00:00Z";
        let read = |text: &str| {
            let moment: jiff::Timestamp = text.parse().map_err(|_| {
                "expected a moment with its zone such as 2027-01-31T18:00:00Z".to_owned()
            })?;
            let micros = u64::try_from(moment.as_microsecond()).unwrap_or(0);
            Ok(Moment(Timestamp::from_micros(micros)))
        };
        deserializer.deserialize_any(Text { expected, read })
    }
}

impl<'de> Deserialize<'de> for Zone {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let expected = "a time zone such as UTC or Europe/Berlin";
        deserializer.deserialize_any(Text { expected, read: zone })
    }
}

/// The zones are those that the program brings along, so that every machine has the same.
fn zone(text: &str) -> Result<Zone, String> {
    let zones = jiff::tz::db();
    zones.get(text).map(Zone).map_err(|_| {
        let names: Vec<String> = zones.available().map(|name| name.to_string()).collect();
        let near = nearest(text, names.iter().map(String::as_str));
        format!("expected a time zone such as UTC or Europe/Berlin, the nearest is `{near}`")
    })
}

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let expected = "text; a number or a truth value needs quotes";
        deserializer.deserialize_any(Text { expected, read: |text| name(text).map(Name) })
    }
}

fn name(text: &str) -> Result<String, String> {
    if text.is_empty() {
        return Err("expected at least one character".to_owned());
    }
    if text.len() > TEXT_BYTES_MAX {
        return Err(format!("expected at most {TEXT_BYTES_MAX} bytes"));
    }
    if text.chars().any(char::is_control) {
        return Err("expected no control characters".to_owned());
    }
    Ok(text.to_owned())
}

impl<'de> Deserialize<'de> for Pattern {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let expected = "text; a number or a truth value needs quotes";
        let read = |text: &str| {
            let text = name(text)?;
            Pattern::parse(&text).ok_or_else(|| {
                "expected a text, `prefix*` or `*`: the star stands only at the end".to_owned()
            })
        };
        deserializer.deserialize_any(Text { expected, read })
    }
}

macro_rules! schemas {
    ($($type:ident: $schema:tt;)+) => {
        $(impl JsonSchema for $type {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($type).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!($schema)
            }
        })+
    };
}

schemas! {
    Count: {"type": "integer", "minimum": 0, "maximum": COUNT_MAX};
    Percent: {"type": "integer", "minimum": 0, "maximum": 100};
    LimitWord: {"anyOf": [
        {"type": "integer", "minimum": 0, "maximum": COUNT_MAX},
        {"const": "unlimited"},
    ]};
    WindowWord: {"anyOf": [
        {"type": "string", "pattern": "^([0-9]+([uUmM]?[sS]|[mMhHdD])?|day|week|month|year)$"},
        {"type": "integer", "minimum": 1, "description": "milliseconds"},
    ]};
    Moment: {"type": "string", "format": "date-time"};
    Zone: {"type": "string", "description": "a name of the IANA database such as Europe/Berlin"};
    Name: {"type": "string", "minLength": 1, "maxLength": TEXT_BYTES_MAX};
    Pattern: {"type": "string", "minLength": 1, "maxLength": TEXT_BYTES_MAX,
        "pattern": "^[^*]*\\*?$"};
}
