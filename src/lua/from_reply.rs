//! A command's reply as a Lua value.
//!
//! Read by hand from the bytes of the reply, without a tree between. An integer is a number, a
//! bulk a string, a missing value `false`; with RESP3, which a script asks for, maps, sets,
//! doubles and the like are tables with a field that says so, and a missing value is `nil`.

use mlua::{Either, Lua, Table, Value};

use super::failure::{COUNTED, Thrown};
use crate::protocol::parse_i64;

/// Replies of our own commands nest less.
const DEPTH_MAX: usize = 32;

/// What an array of plain values is made of; mlua hands these to Lua without a detour.
type Plain<'a> = Either<&'a str, Either<i64, bool>>;

/// Reads a whole reply; an error is raised, or with `pcall` a table.
pub(super) fn read_reply(lua: &Lua, reply: &[u8], raises: bool) -> mlua::Result<Value> {
    if let (Some((b'-', line)), true) = (line_of(reply), raises) {
        return Err(Thrown::reply(line).into());
    }
    Reader { lua, rest: reply }.value(0)
}

/// The kind of the reply and the rest of its first line.
fn line_of(reply: &[u8]) -> Option<(u8, &[u8])> {
    let end = memchr::memchr(b'\r', reply)?;
    let (kind, line) = reply.get(..end)?.split_first()?;
    Some((*kind, line))
}

struct Reader<'l, 'r> {
    lua: &'l Lua,
    rest: &'r [u8],
}

impl<'r> Reader<'_, 'r> {
    fn value(&mut self, depth: usize) -> mlua::Result<Value> {
        if depth > DEPTH_MAX {
            return Err(Thrown::misuse("the reply nests too deep for a script").into());
        }
        let (kind, line) = self.line()?;
        match kind {
            b':' => Ok(Value::Number(integer(line) as f64)),
            b'$' => match length(line) {
                Some(length) => self.string(length),
                None => Ok(Value::Boolean(false)),
            },
            b'*' | b'>' => match length(line) {
                Some(length) => self.array(length, depth),
                None => Ok(Value::Boolean(false)),
            },
            b'+' => self.field("ok", |lua| lua.create_string(line)),
            b'-' => {
                let table = self.lua.create_table_with_capacity(0, 2)?;
                table.raw_set("err", self.lua.create_string(line)?)?;
                table.raw_set(COUNTED, true)?;
                Ok(Value::Table(table))
            }
            b'_' => Ok(Value::Nil),
            b'#' => Ok(Value::Boolean(line == b"t")),
            b',' => self.field("double", |_| Ok(double(line))),
            b'(' => self.field("big_number", |lua| lua.create_string(line)),
            b'=' => self.verbatim(length(line).unwrap_or_default()),
            b'%' => self.map(length(line).unwrap_or_default(), depth),
            b'~' => self.set(length(line).unwrap_or_default(), depth),
            _ => Err(torn()),
        }
    }

    fn field<V: mlua::IntoLua>(
        &self,
        name: &str,
        value: impl FnOnce(&Lua) -> mlua::Result<V>,
    ) -> mlua::Result<Value> {
        let table = self.lua.create_table_with_capacity(0, 1)?;
        table.raw_set(name, value(self.lua)?)?;
        Ok(Value::Table(table))
    }

    fn array(&mut self, length: usize, depth: usize) -> mlua::Result<Value> {
        if let Some((rest, plain)) = Plains::read(self.rest, length) {
            self.rest = rest;
            return self.lua.create_sequence_from(plain).map(Value::Table);
        }
        // Of a table with holes, `#` depends on how it grew: Redis lets it grow.
        let table = self.lua.create_table()?;
        for place in 1..=length {
            match self.value(depth + 1)? {
                Value::Nil => {}
                value => table.raw_set(place, value)?,
            }
        }
        Ok(Value::Table(table))
    }

    fn map(&mut self, pairs: usize, depth: usize) -> mlua::Result<Value> {
        let content = self.lua.create_table_with_capacity(0, pairs.min(CAPACITY_MAX))?;
        for _ in 0..pairs {
            let key = self.value(depth + 1)?;
            let value = self.value(depth + 1)?;
            put(&content, key, value)?;
        }
        self.field("map", |_| Ok(content))
    }

    fn set(&mut self, members: usize, depth: usize) -> mlua::Result<Value> {
        let content = self.lua.create_table_with_capacity(0, members.min(CAPACITY_MAX))?;
        for _ in 0..members {
            let member = self.value(depth + 1)?;
            put(&content, member, Value::Boolean(true))?;
        }
        self.field("set", |_| Ok(content))
    }

    fn verbatim(&mut self, length: usize) -> mlua::Result<Value> {
        let bytes = self.bytes(length)?;
        let (format, text) = bytes.split_at_checked(3).ok_or_else(torn)?;
        let content = self.lua.create_table_with_capacity(0, 2)?;
        content.raw_set("format", self.lua.create_string(format)?)?;
        content.raw_set("string", self.lua.create_string(text.get(1..).unwrap_or_default())?)?;
        self.field("verbatim_string", |_| Ok(content))
    }

    fn string(&mut self, length: usize) -> mlua::Result<Value> {
        let bytes = self.bytes(length)?;
        self.lua.create_string(bytes).map(Value::String)
    }

    fn bytes(&mut self, length: usize) -> mlua::Result<&'r [u8]> {
        let (bytes, rest) = self.rest.split_at_checked(length).ok_or_else(torn)?;
        self.rest = rest.get(2..).ok_or_else(torn)?;
        Ok(bytes)
    }

    fn line(&mut self) -> mlua::Result<(u8, &'r [u8])> {
        let (kind, line) = line_of(self.rest).ok_or_else(torn)?;
        self.rest = self.rest.get(line.len() + 3..).ok_or_else(torn)?;
        Ok((kind, line))
    }
}

