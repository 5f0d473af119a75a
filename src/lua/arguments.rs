//! The arguments of a library's function, read as Lua's own C functions read theirs.
//!
//! A number may come as its text and a text as a number; a wrong argument is named by its place
//! and by the name under which the script called the function. Places count from 1.

use mlua::{Error, Lua, LuaString, MultiValue, Value};

use super::failure::Thrown;

/// Slots of Lua's stack that one C function may fill: the depth of everything nested is what it
/// is because of it.
pub(super) const STACK_SLOTS_MAX: usize = 8_000;

pub(super) struct Arguments<'l> {
    pub(super) lua: &'l Lua,
    values: Vec<Value>,
}

impl<'l> Arguments<'l> {
    pub(super) fn new(lua: &'l Lua, values: MultiValue) -> Self {
        Self { lua, values: values.into_vec() }
    }

    pub(super) fn len(&self) -> usize {
        self.values.len()
    }

    pub(super) fn values(&self) -> &[Value] {
        &self.values
    }

    pub(super) fn get(&self, place: usize) -> Option<&Value> {
        self.values.get(place.checked_sub(1)?)
    }

    /// The argument, or nil where it was left out.
    pub(super) fn value(&self, place: usize) -> Value {
        self.get(place).cloned().unwrap_or(Value::Nil)
    }

    /// Adds what C functions leave behind the arguments.
    pub(super) fn push_nil(&mut self) {
        self.values.push(Value::Nil);
    }

    pub(super) fn string(&self, place: usize) -> mlua::Result<LuaString> {
        match self.lua.coerce_string(self.value(place))? {
            Some(string) => Ok(string),
            None => Err(self.wrong_type(place, "string")),
        }
    }

    pub(super) fn number(&self, place: usize) -> mlua::Result<f64> {
        match self.get(place) {
            Some(Value::Number(number)) => Ok(*number),
            Some(Value::Integer(number)) => Ok(*number as f64),
            _ => match self.lua.coerce_number(self.value(place))? {
                Some(number) => Ok(number),
                None => Err(self.wrong_type(place, "number")),
            },
        }
    }

    pub(super) fn integer(&self, place: usize) -> mlua::Result<i64> {
        self.number(place).map(to_signed)
    }

    /// The integer, or `default` where nil stands or nothing.
    pub(super) fn integer_or(&self, place: usize, default: i64) -> mlua::Result<i64> {
        match self.get(place) {
            None | Some(Value::Nil) => Ok(default),
            Some(_) => self.integer(place),
        }
    }

    /// What Lua says of an argument that `text` finds fault with.
    pub(super) fn wrong(&self, place: usize, text: &str) -> Error {
        let named = self.lua.inspect_stack(0, |function| {
            let names = function.names();
            let name = names.name.map_or_else(|| "?".to_owned(), std::borrow::Cow::into_owned);
            (name, names.name_what == Some("method"))
        });
        let (name, is_method) = named.unwrap_or_else(|| ("?".to_owned(), false));
        let shown = match place {
            1 if is_method => {
                return fault(self.lua, &format!("calling '{name}' on bad self ({text})"));
            }
            place if is_method => place.saturating_sub(1),
            place => place,
        };
        fault(self.lua, &format!("bad argument #{shown} to '{name}' ({text})"))
    }

    pub(super) fn wrong_type(&self, place: usize, expected: &str) -> Error {
        let got = self.get(place).map_or("no value", type_name);
        self.wrong(place, &format!("{expected} expected, got {got}"))
    }
}

/// Lua's name for the type of a value.
pub(super) fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Integer(_) | Value::Number(_) => "number",
        Value::LightUserData(_) | Value::Error(_) => "userdata",
        other => other.type_name(),
    }
}

/// An error with the place in the script that called the function, where there is one.
pub(super) fn fault(lua: &Lua, text: &str) -> Error {
    Thrown::at_line(lua, text.as_bytes()).into()
}

/// What Lua says where its stack would not hold what a function puts there.
pub(super) fn stack_overflow(lua: &Lua, text: &str) -> Error {
    fault(lua, &format!("stack overflow ({text})"))
}

/// As processors truncate: whatever does not fit is the smallest number.
pub(super) fn to_signed(number: f64) -> i64 {
    const END: f64 = 9_223_372_036_854_775_808.0;
    if (-END..END).contains(&number) { number as i64 } else { i64::MIN }
}

/// The same without a sign: negative numbers wrap.
pub(super) fn to_unsigned(number: f64) -> u64 {
    const HALF: f64 = 9_223_372_036_854_775_808.0;
    if number >= HALF {
        to_signed(number - HALF) as u64 ^ 1 << 63
    } else {
        to_signed(number) as u64
    }
}
