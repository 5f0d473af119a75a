//! `cjson`: values to JSON and back, with the settings that a script can change.
//!
//! JSON's null is a light userdata without address; an empty table is an object. Each instance
//! of the library has settings of its own: the global one, and those made by `cjson.new`. Those of
//! the global one last as long as a run: every worker has its own, so the next run could not know
//! whose it finds.

use std::cell::Cell;
use std::rc::Rc;

use mlua::{Function, IntoLua, Lua, MultiValue, Table, Value};

use super::arguments::Arguments;
use super::json_decode::decode;
use super::json_encode::encode;

/// Digits of a number that are written; a double has no more that it keeps for sure.
const PRECISION_MAX: i32 = 14;

#[derive(Clone, Copy, Debug)]
pub(super) struct Settings {
    /// An excessively sparse array becomes an object instead of an error.
    pub(super) sparse_convert: bool,
    /// An array is sparse where it has so many times more places than items; zero for never.
    pub(super) sparse_ratio: i32,
    /// Up to this many places no array is sparse.
    pub(super) sparse_safe: i32,
    pub(super) encode_depth_max: i32,
    pub(super) decode_depth_max: i32,
    pub(super) precision: i32,
    /// Without effect: there is no buffer to keep.
    keep_buffer: bool,
    pub(super) encode_invalid: Invalid,
    pub(super) decode_invalid: bool,
}

/// What becomes of numbers that JSON cannot say.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Invalid {
    Refused,
    Written,
    Null,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            sparse_convert: false,
            sparse_ratio: 2,
            sparse_safe: 10,
            encode_depth_max: 1_000,
            decode_depth_max: 1_000,
            precision: PRECISION_MAX,
            keep_buffer: true,
            encode_invalid: Invalid::Refused,
            decode_invalid: true,
        }
    }
}

/// The settings of one instance.
pub(super) type Shared = Rc<Cell<Settings>>;

/// Leaves the settings of the global instance behind, as data of the state.
pub(super) fn install(lua: &Lua) -> mlua::Result<Table> {
    let settings = Shared::default();
    lua.set_app_data(Rc::clone(&settings));
    // Lua's own way to walk a table: scripts will find another one under its name.
    instance(lua, &settings, &lua.globals().raw_get("next")?)
}

fn instance(lua: &Lua, settings: &Shared, walk: &Function) -> mlua::Result<Table> {
    let table = lua.create_table()?;
    table.raw_set("null", Value::NULL)?;
    // Scripts can read which library this takes the place of.
    table.raw_set("_NAME", "cjson")?;
    table.raw_set("_VERSION", "2.1.0")?;
    let next = walk.clone();
    let new = move |lua: &Lua, _: MultiValue| instance(lua, &Shared::default(), &next);
    table.raw_set("new", lua.create_function(new)?)?;
    let (held, next) = (Rc::clone(settings), walk.clone());
    let encode = move |lua: &Lua, values| encode(&Arguments::new(lua, values), held.get(), &next);
    table.raw_set("encode", lua.create_function(encode)?)?;
    let held = Rc::clone(settings);
    let decode = move |lua: &Lua, values| decode(&Arguments::new(lua, values), held.get());
    table.raw_set("decode", lua.create_function(decode)?)?;
    for (name, run) in SETTERS {
        table.raw_set(*name, setter(lua, settings, *run)?)?;
    }
    Ok(table)
}