/// A table grows by itself beyond this.
const CAPACITY_MAX: usize = 1 << 16;

/// Lua tables take no `nil` as a key, and no NaN.
fn put(table: &Table, key: Value, value: Value) -> mlua::Result<()> {
    match key {
        Value::Nil => Ok(()),
        Value::Number(number) if number.is_nan() => Ok(()),
        key => table.raw_set(key, value),
    }
}

/// The elements of an array that has only bulks in UTF-8, integers and missing values.
struct Plains<'r> {
    rest: &'r [u8],
    left: usize,
}

impl<'r> Plains<'r> {
    /// Reads ahead whether all elements are such; also what follows them.
    fn read(rest: &'r [u8], length: usize) -> Option<(&'r [u8], Self)> {
        let mut ahead = Self { rest, left: length };
        for _ in 0..length {
            ahead.next()?;
        }
        Some((ahead.rest, Self { rest, left: length }))
    }
}

impl<'r> Iterator for Plains<'r> {
    type Item = Plain<'r>;

    fn next(&mut self) -> Option<Plain<'r>> {
        if self.left == 0 {
            return None;
        }
        let (kind, line) = line_of(self.rest)?;
        let after = self.rest.get(line.len() + 3..)?;
        let (plain, rest) = match (kind, length(line)) {
            (b':', _) => (Either::Right(Either::Left(integer(line))), after),
            (b'$', None) => (Either::Right(Either::Right(false)), after),
            (b'$', Some(length)) => {
                let (text, rest) = after.split_at_checked(length)?;
                (Either::Left(str::from_utf8(text).ok()?), rest.get(2..)?)
            }
            _ => return None,
        };
        (self.rest, self.left) = (rest, self.left - 1);
        Some(plain)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

fn integer(line: &[u8]) -> i64 {
    parse_i64(line).unwrap_or_default()
}

/// `None` for a missing value.
fn length(line: &[u8]) -> Option<usize> {
    usize::try_from(parse_i64(line)?).ok()
}

fn double(line: &[u8]) -> f64 {
    str::from_utf8(line).ok().and_then(|text| text.parse().ok()).unwrap_or(f64::NAN)
}

/// Replies are written by this server: one that cannot be read is a mistake of ours.
fn torn() -> mlua::Error {
    Thrown::misuse("the command's reply could not be read").into()
}
