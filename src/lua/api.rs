//! The functions of the `redis` table, and the few with which the prelude guards the rest.
//!
//! Texts of errors are Redis's. A wrong use is raised, except where Redis returns an error table
//! instead (`error_reply`, `status_reply`, and all of `pcall`).

use std::rc::Rc;

use mlua::{Lua, MultiValue, Table, Value};

use super::call::LogLevel;
use super::failure::{Caught, Thrown};
use super::from_reply::read_reply;
use super::random::Random;
use super::register::Registered;
use super::run::{Kind, Run, Stop};
use super::searching;
use super::sha::Sha;
use super::words::{as_number, as_text, fill};
use crate::protocol::Resp;

const NO_WORDS: &str = "Please specify at least one argument for this redis lib call";
/// Of a line that a script logs; the rest is cut off.
const LOG_BYTES_MAX: usize = 64 << 10;
const WRONG_REPLY: &str = "wrong number or type of arguments";

/// A code alone, such as `UNKNOWN_CLIENT` or `OVERWEIGHT:5:3`: limiters that were written for
/// Redis before 7 send such, and compare what comes back.
fn is_bare_code(text: &[u8]) -> bool {
    let code = text.split(|byte| *byte == b':').next().unwrap_or_default();
    let legal = |byte: &u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || *byte == b'_';
    code.first().is_some_and(u8::is_ascii_uppercase)
        && code.iter().all(legal)
        && !text.iter().any(u8::is_ascii_whitespace)
}

/// Everything the prelude is given.
pub(super) fn natives(lua: &Lua, run: &Rc<Run>) -> mlua::Result<Table> {
    let table = lua.create_table()?;
    commands(lua, run, &table)?;
    replies(lua, run, &table)?;
    settings(lua, run, &table)?;
    numbers(lua, run, &table)?;
    guards(lua, run, &table)?;
    searching::install(lua, run, &table)?;
    Ok(table)
}

fn commands(lua: &Lua, run: &Rc<Run>, table: &Table) -> mlua::Result<()> {
    for (name, raises) in [("call", true), ("pcall", false)] {
        let run = Rc::clone(run);
        let call = lua.create_function(move |lua, words: MultiValue| {
            Run::free_memory(lua)?;
            let value = call(lua, &run, &words, raises)?;
            run.bound_memory(lua)?;
            Ok(value)
        })?;
        table.raw_set(name, call)?;
    }
    let run = Rc::clone(run);
    let check = lua.create_function(move |_, words: MultiValue| {
        if words.is_empty() {
            return Err(Thrown::misuse(NO_WORDS).into());
        }
        let allowed = run.allows(|into, max| fill(into, &words, max)).map_err(Thrown::misuse)?;
        let unknown = "Invalid command passed to redis.acl_check_cmd()";
        allowed.ok_or_else(|| Thrown::misuse(unknown).into())
    })?;
    table.raw_set("acl_check_cmd", check)
}

fn call(lua: &Lua, run: &Run, words: &MultiValue, raises: bool) -> mlua::Result<Value> {
    let result = if words.is_empty() {
        Err(NO_WORDS)
    } else {
        run.call(lua, |into, max| fill(into, words, max), |reply| read_reply(lua, reply, raises))?
    };
    match result {
        Ok(value) => Ok(value),
        Err(text) if raises => Err(Thrown::misuse(text).into()),
        Err(text) => {
            let table = lua.create_table()?;
            table.raw_set("err", format!("ERR {text}"))?;
            Ok(Value::Table(table))
        }
    }
}

