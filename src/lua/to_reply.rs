//! What a script returned, as a reply.
//!
//! Numbers lose what is behind the point; an array ends before its first `nil`; a table with one
//! of a few fields is that kind of reply. Metatables count for nothing.
//!
//! A table can hold itself, so depth and bytes have a maximum, and a kill ends the writing, too.
//! Lua lends only some thousands of values at a time: what a table holds is counted first, and
//! then written one by one.

use mlua::{Function, Table, Value};

use super::failure::{Thrown, is_counted};
use super::run::{Run, Stop};
use crate::protocol::{Error, Reply, Resp};

/// Tables within tables. Each that is open is held, and Lua lends only some thousands at a time.
const DEPTH_MAX: usize = 2_000;

/// Bytes of one reply: a few tables that hold one another often could take all memory.
const REPLY_BYTES_MAX: usize = 512 << 20;

/// Elements between two looks at the kill flag: a millisecond or so.
const LOOK_STEPS: u32 = 4_096;

/// Writes replies for a script that asked for `resp` itself.
pub(super) struct Writer<'w, 'b> {
    pub(super) reply: &'w mut Reply<'b>,
    /// What the script asked for: in RESP3 a boolean is one, else `true` is 1.
    pub(super) resp: Resp,
    pub(super) start: usize,
    pub(super) run: &'w Run,
    /// Lua's `next`.
    pub(super) walk: &'w Function,
    pub(super) steps: u32,
}

/// Elements of a table that is being written.
enum Open {
    Sequence {
        table: Table,
        place: usize,
        length: usize,
    },
    /// Keys and values of a map, or members of a set.
    Listed {
        table: Table,
        key: Value,
        /// What a map holds at that key, until it is written.
        value: Option<Value>,
        is_map: bool,
    },
}

impl Open {
    fn next(&mut self, walk: &Function) -> Result<Option<Value>, Error> {
        match self {
            Self::Sequence { table, place, length } => {
                *place += 1;
                Ok((*place <= *length).then(|| raw(table, *place)))
            }
            Self::Listed { value: value @ Some(_), .. } => Ok(value.take()),
            Self::Listed { table, key, value, is_map } => {
                let after: mlua::Result<(Value, Value)> = walk.call((&*table, &*key));
                let (found, held) = after.map_err(|_| unreadable())?;
                if found.is_nil() {
                    return Ok(None);
                }
                *value = is_map.then_some(held);
                *key = found.clone();
                Ok(Some(found))
            }
        }
    }
}

impl Writer<'_, '_> {
    /// Writes the value; an error that the script returned is given back instead.
    pub(super) fn top(&mut self, value: &Value) -> Result<(), Error> {
        if let Value::Table(table) = value
            && let Some(line) = string_field(table, "err")
        {
            let passes_on = is_counted(value);
            return Err(if passes_on { Error::passed_on(line) } else { Error::raw(line) });
        }
        self.value(value)
    }

    /// Writes the values before the first `nil` as an array.
    pub(super) fn array(&mut self, values: &[Value]) -> Result<(), Error> {
        let values = values.split(Value::is_nil).next().unwrap_or_default();
        self.reply.array(values.len());
        values.iter().try_for_each(|value| self.value(value))
    }

    /// Writes the value and all that is in it, without recursion: a script chooses how deep.
    fn value(&mut self, value: &Value) -> Result<(), Error> {
        let Some(outermost) = self.one(value, 0)? else { return Ok(()) };
        let mut open = vec![outermost];
        while let Some(table) = open.last_mut() {
            match table.next(self.walk)? {
                None => {
                    open.pop();
                }
                Some(value) => open.extend(self.one(&value, open.len())?),
            }
        }
        Ok(())
    }

