//! What is nested in what: a stack of tables, each with the key at which it goes on.
//!
//! The stack is a Lua table. A handle of each table on Rust's side would take a slot of a stack
//! that holds 8,000, and would end at half the depth that Redis goes to; so only the innermost
//! is at hand. Frames on the machine's stack, of a function that calls itself, are out of the
//! question: a script says how deep it nests.

use mlua::{Lua, Table, Value};

pub(super) struct Nest {
    outer: Option<Table>,
    depth: usize,
}

impl Nest {
    pub(super) fn new() -> Self {
        Self { outer: None, depth: 0 }
    }

    /// Keeps a table while another one within it is looked at.
    pub(super) fn push(&mut self, lua: &Lua, table: &Table, key: &Value) -> mlua::Result<()> {
        let outer = match self.outer.take() {
            Some(outer) => outer,
            None => lua.create_table()?,
        };
        outer.raw_set(2 * self.depth + 1, table)?;
        outer.raw_set(2 * self.depth + 2, key)?;
        self.outer = Some(outer);
        self.depth += 1;
        Ok(())
    }

    /// The table kept last; nothing where there is none around.
    pub(super) fn pop(&mut self) -> mlua::Result<Option<(Table, Value)>> {
        let Some(outer) = self.outer.as_ref().filter(|_| self.depth > 0) else { return Ok(None) };
        self.depth -= 1;
        let table = outer.raw_get(2 * self.depth + 1)?;
        Ok(Some((table, outer.raw_get(2 * self.depth + 2)?)))
    }
}
