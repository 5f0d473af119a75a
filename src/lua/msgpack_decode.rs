//! `cmsgpack`: `MessagePack` to values.
//!
//! Every number is a double, as all are in Lua. What is nested stands on a [`Nest`]; it ends at
//! the depth at which Lua's stack would, with the same words.

use mlua::{IntoLua, Lua, MultiValue, Table, Value};

use super::arguments::{Arguments, STACK_SLOTS_MAX, fault, stack_overflow};
use super::failure::Thrown;
use super::nest::Nest;

pub(super) fn unpack(lua: &Lua, values: MultiValue) -> mlua::Result<MultiValue> {
    all(&Arguments::new(lua, values), 0, 0)
}

pub(super) fn unpack_one(lua: &Lua, values: MultiValue) -> mlua::Result<MultiValue> {
    let arguments = Arguments::new(lua, values);
    let start = arguments.integer_or(2, 0)?;
    all(&arguments, 1, start)
}

pub(super) fn unpack_limit(lua: &Lua, values: MultiValue) -> mlua::Result<MultiValue> {
    let arguments = Arguments::new(lua, values);
    let limit = arguments.integer(2)?;
    let start = arguments.integer_or(3, 0)?;
    all(&arguments, limit, start)
}

/// Up to `limit` values from `start` on, after where to go on; with neither, all of them.
fn all(arguments: &Arguments<'_>, limit: i64, start: i64) -> mlua::Result<MultiValue> {
    let lua = arguments.lua;
    let bytes = arguments.string(1)?;
    let bytes = bytes.as_bytes();
    let len = bytes.len();
    if start < 0 || limit < 0 {
        let (start, len) = (start as i32, len as i32);
        let text = format!("Invalid request to unpack with offset of {start} and limit of {len}.");
        return Err(fault(lua, &text));
    }
    let Some(rest) = bytes.get(start as usize..) else {
        let start = start as i32;
        let text = format!("Start offset {start} greater than input length {len}.");
        return Err(fault(lua, &text));
    };
    let everything = limit == 0 && start == 0;
    let count_max = if everything { usize::MAX } else { limit as usize };
    let mut decoder = Decoder { lua, rest, top: 1 };
    let mut values = MultiValue::new();
    while !decoder.rest.is_empty() && values.len() < count_max {
        values.push_back(decoder.value()?);
        decoder.top += 1;
    }
    if !everything {
        let next = if decoder.rest.is_empty() { -1 } else { (len - decoder.rest.len()) as i64 };
        values.push_front(Value::Integer(next));
    }
    Ok(values)
}

struct Decoder<'a> {
    lua: &'a Lua,
    rest: &'a [u8],
    /// How many slots of its stack Lua's own decoder would have filled.
    top: usize,
}

/// What begins with a head.
enum Begun {
    Whole(Value),
    Array(u32),
    Map(u32),
}

/// A table being filled.
struct Open {
    table: Table,
    /// Of a map, the key whose value comes next; of an array, the place before the next.
    key: Value,
    fill: Fill,
}

#[derive(Clone, Copy)]
struct Fill {
    /// Values that are missing; keys do not count.
    missing: u32,
    is_map: bool,
    has_key: bool,
}