fn replies(lua: &Lua, run: &Rc<Run>, table: &Table) -> mlua::Result<()> {
    let bare_codes = run.bare_codes;
    let field = |lua: &Lua, name: &str, text: &[u8]| {
        let table = lua.create_table()?;
        table.raw_set(name, lua.create_string(text)?)?;
        Ok(table)
    };
    let error_reply = lua.create_function(move |lua, args: MultiValue| {
        let Some(text) = only_string(&args) else {
            return field(lua, "err", format!("ERR {WRONG_REPLY}").as_bytes());
        };
        let text = text.strip_prefix(b"-").unwrap_or(&text);
        if text.contains(&b' ') || bare_codes && is_bare_code(text) {
            return field(lua, "err", text);
        }
        field(lua, "err", &[b"ERR ", text].concat())
    })?;
    table.raw_set("error_reply", error_reply)?;
    let status_reply =
        lua.create_function(move |lua, args: MultiValue| match only_string(&args) {
            Some(text) => field(lua, "ok", &text),
            None => field(lua, "err", format!("ERR {WRONG_REPLY}").as_bytes()),
        })?;
    table.raw_set("status_reply", status_reply)
}

fn only_string(args: &MultiValue) -> Option<Vec<u8>> {
    match (args.len(), args.front()) {
        (1, Some(Value::String(text))) => Some(text.as_bytes().to_vec()),
        _ => None,
    }
}

fn settings(lua: &Lua, run: &Rc<Run>, table: &Table) -> mlua::Result<()> {
    let log = lua.create_function(|_, args: MultiValue| {
        if args.len() < 2 {
            return Err(Thrown::misuse("redis.log() requires two arguments or more.").into());
        }
        let (Value::Integer(_) | Value::Number(_)) = args[0] else {
            let text = "First argument must be a number (log level).";
            return Err(Thrown::misuse(text).into());
        };
        let level = match as_number(&args[0]).unwrap_or_default() as i64 {
            0 => LogLevel::Debug,
            1 => LogLevel::Verbose,
            2 => LogLevel::Notice,
            3 => LogLevel::Warning,
            _ => return Err(Thrown::misuse("Invalid debug level.").into()),
        };
        let mut line = Vec::new();
        for (place, text) in args.iter().skip(1).filter_map(as_text).enumerate() {
            line.extend_from_slice(if place == 0 { b"" } else { b" " });
            let room = LOG_BYTES_MAX.saturating_sub(line.len());
            line.extend_from_slice(text.get(..room).unwrap_or(&text));
        }
        Run::log(level, &line);
        Ok(())
    })?;
    table.raw_set("log", log)?;
    let run = Rc::clone(run);
    let setresp = lua.create_function(move |_, args: MultiValue| {
        if args.len() != 1 {
            return Err(Thrown::misuse("redis.setresp() requires one argument.").into());
        }
        run.resp.set(match as_number(&args[0]).map(|version| version as i64) {
            Some(2) => Resp::V2,
            Some(3) => Resp::V3,
            _ => return Err(Thrown::misuse("RESP version must be 2 or 3.").into()),
        });
        Ok(())
    })?;
    table.raw_set("setresp", setresp)?;
    let set_repl = lua.create_function(|_, args: MultiValue| {
        if args.len() != 1 {
            return Err(Thrown::misuse("redis.set_repl() requires two arguments.").into());
        }
        match as_number(&args[0]).unwrap_or_default() as i64 {
            0..=3 => Ok(()),
            _ => Err(Thrown::misuse(
                "Invalid replication flags. Use REPL_AOF, REPL_REPLICA, REPL_ALL or REPL_NONE.",
            )
            .into()),
        }
    })?;
    table.raw_set("set_repl", set_repl)?;
    let sha1hex = lua.create_function(|_, args: MultiValue| {
        if args.len() != 1 {
            return Err(Thrown::misuse("wrong number of arguments").into());
        }
        Ok(Sha::of(&as_text(&args[0]).unwrap_or_default()).hex())
    })?;
    table.raw_set("sha1hex", sha1hex)
}

