//! A bound on what Rust writes for a script, where neither Lua's allocator nor its hook looks.
//!
//! Tables that hold one another often make a text far larger than they are. Whoever follows them
//! says so before each element, with the bytes written so far: beyond what the state may take it
//! ends as Lua does when memory is out, and a kill ends it, too.

use std::rc::Rc;

use mlua::{Error, Lua};

use super::run::Run;

/// Elements between two looks at the kill flag: a millisecond or so.
const LOOK_STEPS: u32 = 4_096;

pub(super) struct Meter<'l> {
    lua: &'l Lua,
    /// None where a library stands in a state of its own: tests do that.
    run: Option<Rc<Run>>,
    steps: u32,
}

impl<'l> Meter<'l> {
    pub(super) fn new(lua: &'l Lua) -> Self {
        let run = lua.app_data_ref::<Rc<Run>>().map(|run| Rc::clone(&run));
        Self { lua, run, steps: 0 }
    }

    /// Before each element: whether to go on.
    pub(super) fn step(&mut self, written: usize) -> mlua::Result<()> {
        let Some(run) = &self.run else { return Ok(()) };
        if written > run.memory_max {
            return Err(Error::MemoryError("not enough memory".to_owned()));
        }
        self.steps = self.steps.wrapping_add(1);
        if self.steps.is_multiple_of(LOOK_STEPS) {
            run.look(self.lua)?;
        }
        Ok(())
    }
}
