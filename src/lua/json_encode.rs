//! `cjson.encode`: a value to JSON.
//!
//! A table whose keys are all positive whole numbers is an array, unless it is empty or too
//! sparse. Objects come in the order in which Lua walks the table. What is nested stands on a
//! [`Nest`]; at the depth at which Lua's stack would end, it ends as too deep.

use mlua::{Function, Lua, LuaString, Table, Value};

use super::arguments::{Arguments, STACK_SLOTS_MAX, fault, type_name};
use super::json::{Invalid, Settings};
use super::meter::Meter;
use super::nest::Nest;

/// Bytes of a text between two looks at what is written.
const PIECE_BYTES: usize = 64 << 10;

/// `walk` is Lua's `next`, which does without a handle for each pair.
pub(super) fn encode(
    given: &Arguments<'_>,
    settings: Settings,
    walk: &Function,
) -> mlua::Result<Value> {
    if given.len() != 1 {
        return Err(given.wrong(1, "expected 1 argument"));
    }
    let mut encoder =
        Encoder { lua: given.lua, settings, out: Vec::new(), meter: Meter::new(given.lua), top: 1 };
    encoder.value(given.value(1), walk)?;
    given.lua.create_string(encoder.out).map(Value::String)
}

struct Encoder<'l> {
    lua: &'l Lua,
    settings: Settings,
    out: Vec<u8>,
    meter: Meter<'l>,
    /// How many slots of its stack Lua's own encoder would have filled.
    top: usize,
}

/// A table being written.
struct Open {
    table: Table,
    /// The key written last; of an array, the place.
    key: Value,
    shape: Shape,
}

#[derive(Clone, Copy)]
struct Shape {
    /// Of an array, how many places it has.
    places: Option<i64>,
    is_empty: bool,
}

impl Shape {
    /// Slots that the table's next key and value take.
    fn slots(self) -> usize {
        if self.places.is_some() { 1 } else { 2 }
    }
}

impl Encoder<'_> {
    fn value(&mut self, value: Value, walk: &Function) -> mlua::Result<()> {
        let Value::Table(table) = value else { return self.scalar(&value) };
        let (mut nest, mut shapes) = (Nest::new(), Vec::<Shape>::new());
        let mut open = self.open(table, 1)?;
        loop {
            match self.next(&mut open, walk)? {
                Some(Value::Table(table)) => {
                    nest.push(self.lua, &open.table, &open.key)?;
                    shapes.push(open.shape);
                    self.top += open.shape.slots();
                    open = self.open(table, shapes.len() + 1)?;
                }
                Some(value) => self.scalar(&value)?,
                None => {
                    self.out.push(if open.shape.places.is_some() { b']' } else { b'}' });
                    let Some(((table, key), shape)) = nest.pop()?.zip(shapes.pop()) else {
                        return Ok(());
                    };
                    self.top -= shape.slots();
                    open = Open { table, key, shape };
                }
            }
        }
    }

    fn open(&mut self, table: Table, depth: usize) -> mlua::Result<Open> {
        let is_too_deep = depth > self.settings.encode_depth_max as usize;
        if is_too_deep || self.top + 3 > STACK_SLOTS_MAX {
            let text = format!("Cannot serialise, excessive nesting ({depth})");
            return Err(fault(self.lua, &text));
        }
        let places = self.places(&table)?;
        let key = if places.is_some() { Value::Integer(0) } else { Value::Nil };
        self.out.push(if places.is_some() { b'[' } else { b'{' });
        Ok(Open { table, key, shape: Shape { places, is_empty: true } })
    }

    /// How many places the table has as an array; nothing where it is an object.
    fn places(&mut self, table: &Table) -> mlua::Result<Option<i64>> {
        let (mut largest, mut items) = (0_i32, 0_i32);
        for pair in table.pairs::<Value, Value>() {
            self.meter.step(self.out.len())?;
            match pair?.0 {
                Value::Integer(key @ 1..) => {
                    // What is larger than all before it counts as the smallest where it does
                    // not fit, as in Redis.
                    if key > i64::from(largest) {
                        largest = i32::try_from(key).unwrap_or(i32::MIN);
                    }
                    items += 1;
                }
                _ => return Ok(None),
            }
        }
        let Settings { sparse_ratio, sparse_safe, sparse_convert, .. } = self.settings;
        let is_sparse =
            sparse_ratio > 0 && largest > items.wrapping_mul(sparse_ratio) && largest > sparse_safe;
        match (is_sparse, sparse_convert) {
            (true, false) => Err(self.unfit("table", "excessively sparse array")),
            (true, true) => Ok(None),
            (false, _) => Ok(Some(i64::from(largest)).filter(|places| *places > 0)),
        }
    }

    /// Writes what stands before the next value, and returns it.
    fn next(&mut self, open: &mut Open, walk: &Function) -> mlua::Result<Option<Value>> {
        self.meter.step(self.out.len())?;
        let value = if let Some(places) = open.shape.places {
            let place = open.key.as_integer().unwrap_or_default() + 1;
            if place > places {
                return Ok(None);
            }
            open.key = Value::Integer(place);
            open.table.raw_get(place)?
        } else {
            let (key, value) = walk.call::<(Value, Value)>((&open.table, &open.key))?;
            if key.is_nil() {
                return Ok(None);
            }
            open.key = key;
            value
        };
        if !std::mem::take(&mut open.shape.is_empty) {
            self.out.push(b',');
        }
        if open.shape.places.is_none() {
            self.key(&open.key)?;
        }
        Ok(Some(value))
    }

    fn key(&mut self, key: &Value) -> mlua::Result<()> {
        match key {
            Value::String(text) => self.text(text)?,
            Value::Integer(_) | Value::Number(_) => {
                self.out.push(b'"');
                self.scalar(key)?;
                self.out.push(b'"');
            }
            other => {
                let text = "table key must be a number or string";
                return Err(self.unfit(type_name(other), text));
            }
        }
        self.out.push(b':');
        Ok(())
    }

    fn scalar(&mut self, value: &Value) -> mlua::Result<()> {
        match value {
            Value::String(text) => self.text(text)?,
            Value::Integer(number) => self.number(*number as f64)?,
            Value::Number(number) => self.number(*number)?,
            Value::Boolean(true) => self.out.extend_from_slice(b"true"),
            Value::Boolean(false) => self.out.extend_from_slice(b"false"),
            Value::Nil => self.out.extend_from_slice(b"null"),
            Value::LightUserData(data) if data.0.is_null() => {
                self.out.extend_from_slice(b"null");
            }
            other => return Err(self.unfit(type_name(other), "type not supported")),
        }
        Ok(())
    }

    fn number(&mut self, number: f64) -> mlua::Result<()> {
        if !number.is_finite() {
            match self.settings.encode_invalid {
                Invalid::Refused => {
                    return Err(self.unfit("number", "must not be NaN or Inf"));
                }
                Invalid::Null => self.out.extend_from_slice(b"null"),
                Invalid::Written if number.is_nan() => self.out.extend_from_slice(b"nan"),
                Invalid::Written if number < 0.0 => self.out.extend_from_slice(b"-inf"),
                Invalid::Written => self.out.extend_from_slice(b"inf"),
            }
            return Ok(());
        }
        put_number(number, self.settings.precision as usize, &mut self.out);
        Ok(())
    }

    fn text(&mut self, text: &LuaString) -> mlua::Result<()> {
        self.out.push(b'"');
        for piece in text.as_bytes().chunks(PIECE_BYTES) {
            self.meter.step(self.out.len())?;
            put_escaped(piece, &mut self.out);
        }
        self.out.push(b'"');
        Ok(())
    }

    fn unfit(&self, what: &str, text: &str) -> mlua::Error {
        fault(self.lua, &format!("Cannot serialise {what}: {text}"))
    }
}

