//! `cmsgpack`: values to `MessagePack`, each in its shortest form.
//!
//! A table is an array where its keys are 1 to n, and a map otherwise. Tables nested deeper than
//! sixteen are nil, which ends one that holds itself; whatever has no form is nil, too.

use mlua::{Lua, LuaString, MultiValue, Table, Value};

use super::arguments::{Arguments, to_signed};
use super::meter::Meter;
use super::msgpack_decode::{unpack, unpack_limit, unpack_one};

const NESTING_MAX: usize = 16;

pub(super) fn install(lua: &Lua) -> mlua::Result<Table> {
    let table = lua.create_table()?;
    table.raw_set("pack", lua.create_function(pack)?)?;
    table.raw_set("unpack", lua.create_function(unpack)?)?;
    table.raw_set("unpack_one", lua.create_function(unpack_one)?)?;
    table.raw_set("unpack_limit", lua.create_function(unpack_limit)?)?;
    // Scripts can read who made the library whose place this takes.
    table.raw_set("_NAME", "cmsgpack")?;
    table.raw_set("_VERSION", "lua-cmsgpack 0.4.0")?;
    table.raw_set("_COPYRIGHT", "Copyright (C) 2012, Salvatore Sanfilippo")?;
    table.raw_set("_DESCRIPTION", "MessagePack C implementation for Lua")?;
    Ok(table)
}

fn pack(lua: &Lua, values: MultiValue) -> mlua::Result<LuaString> {
    let arguments = Arguments::new(lua, values);
    if arguments.len() == 0 {
        return Err(arguments.wrong(0, "MessagePack pack needs input."));
    }
    let mut packer = Packer { out: Vec::new(), meter: Meter::new(lua) };
    for value in arguments.values() {
        packer.put(value, 0)?;
    }
    lua.create_string(packer.out)
}

struct Packer<'l> {
    out: Vec<u8>,
    meter: Meter<'l>,
}

impl Packer<'_> {
    fn put(&mut self, value: &Value, level: usize) -> mlua::Result<()> {
        self.meter.step(self.out.len())?;
        let out = &mut self.out;
        match value {
            Value::Boolean(false) => out.push(0xc2),
            Value::Boolean(true) => out.push(0xc3),
            Value::Integer(number) => put_integer(*number, out),
            Value::Number(number) => put_number(*number, out),
            Value::String(text) => put_text(&text.as_bytes(), out),
            Value::Table(table) if level < NESTING_MAX => self.table(table, level)?,
            _ => out.push(0xc0),
        }
        Ok(())
    }

    fn table(&mut self, table: &Table, level: usize) -> mlua::Result<()> {
        if is_array(table)? {
            let len = table.raw_len();
            match len {
                0..16 => self.out.push(0x90 | len as u8),
                _ => put_count(len, [0xdc, 0xdd], &mut self.out),
            }
            for place in 1..=len {
                self.put(&table.raw_get(place)?, level + 1)?;
            }
            return Ok(());
        }
        let mut len = 0;
        table.for_each(|_: Value, _: Value| {
            len += 1;
            Ok(())
        })?;
        match len {
            0..16 => self.out.push(0x80 | len as u8),
            _ => put_count(len, [0xde, 0xdf], &mut self.out),
        }
        for pair in table.pairs::<Value, Value>() {
            let (key, value) = pair?;
            self.put(&key, level + 1)?;
            self.put(&value, level + 1)?;
        }
        Ok(())
    }
}

fn put_integer(number: i64, out: &mut Vec<u8>) {
    let bytes = number.to_be_bytes();
    let (head, size) = match number {
        -32..=127 => return out.push(number as u8),
        128..=0xff => (0xcc, 1),
        0x100..=0xffff => (0xcd, 2),
        0x1_0000..=0xffff_ffff => (0xce, 4),
        0x1_0000_0000.. => (0xcf, 8),
        -128..-32 => (0xd0, 1),
        -0x8000..-128 => (0xd1, 2),
        -0x8000_0000..-0x8000 => (0xd2, 4),
        ..-0x8000_0000 => (0xd3, 8),
    };
    out.push(head);
    out.extend_from_slice(&bytes[bytes.len() - size..]);
}

fn put_number(number: f64, out: &mut Vec<u8>) {
    #[expect(clippy::float_cmp, reason = "whether it is that very number")]
    let (whole, single) = (
        to_signed(number) as f64 == number && number < 2_f64.powi(63),
        f64::from(number as f32) == number,
    );
    if whole {
        put_integer(number as i64, out);
    } else if single {
        out.push(0xca);
        out.extend_from_slice(&(number as f32).to_be_bytes());
    } else {
        out.push(0xcb);
        out.extend_from_slice(&number.to_be_bytes());
    }
}

fn put_text(text: &[u8], out: &mut Vec<u8>) {
    match text.len() {
        len @ 0..32 => out.push(0xa0 | len as u8),
        len @ 32..=0xff => out.extend_from_slice(&[0xd9, len as u8]),
        len => put_count(len, [0xda, 0xdb], out),
    }
    out.extend_from_slice(text);
}

/// A count in two bytes or four, after the head that says which.
fn put_count(count: usize, heads: [u8; 2], out: &mut Vec<u8>) {
    if let Ok(count) = u16::try_from(count) {
        out.push(heads[0]);
        out.extend_from_slice(&count.to_be_bytes());
    } else {
        out.push(heads[1]);
        out.extend_from_slice(&(count as u32).to_be_bytes());
    }
}

/// Whether the keys are 1 to n: all positive and whole, and as many as the largest says.
fn is_array(table: &Table) -> mlua::Result<bool> {
    let (mut count, mut largest) = (0_u64, 0_u64);
    for pair in table.pairs::<Value, Value>() {
        match pair?.0 {
            Value::Integer(key @ 1..=0x7fff_ffff) => {
                count += 1;
                largest = largest.max(key.unsigned_abs());
            }
            _ => return Ok(false),
        }
    }
    Ok(count == largest)
}
