//! `struct`: numbers and texts to bytes and back, as a format says.
//!
//! A format is letters: `b B h H i I l L T` for whole numbers (`i` with its size), `f d` for
//! others, `s` for a text up to a zero, `cN` for one of N bytes (`c0`: of the number before it),
//! `x` for a byte left out, `< > !N` for what holds from there on. Without `!` nothing is
//! aligned, and the order of bytes is little-endian.

use mlua::{IntoLua, Lua, MultiValue, Table, Value};

use super::arguments::{Arguments, STACK_SLOTS_MAX, fault, stack_overflow, to_signed, to_unsigned};
use super::meter::Meter;

/// The bytes of the largest whole number.
const INTEGER_BYTES_MAX: usize = 32;
/// What `!` alone aligns to.
const ALIGN: usize = 8;

pub(super) fn install(lua: &Lua) -> mlua::Result<Table> {
    let table = lua.create_table()?;
    table.raw_set("pack", lua.create_function(pack)?)?;
    table.raw_set("unpack", lua.create_function(unpack)?)?;
    table.raw_set("size", lua.create_function(size)?)?;
    Ok(table)
}

#[derive(Clone, Copy)]
enum Endian {
    Little,
    Big,
}

/// Reads a format, letter by letter.
struct Format<'a> {
    arguments: &'a Arguments<'a>,
    letters: &'a [u8],
    endian: Endian,
    align: usize,
}

/// A letter, how many bytes it takes, and how many before it are left out.
struct Item {
    letter: u8,
    size: usize,
    padding: usize,
}

impl<'a> Format<'a> {
    /// The first argument up to a zero.
    fn new(arguments: &'a Arguments<'a>, format: &'a [u8]) -> Self {
        let end = format.iter().position(|letter| *letter == 0).unwrap_or(format.len());
        Self { arguments, letters: &format[..end], endian: Endian::Little, align: 1 }
    }

    /// The next letter, where `len` bytes stand before it.
    fn next(&mut self, len: usize) -> mlua::Result<Option<Item>> {
        let Some((&letter, rest)) = self.letters.split_first() else { return Ok(None) };
        self.letters = rest;
        let size = match letter {
            b'b' | b'B' | b'x' => 1,
            b'h' | b'H' => 2,
            b'l' | b'L' | b'T' | b'd' => 8,
            b'f' => 4,
            b'c' => self.number(1)?,
            b'i' | b'I' => self.integer_size()?,
            _ => 0,
        };
        let padding = if letter == b'c' { 0 } else { padding(len, size.min(self.align)) };
        Ok(Some(Item { letter, size, padding }))
    }

    fn integer_size(&mut self) -> mlua::Result<usize> {
        let size = self.number(4)?;
        if size > INTEGER_BYTES_MAX {
            let text = format!("integral size {size} is larger than limit of {INTEGER_BYTES_MAX}");
            return Err(fault(self.arguments.lua, &text));
        }
        Ok(size)
    }

    /// The digits that follow, or `default` where none do.
    fn number(&mut self, default: usize) -> mlua::Result<usize> {
        let digits = self.letters.iter().take_while(|letter| letter.is_ascii_digit()).count();
        if digits == 0 {
            return Ok(default);
        }
        let (digits, rest) = self.letters.split_at(digits);
        self.letters = rest;
        let number = digits.iter().try_fold(0_i32, |number, digit| {
            number.checked_mul(10)?.checked_add(i32::from(digit - b'0'))
        });
        number
            .map(|number| number as usize)
            .ok_or_else(|| fault(self.arguments.lua, "integral size overflow"))
    }

    /// A letter that stands for no value.
    fn control(&mut self, letter: u8) -> mlua::Result<()> {
        match letter {
            b' ' => {}
            b'<' => self.endian = Endian::Little,
            b'>' => self.endian = Endian::Big,
            b'!' => {
                let align = self.number(ALIGN)?;
                if !align.is_power_of_two() {
                    let text = format!("alignment {align} is not a power of 2");
                    return Err(fault(self.arguments.lua, &text));
                }
                self.align = align;
            }
            _ => {
                let text = format!("invalid format option '{}'", char::from(letter));
                return Err(self.arguments.wrong(1, &text));
            }
        }
        Ok(())
    }