    /// Writes a value, or the head of one that has elements.
    fn one(&mut self, value: &Value, depth: usize) -> Result<Option<Open>, Error> {
        self.step()?;
        match value {
            Value::Integer(number) => self.reply.integer(*number),
            Value::Number(number) => self.reply.integer(truncated(*number)),
            Value::String(text) => self.reply.bulk(&*text.as_bytes()),
            Value::Boolean(value) if self.resp == Resp::V3 => self.reply.boolean(*value),
            Value::Boolean(true) => self.reply.integer(1),
            Value::Table(_) if depth >= DEPTH_MAX => {
                self.reply.error(&Error::text("reached lua stack limit"));
            }
            Value::Table(table) => return self.table(table),
            _ => self.reply.null(),
        }
        Ok(None)
    }

    /// Before each element: whether to go on.
    fn step(&mut self) -> Result<(), Error> {
        if self.reply.written() - self.start > REPLY_BYTES_MAX {
            return Err(Error::text("the script's reply is too large"));
        }
        self.steps = self.steps.wrapping_add(1);
        if self.steps.is_multiple_of(LOOK_STEPS) && self.run.is_killed() {
            self.run.stop.set(Stop::Killed);
            return Err(Error::raw(Thrown::stopped(self.run).text));
        }
        Ok(())
    }

    fn table(&mut self, table: &Table) -> Result<Option<Open>, Error> {
        if let Some(line) = string_field(table, "err") {
            self.reply.error(&Error::raw(line));
        } else if let Some(text) = string_field(table, "ok") {
            self.reply.simple(text);
        } else if let Some(number) = number_field(table, "double") {
            self.reply.double(number);
        } else if let Some(content) = table_field(table, "map") {
            let pairs = self.count(&content)?;
            self.reply.map(pairs);
            return Ok(Some(listed(content, true)));
        } else if let Some(content) = table_field(table, "set") {
            let members = self.count(&content)?;
            self.reply.set(members);
            return Ok(Some(listed(content, false)));
        } else if let Some(text) = string_field(table, "big_number") {
            self.reply.big_number(text);
        } else if let Some((format, text)) = verbatim(table) {
            self.reply.verbatim_as(format, text);
        } else {
            let mut length = 0;
            while !matches!(raw(table, length + 1), Value::Nil) {
                self.step()?;
                length += 1;
            }
            self.reply.array(length);
            return Ok(Some(Open::Sequence { table: table.clone(), place: 0, length }));
        }
        Ok(None)
    }

    fn count(&mut self, table: &Table) -> Result<usize, Error> {
        let mut count = 0;
        for pair in table.pairs::<Value, Value>() {
            pair.map_err(|_| unreadable())?;
            self.step()?;
            count += 1;
        }
        Ok(count)
    }
}

fn listed(table: Table, is_map: bool) -> Open {
    Open::Listed { table, key: Value::Nil, value: None, is_map }
}

fn unreadable() -> Error {
    Error::text("the script's reply cannot be read")
}

/// What C makes of a double that no 64 bits hold.
fn truncated(number: f64) -> i64 {
    const BEYOND: f64 = 9_223_372_036_854_775_808.0;
    if (-BEYOND..BEYOND).contains(&number) { number as i64 } else { i64::MIN }
}

fn raw(table: &Table, key: impl mlua::IntoLua) -> Value {
    table.raw_get(key).unwrap_or(Value::Nil)
}

fn string_field(table: &Table, name: &str) -> Option<Vec<u8>> {
    match raw(table, name) {
        Value::String(text) => Some(text.as_bytes().to_vec()),
        _ => None,
    }
}

fn number_field(table: &Table, name: &str) -> Option<f64> {
    match raw(table, name) {
        Value::Integer(number) => Some(number as f64),
        Value::Number(number) => Some(number),
        _ => None,
    }
}

fn table_field(table: &Table, name: &str) -> Option<Table> {
    match raw(table, name) {
        Value::Table(content) => Some(content),
        _ => None,
    }
}

/// The three letters of the format, and the text.
fn verbatim(table: &Table) -> Option<([u8; 3], Vec<u8>)> {
    let content = table_field(table, "verbatim_string")?;
    let text = string_field(&content, "string")?;
    let mut format = [b' '; 3];
    for (letter, given) in format.iter_mut().zip(string_field(&content, "format")?) {
        *letter = given;
    }
    Some((format, text))
}
