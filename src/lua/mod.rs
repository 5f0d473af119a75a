//! Lua: what scripts find there besides the language.
//!
//! The libraries are Redis's own set, told by what they answer: the same results, and the same
//! texts of what went wrong, to the byte. None of them reaches the host, and none recurses: what
//! is nested in what stands on a stack of its own, as deep as Redis's would go.
//!
//! An error of a library is an [`mlua::Error::RuntimeError`] that already names the line of the
//! script; who runs scripts hands it to them as the text that it is.

mod arguments;
mod bits;
mod json;
mod json_decode;
mod json_encode;
mod json_tokens;
mod msgpack;
mod msgpack_decode;
mod nest;
mod structs;
#[cfg(test)]
mod tests;

/// Makes the tables of the libraries, by the names of their globals.
#[cfg_attr(not(test), expect(dead_code, reason = "who runs scripts asks for it"))]
pub(crate) fn libraries(lua: &mlua::Lua) -> mlua::Result<[(&'static str, mlua::Table); 4]> {
    Ok([
        ("bit", bits::install(lua)?),
        ("cjson", json::install(lua)?),
        ("cmsgpack", msgpack::install(lua)?),
        ("struct", structs::install(lua)?),
    ])
}