    /// Little-endian bytes in the order that holds here.
    fn ordered<const N: usize>(&self, mut bytes: [u8; N]) -> [u8; N] {
        if matches!(self.endian, Endian::Big) {
            bytes.reverse();
        }
        bytes
    }
}

/// How many bytes are missing to a multiple of `size`. Sizes that are no powers of two are
/// aligned to something, too: to what Redis aligns them to.
fn padding(len: usize, size: usize) -> usize {
    if size == 0 { 0 } else { size.wrapping_sub(len & (size - 1)) & (size - 1) }
}

fn pack(lua: &Lua, values: MultiValue) -> mlua::Result<mlua::LuaString> {
    let mut arguments = Arguments::new(lua, values);
    let letters = arguments.string(1)?;
    arguments.push_nil();
    let letters = letters.as_bytes();
    let mut format = Format::new(&arguments, &letters);
    let (mut out, mut place, mut meter) = (Vec::new(), 1, Meter::new(lua));
    let mut next = || {
        place += 1;
        place
    };
    while let Some(Item { letter, size, padding }) = format.next(out.len())? {
        out.resize(out.len() + padding, 0);
        match letter {
            b'b' | b'B' | b'h' | b'H' | b'l' | b'L' | b'T' | b'i' | b'I' => {
                let number = arguments.number(next())?;
                put_integer(number, size, format.endian, &mut out);
            }
            b'x' => out.push(0),
            b'f' => {
                let number = arguments.number(next())? as f32;
                out.extend_from_slice(&format.ordered(number.to_le_bytes()));
            }
            b'd' => {
                let number = arguments.number(next())?;
                out.extend_from_slice(&format.ordered(number.to_le_bytes()));
            }
            b'c' | b's' => {
                let place = next();
                let text = arguments.string(place)?;
                let text = text.as_bytes();
                let size = if size == 0 { text.len() } else { size };
                // Redis names the argument after it.
                let part = text.get(..size);
                let part = part.ok_or_else(|| arguments.wrong(place + 1, "string too short"))?;
                meter.step(out.len() + part.len())?;
                out.extend_from_slice(part);
                if letter == b's' {
                    out.push(0);
                }
            }
            _ => format.control(letter)?,
        }
    }
    lua.create_string(out)
}

fn put_integer(number: f64, size: usize, endian: Endian, out: &mut Vec<u8>) {
    let number = if number < 0.0 { to_signed(number) as u64 } else { to_unsigned(number) };
    let mut bytes = [0; INTEGER_BYTES_MAX];
    bytes[..8].copy_from_slice(&number.to_le_bytes());
    let bytes = &mut bytes[..size];
    if matches!(endian, Endian::Big) {
        bytes.reverse();
    }
    out.extend_from_slice(bytes);
}