impl Decoder<'_> {
    fn value(&mut self) -> mlua::Result<Value> {
        let (mut nest, mut fills) = (Nest::new(), Vec::new());
        let mut open: Option<Open> = None;
        loop {
            let mut value = match self.begin()? {
                Begun::Whole(value) => value,
                begun @ (Begun::Array(_) | Begun::Map(_)) => {
                    if let Some(open) = &open {
                        nest.push(self.lua, &open.table, &open.key)?;
                        fills.push(open.fill);
                    }
                    let begun = self.open(&begun)?;
                    if begun.fill.missing > 0 {
                        self.top += begun.slots();
                        open = Some(begun);
                        continue;
                    }
                    open = resume(&mut nest, &mut fills)?;
                    Value::Table(begun.table)
                }
            };
            // A value that ends a table is followed by the table itself as a value.
            loop {
                let Some(around) = &mut open else { return Ok(value) };
                self.top -= around.slots();
                let is_full = around.take(value)?;
                if !is_full {
                    self.top += around.slots();
                    break;
                }
                value = Value::Table(around.table.clone());
                open = resume(&mut nest, &mut fills)?;
            }
        }
    }

    fn open(&self, begun: &Begun) -> mlua::Result<Open> {
        let (missing, is_map) = match begun {
            Begun::Array(len) => (*len, false),
            Begun::Map(len) => (*len, true),
            Begun::Whole(_) => (0, false),
        };
        if !is_map && self.top + 2 > STACK_SLOTS_MAX {
            return Err(stack_overflow(self.lua, "in function mp_decode_to_lua_array"));
        }
        let key = if is_map { Value::Nil } else { Value::Integer(0) };
        let fill = Fill { missing, is_map, has_key: false };
        Ok(Open { table: self.lua.create_table()?, key, fill })
    }

    fn begin(&mut self) -> mlua::Result<Begun> {
        let head = self.byte()?;
        if self.top + 1 > STACK_SLOTS_MAX {
            let text = "too many return values at once; use unpack_one or unpack_limit instead.";
            return Err(stack_overflow(self.lua, text));
        }
        Ok(match head {
            0x00..=0x7f => number(f64::from(head)),
            0x80..=0x8f => Begun::Map(u32::from(head & 0x0f)),
            0x90..=0x9f => Begun::Array(u32::from(head & 0x0f)),
            0xa0..=0xbf => self.text(u32::from(head & 0x1f))?,
            0xc0 => Begun::Whole(Value::Nil),
            0xc2 => Begun::Whole(Value::Boolean(false)),
            0xc3 => Begun::Whole(Value::Boolean(true)),
            0xca => number(f64::from(f32::from_be_bytes(self.array()?))),
            0xcb => number(f64::from_be_bytes(self.array()?)),
            0xcc => number(f64::from(self.byte()?)),
            0xcd => number(f64::from(u16::from_be_bytes(self.array()?))),
            0xce => number(f64::from(u32::from_be_bytes(self.array()?))),
            0xd0 => number(f64::from(i8::from_be_bytes(self.array()?))),
            0xd1 => number(f64::from(i16::from_be_bytes(self.array()?))),
            0xd2 => number(f64::from(i32::from_be_bytes(self.array()?))),
            // Also what has no sign is read as if it had one, as in Redis.
            0xcf | 0xd3 => number(i64::from_be_bytes(self.array()?) as f64),
            0xd9 => {
                let len = self.byte()?;
                self.text(u32::from(len))?
            }
            0xda => {
                let len = u16::from_be_bytes(self.array()?);
                self.text(u32::from(len))?
            }
            0xdb => {
                let len = u32::from_be_bytes(self.array()?);
                self.text(len)?
            }
            0xdc => Begun::Array(u32::from(u16::from_be_bytes(self.array()?))),
            0xdd => Begun::Array(u32::from_be_bytes(self.array()?)),
            0xde => Begun::Map(u32::from(u16::from_be_bytes(self.array()?))),
            0xdf => Begun::Map(u32::from_be_bytes(self.array()?)),
            0xe0..=0xff => number(f64::from(head.cast_signed())),
            0xc1 | 0xc4..=0xc9 | 0xd4..=0xd8 => {
                return Err(fault(self.lua, "Bad data format in input."));
            }
        })
    }

    fn text(&mut self, len: u32) -> mlua::Result<Begun> {
        let Some((text, rest)) = self.rest.split_at_checked(len as usize) else {
            return Err(self.cut_short());
        };
        self.rest = rest;
        Ok(Begun::Whole(self.lua.create_string(text)?.into_lua(self.lua)?))
    }

    fn byte(&mut self) -> mlua::Result<u8> {
        self.array().map(|[byte]| byte)
    }

    fn array<const N: usize>(&mut self) -> mlua::Result<[u8; N]> {
        let (bytes, rest) = self.rest.split_first_chunk().ok_or_else(|| self.cut_short())?;
        self.rest = rest;
        Ok(*bytes)
    }

    fn cut_short(&self) -> mlua::Error {
        fault(self.lua, "Missing bytes in input.")
    }
}

impl Open {
    /// Slots that the table takes while its next key or value is decoded.
    fn slots(&self) -> usize {
        if self.fill.is_map && !self.fill.has_key { 1 } else { 2 }
    }

    /// Puts the next key or value where it belongs. Returns whether that was the last.
    fn take(&mut self, value: Value) -> mlua::Result<bool> {
        if self.fill.is_map && !self.fill.has_key {
            self.key = value;
            self.fill.has_key = true;
            return Ok(false);
        }
        match &mut self.key {
            Value::Nil => return Err(no_key("nil")),
            Value::Number(key) if key.is_nan() => return Err(no_key("NaN")),
            Value::Integer(place) if !self.fill.is_map => *place += 1,
            _ => {}
        }
        self.table.raw_set(&self.key, value)?;
        self.fill.has_key = false;
        self.fill.missing -= 1;
        Ok(self.fill.missing == 0)
    }
}

/// The table around the one that has ended.
fn resume(nest: &mut Nest, fills: &mut Vec<Fill>) -> mlua::Result<Option<Open>> {
    let around = nest.pop()?.zip(fills.pop());
    Ok(around.map(|((table, key), fill)| Open { table, key, fill }))
}

fn number(number: f64) -> Begun {
    Begun::Whole(Value::Number(number))
}

/// The interpreter's own error, which names no line.
fn no_key(what: &str) -> mlua::Error {
    Thrown::text(format!("table index is {what}")).into()
}