/// Changes settings as arguments say and answers what holds then.
type Setter = fn(&Arguments<'_>, &mut Settings) -> mlua::Result<MultiValue>;

const SETTERS: &[(&str, Setter)] = &[
    ("encode_sparse_array", sparse_array),
    ("encode_max_depth", |given, settings| {
        allow(given, 1)?;
        one(whole(given, 1, &mut settings.encode_depth_max, (1, i32::MAX))?)
    }),
    ("decode_max_depth", |given, settings| {
        allow(given, 1)?;
        one(whole(given, 1, &mut settings.decode_depth_max, (1, i32::MAX))?)
    }),
    ("encode_number_precision", |given, settings| {
        allow(given, 1)?;
        one(whole(given, 1, &mut settings.precision, (1, PRECISION_MAX))?)
    }),
    ("encode_keep_buffer", |given, settings| {
        allow(given, 1)?;
        one(switch(given, 1, &mut settings.keep_buffer)?)
    }),
    ("encode_invalid_numbers", encode_invalid_numbers),
    ("decode_invalid_numbers", |given, settings| {
        allow(given, 1)?;
        one(switch(given, 1, &mut settings.decode_invalid)?)
    }),
];

fn setter(lua: &Lua, settings: &Shared, run: Setter) -> mlua::Result<Function> {
    let settings = Rc::clone(settings);
    lua.create_function(move |lua, values| {
        let mut changed = settings.get();
        let answer = run(&Arguments::new(lua, values), &mut changed);
        // What was set before an argument turned out to be wrong stays set.
        settings.set(changed);
        answer
    })
}

fn sparse_array(given: &Arguments<'_>, settings: &mut Settings) -> mlua::Result<MultiValue> {
    allow(given, 3)?;
    let convert = switch(given, 1, &mut settings.sparse_convert)?;
    let ratio = whole(given, 2, &mut settings.sparse_ratio, (0, i32::MAX))?;
    let safe = whole(given, 3, &mut settings.sparse_safe, (0, i32::MAX))?;
    Ok([convert, ratio, safe].into_iter().collect())
}

fn encode_invalid_numbers(
    given: &Arguments<'_>,
    settings: &mut Settings,
) -> mlua::Result<MultiValue> {
    allow(given, 1)?;
    let setting = &mut settings.encode_invalid;
    match option(given, 1, &["off", "on", "null"])? {
        Some(0) => *setting = Invalid::Refused,
        Some(1) => *setting = Invalid::Written,
        Some(_) => *setting = Invalid::Null,
        None => {}
    }
    one(match setting {
        Invalid::Refused => Value::Boolean(false),
        Invalid::Written => Value::Boolean(true),
        Invalid::Null => "null".into_lua(given.lua)?,
    })
}

fn one(value: Value) -> mlua::Result<MultiValue> {
    Ok(MultiValue::from_iter([value]))
}

fn allow(given: &Arguments<'_>, count_max: usize) -> mlua::Result<()> {
    if given.len() > count_max {
        return Err(given.wrong(count_max + 1, "found too many arguments"));
    }
    Ok(())
}

/// A setting that is a number within bounds. A number out of them is called the first argument,
/// whichever it was.
fn whole(
    given: &Arguments<'_>,
    place: usize,
    setting: &mut i32,
    (min, max): (i32, i32),
) -> mlua::Result<Value> {
    if !matches!(given.value(place), Value::Nil) {
        let number = given.integer(place)? as i32;
        if !(min..=max).contains(&number) {
            let text = format!("expected integer between {min} and {max}");
            return Err(given.wrong(1, &text));
        }
        *setting = number;
    }
    Ok(Value::Integer(i64::from(*setting)))
}

fn switch(given: &Arguments<'_>, place: usize, setting: &mut bool) -> mlua::Result<Value> {
    if let Some(chosen) = option(given, place, &["off", "on"])? {
        *setting = chosen == 1;
    }
    Ok(Value::Boolean(*setting))
}

/// Which of the names was given; a boolean stands for the first or the second.
fn option(given: &Arguments<'_>, place: usize, names: &[&str]) -> mlua::Result<Option<usize>> {
    let name = match given.value(place) {
        Value::Nil => return Ok(None),
        Value::Boolean(on) => return Ok(Some(usize::from(on))),
        _ => given.string(place)?,
    };
    let name = name.as_bytes();
    let chosen = names.iter().position(|known| known.as_bytes() == &*name);
    chosen.map(Some).ok_or_else(|| {
        let name = String::from_utf8_lossy(&name);
        given.wrong(place, &format!("invalid option '{name}'"))
    })
}
