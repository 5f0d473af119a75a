//! `bit`: operations on 32 bits, whose results are signed.
//!
//! A number is brought to 32 bits by adding 1.5 * 2^52 and looking at the low half of what that
//! is in memory: whole numbers wrap, others are rounded to the nearest even one.

use mlua::{Function, Lua, MultiValue, Table};

use super::arguments::Arguments;

/// Pushes a number's whole part into the low bits of the mantissa.
const MAGIC: f64 = 6_755_399_441_055_744.0;

const HEX_DIGITS_MAX: u32 = 8;

pub(super) fn install(lua: &Lua) -> mlua::Result<Table> {
    let table = lua.create_table()?;
    table.raw_set("tobit", unary(lua, |bits| bits)?)?;
    table.raw_set("bnot", unary(lua, |bits| !bits)?)?;
    table.raw_set("bswap", unary(lua, u32::swap_bytes)?)?;
    table.raw_set("band", folding(lua, |left, right| left & right)?)?;
    table.raw_set("bor", folding(lua, |left, right| left | right)?)?;
    table.raw_set("bxor", folding(lua, |left, right| left ^ right)?)?;
    table.raw_set("lshift", shift(lua, |bits, by| bits << by)?)?;
    table.raw_set("rshift", shift(lua, |bits, by| bits >> by)?)?;
    table.raw_set("arshift", shift(lua, |bits, by| (bits.cast_signed() >> by).cast_unsigned())?)?;
    table.raw_set("rol", shift(lua, u32::rotate_left)?)?;
    table.raw_set("ror", shift(lua, u32::rotate_right)?)?;
    table.raw_set("tohex", lua.create_function(tohex)?)?;
    Ok(table)
}

fn unary(lua: &Lua, of: fn(u32) -> u32) -> mlua::Result<Function> {
    lua.create_function(move |lua, values: MultiValue| {
        let arguments = Arguments::new(lua, values);
        Ok(of(bits(&arguments, 1)?).cast_signed())
    })
}

/// Of any number of arguments; the last is read first but for the very first.
fn folding(lua: &Lua, of: fn(u32, u32) -> u32) -> mlua::Result<Function> {
    lua.create_function(move |lua, values: MultiValue| {
        let arguments = Arguments::new(lua, values);
        let first = bits(&arguments, 1)?;
        let places = (2..=arguments.len()).rev();
        let mut rest = places.map(|place| bits(&arguments, place));
        let all = rest.try_fold(first, |sum, next| next.map(|next| of(sum, next)))?;
        Ok(all.cast_signed())
    })
}

fn shift(lua: &Lua, of: fn(u32, u32) -> u32) -> mlua::Result<Function> {
    lua.create_function(move |lua, values: MultiValue| {
        let arguments = Arguments::new(lua, values);
        let shifted = bits(&arguments, 1)?;
        Ok(of(shifted, bits(&arguments, 2)? & 31).cast_signed())
    })
}

/// The lowest digits; in capitals where their number is negative.
fn tohex(lua: &Lua, values: MultiValue) -> mlua::Result<String> {
    let arguments = Arguments::new(lua, values);
    let number = bits(&arguments, 1)?;
    let digits = match arguments.get(2) {
        None => HEX_DIGITS_MAX.cast_signed(),
        Some(_) => bits(&arguments, 2)?.cast_signed(),
    };
    let shown = digits.unsigned_abs().min(HEX_DIGITS_MAX) as usize;
    let text = if digits < 0 { format!("{number:08X}") } else { format!("{number:08x}") };
    Ok(text[text.len() - shown..].to_owned())
}

fn bits(arguments: &Arguments<'_>, place: usize) -> mlua::Result<u32> {
    let number = arguments.number(place)?;
    Ok((number + MAGIC).to_bits() as u32)
}