fn numbers(lua: &Lua, run: &Rc<Run>, table: &Table) -> mlua::Result<()> {
    let seeded = Rc::clone(run);
    let random = lua.create_function(move |lua, args: MultiValue| {
        let mut random = seeded.random.get();
        let drawn = random.next();
        seeded.random.set(random);
        let whole = |place| integer(lua, &args, place, "random");
        let empty = |place: usize| {
            let text = format!("bad argument #{place} to 'random' (interval is empty)");
            mlua::Error::from(Thrown::at_line(lua, text.as_bytes()))
        };
        match args.len() {
            0 => Ok(drawn),
            1 => match whole(0)? {
                upper if upper >= 1.0 => Ok((drawn * upper).floor() + 1.0),
                _ => Err(empty(1)),
            },
            2 => match (whole(0)?, whole(1)?) {
                (lower, upper) if lower <= upper => {
                    Ok((drawn * (upper - lower + 1.0)).floor() + lower)
                }
                _ => Err(empty(2)),
            },
            _ => Err(Thrown::at_line(lua, b"wrong number of arguments").into()),
        }
    })?;
    table.raw_set("random", random)?;
    let run = Rc::clone(run);
    let randomseed = lua.create_function(move |lua, args: MultiValue| {
        let seed = integer(lua, &args, 0, "randomseed")?;
        run.random.set(Random::seeded(seed as i64 as u32));
        Ok(())
    })?;
    table.raw_set("randomseed", randomseed)
}

/// An argument as C's `luaL_checkint` reads it.
fn integer(lua: &Lua, args: &MultiValue, place: usize, name: &str) -> mlua::Result<f64> {
    let value = args.get(place);
    value.and_then(as_number).map(|number| f64::from(number as i64 as i32)).ok_or_else(|| {
        let got = value.map_or("no value", Value::type_name);
        let number = place + 1;
        let text = format!("bad argument #{number} to '{name}' (number expected, got {got})");
        Thrown::at_line(lua, text.as_bytes()).into()
    })
}

fn guards(lua: &Lua, run: &Rc<Run>, table: &Table) -> mlua::Result<()> {
    let missing = lua.create_function(|lua, (_, key): (Value, Value)| {
        let key = as_text(&key).unwrap_or_default();
        let before = b"Script attempted to access nonexistent global variable '";
        Err::<(), _>(Thrown::at_line(lua, &[before, &*key, b"'"].concat()).into())
    })?;
    table.raw_set("missing", missing)?;
    let modify = lua.create_function(|lua, ()| {
        Err::<(), _>(Thrown::at_line(lua, b"Attempt to modify a readonly table").into())
    })?;
    table.raw_set("modify", modify)?;
    let fail = lua.create_function(|lua, text: Value| {
        Err::<(), _>(Thrown::at_line(lua, &as_text(&text).unwrap_or_default()).into())
    })?;
    table.raw_set("fail", fail)?;
    let look_into = lua.create_function(|lua, value: Value| {
        let thrown = match value {
            Value::Error(error) => Thrown::of(&error),
            other => Thrown::misuse(other.type_name()),
        };
        Ok((lua.create_string(&thrown.text)?, thrown.is_reply, thrown.is_counted))
    })?;
    table.raw_set("message", look_into)?;
    let stopping = Rc::clone(run);
    let is_stopping = lua.create_function(move |_, ()| Ok(stopping.stop.get() != Stop::No))?;
    table.raw_set("is_stopping", is_stopping)?;
    let registering = Rc::clone(run);
    let register = lua.create_function(move |_, args: MultiValue| {
        if registering.kind.get() != Kind::Loading {
            // A function that the library has kept it for.
            let text = "redis.register_function can only be called on FUNCTION LOAD command";
            return Err(Thrown::misuse(text).into());
        }
        let function = Registered::read(&args)?;
        let mut registered = registering.registered.borrow_mut();
        if registered.iter().any(|known| known.has_name_of(&function)) {
            return Err(Thrown::misuse("Function already exists in the library").into());
        }
        registered.push(function);
        Ok(())
    })?;
    table.raw_set("register_function", register)?;
    let run = Rc::clone(run);
    let caught = lua.create_function(move |lua, value: Value| {
        Run::free_memory(lua)?;
        *run.caught.borrow_mut() = Some(Caught::here(lua, &value));
        Ok(())
    })?;
    table.raw_set("caught", caught)
}