fn unpack(lua: &Lua, values: MultiValue) -> mlua::Result<MultiValue> {
    let arguments = Arguments::new(lua, values);
    let (letters, bytes) = (arguments.string(1)?, arguments.string(2)?);
    let start = arguments.integer_or(3, 1)?;
    if start == 0 {
        return Err(arguments.wrong(3, "offset must be 1 or greater"));
    }
    let (letters, bytes) = (letters.as_bytes(), bytes.as_bytes());
    let mut format = Format::new(&arguments, &letters);
    let mut from = Source { arguments: &arguments, bytes: &bytes, at: start as usize - 1 };
    let mut found: Vec<Value> = Vec::new();
    while let Some(item) = format.next(from.at)? {
        from.at = from.at.wrapping_add(item.padding);
        from.check(item.size)?;
        if arguments.len() + found.len() + 2 > STACK_SLOTS_MAX {
            return Err(stack_overflow(lua, "too many results"));
        }
        match item.letter {
            b'x' => from.at += item.size,
            b'b' | b'B' | b'h' | b'H' | b'l' | b'L' | b'T' | b'i' | b'I' => {
                let bytes = from.take(item.size);
                let signed = item.letter.is_ascii_lowercase();
                found.push(Value::Number(integer(bytes, format.endian, signed)));
            }
            b'f' => {
                let bytes = from.take(4).try_into().expect("four were asked for");
                let number = f32::from_le_bytes(format.ordered(bytes));
                found.push(Value::Number(f64::from(number)));
            }
            b'd' => {
                let bytes = from.take(8).try_into().expect("eight were asked for");
                found.push(Value::Number(f64::from_le_bytes(format.ordered(bytes))));
            }
            b'c' => {
                let size = if item.size == 0 { from.size_before(&mut found)? } else { item.size };
                found.push(lua.create_string(from.take(size))?.into_lua(lua)?);
            }
            b's' => found.push(lua.create_string(from.up_to_zero()?)?.into_lua(lua)?),
            _ => format.control(item.letter)?,
        }
    }
    found.push(Value::Number((from.at as i64).wrapping_add(1) as f64));
    Ok(found.into())
}

/// The bytes that are unpacked, and how far they have been.
struct Source<'a> {
    arguments: &'a Arguments<'a>,
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Source<'a> {
    fn check(&self, size: usize) -> mlua::Result<()> {
        let len = self.bytes.len();
        if size <= len && self.at <= len - size {
            Ok(())
        } else {
            Err(self.arguments.wrong(2, "data string too short"))
        }
    }

    /// The next bytes, which have been checked to be there.
    fn take(&mut self, size: usize) -> &'a [u8] {
        let taken = &self.bytes[self.at..self.at + size];
        self.at += size;
        taken
    }

    fn up_to_zero(&mut self) -> mlua::Result<&'a [u8]> {
        let Some(len) = self.bytes[self.at..].iter().position(|byte| *byte == 0) else {
            return Err(fault(self.arguments.lua, "unfinished string in data"));
        };
        let text = self.take(len);
        self.at += 1;
        Ok(text)
    }

    /// The number found last, which is how many bytes come.
    fn size_before(&self, found: &mut Vec<Value>) -> mlua::Result<usize> {
        let lua = self.arguments.lua;
        let size = match found.pop() {
            Some(value) => lua.coerce_number(value)?,
            None => None,
        };
        let size = size.ok_or_else(|| fault(lua, "format 'c0' needs a previous size"))?;
        let size = to_unsigned(size) as usize;
        self.check(size)?;
        Ok(size)
    }
}

/// Of more than eight bytes the last eight count; the sign is where C's shift would look for it.
fn integer(bytes: &[u8], endian: Endian, signed: bool) -> f64 {
    let join = |number: u64, byte: &u8| number << 8 | u64::from(*byte);
    let number = match endian {
        Endian::Big => bytes.iter().fold(0, join),
        Endian::Little => bytes.iter().rev().fold(0, join),
    };
    if !signed {
        return number as f64;
    }
    let mask = u64::MAX << ((bytes.len() * 8).wrapping_sub(1) % 64);
    let number = if number & mask == 0 { number } else { number | mask };
    number.cast_signed() as f64
}

fn size(lua: &Lua, values: MultiValue) -> mlua::Result<f64> {
    let arguments = Arguments::new(lua, values);
    let letters = arguments.string(1)?;
    let letters = letters.as_bytes();
    let mut format = Format::new(&arguments, &letters);
    let mut len: usize = 0;
    while let Some(Item { letter, size, padding }) = format.next(len)? {
        if letter == b's' {
            return Err(arguments.wrong(1, "option 's' has no fixed size"));
        }
        if letter == b'c' && size == 0 {
            return Err(arguments.wrong(1, "option 'c0' has no fixed size"));
        }
        // Letters that mean nothing take nothing here.
        if !letter.is_ascii_alphanumeric() {
            format.control(letter)?;
        }
        len = len.saturating_add(padding).saturating_add(size);
    }
    Ok(len as f64)
}