fn put_escaped(text: &[u8], out: &mut Vec<u8>) {
    for byte in text {
        let escape = match byte {
            b'"' => b'"',
            b'\\' => b'\\',
            b'/' => b'/',
            8 => b'b',
            b'\t' => b't',
            b'\n' => b'n',
            12 => b'f',
            b'\r' => b'r',
            0..0x20 | 0x7f => {
                out.extend_from_slice(format!("\\u{byte:04x}").as_bytes());
                continue;
            }
            _ => {
                out.push(*byte);
                continue;
            }
        };
        out.extend_from_slice(&[b'\\', escape]);
    }
}

/// C's `%.Ng`: as many digits, without zeros at the end, and an exponent where it is shorter.
pub(crate) fn put_number(number: f64, digits: usize, out: &mut Vec<u8>) {
    let text = format!("{number:.*e}", digits.saturating_sub(1));
    let (mantissa, exponent) = text.split_once('e').expect("it was asked for");
    let exponent: i32 = exponent.parse().expect("it is a number");
    let trimmed = |text: &str| {
        let text = if text.contains('.') { text.trim_end_matches('0') } else { text };
        text.trim_end_matches('.').to_owned()
    };
    let text = if (-4..digits as i32).contains(&exponent) {
        let decimals = (digits as i32 - 1 - exponent).max(0) as usize;
        trimmed(&format!("{number:.decimals$}"))
    } else {
        let sign = if exponent < 0 { '-' } else { '+' };
        format!("{}e{sign}{:02}", trimmed(mantissa), exponent.unsigned_abs())
    };
    out.extend_from_slice(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn numbers_are_written_as_c_writes_them(
            bits: u64,
            scale in -330_i32..330,
            digits in 1..=14,
        ) {
            let lua = Lua::new();
            let format: Function = lua.load("return string.format").eval().expect("it is there");
            let shortened = 10_f64.powi(scale) * f64::from(bits as u32);
            for number in [f64::from_bits(bits), shortened, bits as f64 / 1_024.0] {
                if !number.is_finite() {
                    continue;
                }
                let mut out = Vec::new();
                put_number(number, digits as usize, &mut out);
                let expected = format.call::<String>((format!("%.{digits}g"), number));
                let text = String::from_utf8(out).expect("digits");
                prop_assert_eq!(text, expected.expect("a format"));
            }
        }
    }
}
