//! Scripts: their texts, the Lua that runs them, and values between the two worlds.
//!
//! [`Scripts`] and [`Libraries`] hold what all workers share: texts. Each worker has an
//! [`Interpreter`], which compiles them and runs them; whatever a script asks of the server goes
//! through a [`Call`], which `commands` implements. This room knows no command.
//!
//! A script cannot reach the host, sees no other script's variables, and can always be ended: by
//! the kill flag, or by its [`Call`] with [`Abandon`], and no `pcall` holds either.

mod api;
mod arguments;
mod bits;
mod call;
mod dump;
#[cfg(test)]
mod extension_tests;
mod failure;
mod from_reply;
mod interpreter;
mod json;
mod json_decode;
mod json_encode;
mod json_tokens;
mod libraries;
mod meter;
mod msgpack;
mod msgpack_decode;
mod nest;
mod pattern;
mod random;
mod register;
mod run;
mod scripts;
mod searching;
mod sha;
mod shebang;
mod shelf;
mod structs;
#[cfg(test)]
mod tests;
mod to_reply;
mod words;

pub(crate) use call::{Abandon, Call, Failure, Invocation, LogLevel};
pub(crate) use interpreter::{Interpreter, Setup};
pub(crate) use json_encode::put_number;
pub(crate) use libraries::{Found, Libraries, Library, RestorePolicy};
pub(crate) use scripts::{Origin, Recent, Script, Scripts};
pub(crate) use sha::Sha;
pub(crate) use shebang::{ScriptFlags, UnknownFlags};
pub(crate) use shelf::dump_libraries;

use mlua::{Lua, Table};

/// Makes the table of a library.
type Install = fn(&Lua) -> mlua::Result<Table>;

/// Libraries of our own beside Lua's, by the name under which scripts find them.
const EXTENSIONS: &[(&str, Install)] = &[
    ("bit", bits::install),
    ("cjson", json::install),
    ("cmsgpack", msgpack::install),
    ("struct", structs::install),
];
