//! What a script returned, as a reply.
//!
//! Numbers lose what is behind the point; an array ends before its first `nil`; a table with one
//! of a few fields is that kind of reply. Metatables count for nothing.
//!
//! A table can hold itself, so depth and bytes have a maximum.

use mlua::{Table, Value};

use crate::protocol::{Error, Reply, Resp};

/// Tables within tables; a Redis ends at about the same depth.
const DEPTH_MAX: usize = 2_000;

/// Bytes of one reply: a few tables that hold one another often could take all memory.
const REPLY_BYTES_MAX: usize = 512 << 20;

/// Writes replies for a script that asked for `resp` itself.
pub(super) struct Writer<'w, 'b> {
    pub(super) reply: &'w mut Reply<'b>,
    /// What the script asked for: in RESP3 a boolean is one, else `true` is 1.
    pub(super) resp: Resp,
    pub(super) start: usize,
}

impl Writer<'_, '_> {
    /// Writes the value; an error that the script returned is given back instead.
    pub(super) fn top(&mut self, value: &Value) -> Result<(), Error> {
        if let Value::Table(table) = value
            && let Some(line) = string_field(table, "err")
        {
            return Err(Error::raw(line));
        }
        self.value(value, 0)
    }

    pub(super) fn array(&mut self, values: &[Value]) -> Result<(), Error> {
        self.reply.array(values.len());
        values.iter().try_for_each(|value| self.value(value, 1))
    }

    fn value(&mut self, value: &Value, depth: usize) -> Result<(), Error> {
        match value {
            Value::Integer(number) => self.reply.integer(*number),
            Value::Number(number) => self.reply.integer(truncated(*number)),
            Value::String(text) => {
                self.reply.bulk(&*text.as_bytes());
                if self.reply.written() - self.start > REPLY_BYTES_MAX {
                    return Err(Error::text("the script's reply is too large"));
                }
            }
            Value::Boolean(value) if self.resp == Resp::V3 => self.reply.boolean(*value),
            Value::Boolean(true) => self.reply.integer(1),
            Value::Table(table) => return self.table(table, depth),
            _ => self.reply.null(),
        }
        Ok(())
    }

    fn table(&mut self, table: &Table, depth: usize) -> Result<(), Error> {
        if depth >= DEPTH_MAX {
            self.reply.error(&Error::text("reached lua stack limit"));
            return Ok(());
        }
        if let Some(line) = string_field(table, "err") {
            self.reply.error(&Error::raw(line));
        } else if let Some(text) = string_field(table, "ok") {
            self.reply.simple(text);
        } else if let Some(number) = number_field(table, "double") {
            self.reply.double(number);
        } else if let Some(content) = table_field(table, "map") {
            return self.map(&content, depth);
        } else if let Some(content) = table_field(table, "set") {
            return self.set(&content, depth);
        } else if let Some(text) = string_field(table, "big_number") {
            self.reply.big_number(text);
        } else if let Some((format, text)) = verbatim(table) {
            self.reply.verbatim_as(&format, text);
        } else {
            return self.sequence(table, depth);
        }
        Ok(())
    }

    fn sequence(&mut self, table: &Table, depth: usize) -> Result<(), Error> {
        let mut length = 0;
        while !matches!(raw(table, length + 1), Value::Nil) {
            length += 1;
        }
        self.reply.array(length);
        (1..=length).try_for_each(|place| self.value(&raw(table, place), depth + 1))
    }

    fn map(&mut self, content: &Table, depth: usize) -> Result<(), Error> {
        self.reply.map(content.pairs::<Value, Value>().count());
        for (key, value) in content.pairs::<Value, Value>().flatten() {
            self.value(&key, depth + 1)?;
            self.value(&value, depth + 1)?;
        }
        Ok(())
    }

    fn set(&mut self, content: &Table, depth: usize) -> Result<(), Error> {
        self.reply.set(content.pairs::<Value, Value>().count());
        for (key, _) in content.pairs::<Value, Value>().flatten() {
            self.value(&key, depth + 1)?;
        }
        Ok(())
    }
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
