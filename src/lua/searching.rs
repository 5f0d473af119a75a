//! What the prelude matches by, where Lua's own library would take long.
//!
//! Here Lua's values meet [`pattern`](super::pattern): between two stretches the run is looked
//! at, so that it can be ended, and others can be answered.

use std::rc::Rc;

use mlua::{Error as LuaError, Lua, LuaString, MultiValue, Table, Value};

use super::failure::Thrown;
use super::pattern::{Capture, Unmatched, is_plain, search};
use super::run::Run;

/// Adds `search`, `seek` and `is_plain` to what the prelude is given.
pub(super) fn install(lua: &Lua, run: &Rc<Run>, natives: &Table) -> mlua::Result<()> {
    let run = Rc::clone(run);
    let searching = lua.create_function(
        move |lua, (text, pattern, from, anchored): (LuaString, LuaString, f64, bool)| {
            let (text, pattern) = (text.as_bytes(), pattern.as_bytes());
            let from = start(from, text.len());
            let mut go_on = || run.look(lua).map(drop);
            match search((&*text, &*pattern), (from, anchored), &mut go_on) {
                Ok(None) => Ok(MultiValue::new()),
                Ok(Some(found)) => {
                    let mut values = vec![place(found.start + 1), place(found.end)];
                    for capture in found.captures {
                        values.push(match capture {
                            Capture::Text { start, end } => {
                                Value::String(lua.create_string(&text[start..end])?)
                            }
                            Capture::Place(at) => place(at + 1),
                        });
                    }
                    Ok(MultiValue::from_vec(values))
                }
                Err(Unmatched::Malformed(what)) => {
                    Err(Thrown::at_line(lua, what.as_bytes()).into())
                }
                Err(Unmatched::Stopped(error)) => Err::<_, LuaError>(error),
            }
        },
    )?;
    natives.raw_set("search", searching)?;
    let seek = lua.create_function(|_, (text, sought, from): (LuaString, LuaString, f64)| {
        let (text, sought) = (text.as_bytes(), sought.as_bytes());
        let from = start(from, text.len());
        let found = memchr::memmem::find(&text[from..], &sought);
        Ok(found.map(|at| (from + at + 1) as f64))
    })?;
    natives.raw_set("seek", seek)?;
    let plain = lua.create_function(|_, pattern: LuaString| Ok(is_plain(&pattern.as_bytes())))?;
    natives.raw_set("is_plain", plain)
}

/// Where Lua's library would begin: places count from 1, below 0 from the end.
fn start(from: f64, len: usize) -> usize {
    let from = from as i64;
    let from = if from < 0 { from.saturating_add(len as i64 + 1).max(0) } else { from };
    usize::try_from(from.saturating_sub(1)).unwrap_or(0).min(len)
}

fn place(number: usize) -> Value {
    Value::Number(number as f64)
}
