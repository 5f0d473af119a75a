//! Errors of scripts: how they travel through Lua, and what the client reads.
//!
//! A command's error, a mistake in the use of the server's functions and the end of a run are
//! raised as [`Thrown`]. Whatever ends a run is [`Caught`] where it happened, while Lua's stack
//! still knows the place; the client then reads `TEXT script: NAME, on SOURCE:LINE.`

use std::fmt;

use mlua::{Error as LuaError, Lua, Value};

use super::run::{Kind, Run, Stop};
use crate::protocol::Error;

/// The name of the chunk that no error is blamed on.
pub(super) const PRELUDE: &str = "=prelude";

/// Redis's own mark in the table of a command's error.
pub(super) const COUNTED: &str = "ignore_error_stats_update";

/// Levels of the stack that are searched for a script's line.
const LEVELS_MAX: usize = 16;

/// An error that Rust raises in Lua.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Thrown {
    pub(super) text: Vec<u8>,
    /// It has a code and scripts see a table of it; else it is a text like Lua's own.
    pub(super) is_reply: bool,
    /// It is a command's, and counted as that.
    pub(super) is_counted: bool,
}

impl Thrown {
    /// A command's error.
    pub(super) fn reply(line: &[u8]) -> Self {
        Self { text: line.to_vec(), is_reply: true, is_counted: true }
    }

    /// A mistake in the use of the server's own functions.
    pub(super) fn misuse(text: &str) -> Self {
        let text = [b"ERR ", text.as_bytes()].concat();
        Self { text, is_reply: true, is_counted: false }
    }

    /// An error such as Lua's own.
    pub(super) fn text(text: impl Into<Vec<u8>>) -> Self {
        Self { text: text.into(), is_reply: false, is_counted: false }
    }

    /// An error as Lua itself would raise it in a library function: with the script's line.
    pub(super) fn at_line(lua: &Lua, text: &[u8]) -> Self {
        Self::text([position(lua).as_bytes(), text].concat())
    }

    /// What was raised, where it comes back from Lua.
    pub(super) fn of(error: &LuaError) -> Self {
        match error {
            LuaError::CallbackError { cause, .. } => Self::of(cause),
            LuaError::RuntimeError(text) | LuaError::MemoryError(text) => {
                // mlua appends the stack.
                let text = text.split("\nstack traceback:").next().unwrap_or_default();
                Self::text(text)
            }
            other => other
                .downcast_ref::<Self>()
                .cloned()
                .unwrap_or_else(|| Self::text(other.to_string())),
        }
    }

    fn into_line(self) -> Vec<u8> {
        if self.is_reply { self.text } else { [b"ERR ", &*self.text].concat() }
    }

    /// Why a run was ended from outside.
    pub(super) fn stopped(run: &Run) -> Self {
        Self::misuse(match (run.stop.get(), run.kind.get()) {
            (Stop::LoadedTooLong, _) => "FUNCTION LOAD timeout",
            (Stop::No | Stop::Abandoned, _) => "the script has to run again",
            (Stop::Killed, Kind::Script) => "Script killed by user with SCRIPT KILL...",
            (Stop::Killed, Kind::Function | Kind::Loading) => {
                "Script killed by user with FUNCTION KILL..."
            }
        })
    }
}

impl fmt::Display for Thrown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from_utf8_lossy(&self.text))
    }
}

impl std::error::Error for Thrown {}

impl From<Thrown> for LuaError {
    fn from(thrown: Thrown) -> Self {
        Self::external(thrown)
    }
}

/// What ended a run, and where.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Caught {
    pub(super) text: Vec<u8>,
    is_counted: bool,
    place: Option<(String, i64)>,
}

impl Caught {
    /// Called by Lua with what was raised, above the frame that raised it.
    pub(super) fn here(lua: &Lua, value: &Value) -> Self {
        Self { place: place(lua), ..Self::late(value) }
    }

    /// An error that Lua raised without asking, as when memory is out.
    pub(super) fn late(value: &Value) -> Self {
        Self { text: text_of(value), is_counted: is_counted(value), place: None }
    }

    /// What the client reads.
    pub(super) fn reply(&self, name: &str) -> Error {
        let mut line = self.text.clone();
        line.extend_from_slice(format!(" script: {name}").as_bytes());
        if let Some((source, number)) = &self.place {
            line.extend_from_slice(format!(", on {source}:{number}.").as_bytes());
        }
        if self.is_counted { Error::passed_on(line) } else { Error::raw(line) }
    }
}

/// Whether it is a command's error, raised or returned as it came: that is counted already.
pub(super) fn is_counted(value: &Value) -> bool {
    match value {
        Value::Error(error) => Thrown::of(error).is_counted,
        Value::Table(table) => table.raw_get(COUNTED).unwrap_or(false),
        _ => false,
    }
}

/// The text of something raised; only a table may bring a code of its own.
fn text_of(value: &Value) -> Vec<u8> {
    match value {
        Value::Table(table) => match table.get::<Value>("err") {
            Ok(Value::String(text)) => text.as_bytes().to_vec(),
            Ok(number @ (Value::Integer(_) | Value::Number(_))) => shown(&number),
            // A Redis crashes here.
            _ => b"ERR unknown error".to_vec(),
        },
        Value::Error(error) => Thrown::of(error).into_line(),
        other => [b"ERR ", unblamed(&shown(other))].concat(),
    }
}

/// Without the place in the prelude that called what a script gave it.
fn unblamed(text: &[u8]) -> &[u8] {
    let after_number = |rest: &'_ [u8]| rest.iter().position(|byte| !byte.is_ascii_digit());
    text.strip_prefix(b"prelude:")
        .and_then(|rest| rest[after_number(rest)?..].strip_prefix(b": "))
        .unwrap_or(text)
}

/// As Lua's `tostring` shows it.
fn shown(value: &Value) -> Vec<u8> {
    match value {
        Value::String(text) => text.as_bytes().to_vec(),
        other => other.to_string().unwrap_or_default().into_bytes(),
    }
}

/// `source:line: ` of the script that called the function which calls this; empty if none did.
fn position(lua: &Lua) -> String {
    let mut skipping = true;
    for level in 1..LEVELS_MAX {
        let found = lua.inspect_stack(level, |frame| {
            let source = frame.source();
            let ours = source.what == "tail" || source.source.as_deref() == Some(PRELUDE);
            skipping &= ours;
            let line = frame.current_line()?;
            Some(format!("{}:{line}: ", source.short_src.unwrap_or_default()))
        });
        match found {
            None => break,
            Some(found) if !skipping => return found.unwrap_or_default(),
            Some(_) => {}
        }
    }
    String::new()
}

/// Where the error was raised, seen from its handler: the function that raised it, or if that is
/// none of Lua's the one that called it. A call in tail position through the prelude leaves no
/// trace of its caller.
fn place(lua: &Lua) -> Option<(String, i64)> {
    let mut natives = 0;
    let mut after_prelude = false;
    for level in 1..LEVELS_MAX {
        let (passed, found) = lua.inspect_stack(level, |frame| {
            let source = frame.source();
            let name = source.source.as_deref().unwrap_or_default().to_owned();
            let native = source.what == "C";
            natives += usize::from(native);
            let tail = source.what == "tail" && after_prelude;
            after_prelude = tail || name == PRELUDE;
            let line = frame.current_line().map_or(-1, |line| line as i64);
            (native && natives == 1 || after_prelude, (name, line))
        })?;
        if !passed {
            return (found.1 >= 0 || natives == 0).then_some(found);
        }
    }
    None
}
