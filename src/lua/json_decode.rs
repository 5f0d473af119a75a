//! `cjson.decode`: JSON to a value.
//!
//! What is nested stands on a [`Nest`]; at the depth at which Lua's stack would end, it ends as
//! too deep. Later pairs of an object replace earlier ones with the same key.

use mlua::{IntoLua, Lua, Table, Value};

use super::arguments::{Arguments, STACK_SLOTS_MAX, fault};
use super::json::Settings;
use super::json_tokens::{Kind, Token, Tokens};
use super::nest::Nest;

pub(super) fn decode(given: &Arguments<'_>, settings: Settings) -> mlua::Result<Value> {
    if given.len() != 1 {
        return Err(given.wrong(1, "expected 1 argument"));
    }
    let text = given.string(1)?;
    let text = text.as_bytes();
    if text.len() >= 2 && text[..2].contains(&0) {
        return Err(fault(given.lua, "JSON parser does not support UTF-16 or UTF-32"));
    }
    let mut decoder = Decoder {
        lua: given.lua,
        tokens: Tokens::new(&text, settings.decode_invalid),
        depth: 0,
        depth_max: settings.decode_depth_max as usize,
        top: 1,
    };
    let value = decoder.value()?;
    match decoder.tokens.next() {
        Token { kind: Kind::End, .. } => Ok(value),
        token => Err(decoder.expected("the end", &token)),
    }
}

struct Decoder<'t> {
    lua: &'t Lua,
    tokens: Tokens<'t>,
    depth: usize,
    depth_max: usize,
    /// How many slots of its stack Lua's own decoder would have filled.
    top: usize,
}

/// A table being filled, and where its next value goes: a place of an array, or a key.
struct Open {
    table: Table,
    key: Value,
}

impl Open {
    fn is_array(&self) -> bool {
        self.key.is_integer()
    }

    /// Slots that the table and its key take while its next value is read.
    fn slots(&self) -> usize {
        if self.is_array() { 1 } else { 2 }
    }
}

impl Decoder<'_> {
    fn value(&mut self) -> mlua::Result<Value> {
        let mut nest = Nest::new();
        let mut open: Option<Open> = None;
        let mut token = self.tokens.next();
        loop {
            let begun = match token.kind {
                Kind::ObjectBegin => self.object()?,
                Kind::ArrayBegin => self.array()?,
                Kind::Text(_)
                | Kind::Number(_)
                | Kind::Boolean(_)
                | Kind::Null
                | Kind::ObjectEnd
                | Kind::ArrayEnd
                | Kind::Colon
                | Kind::Comma
                | Kind::End
                | Kind::Wrong(_) => Begun::Whole(self.scalar(token)?),
            };
            let mut value = match begun {
                Begun::Whole(value) => value,
                Begun::Open(begun, first) => {
                    if let Some(open) = open.replace(begun) {
                        nest.push(self.lua, &open.table, &open.key)?;
                    }
                    token = first;
                    continue;
                }
            };
            // A value that ends a table is followed by the table itself as a value.
            loop {
                let Some(around) = &mut open else { return Ok(value) };
                if self.goes_on(around, value)? {
                    break;
                }
                value = Value::Table(around.table.clone());
                open = nest.pop()?.map(|(table, key)| Open { table, key });
            }
            token = self.tokens.next();
        }
    }

    fn scalar(&self, token: Token) -> mlua::Result<Value> {
        match token.kind {
            Kind::Text(text) => self.lua.create_string(text)?.into_lua(self.lua),
            Kind::Number(number) => Ok(Value::Number(number)),
            Kind::Boolean(boolean) => Ok(Value::Boolean(boolean)),
            Kind::Null => Ok(Value::NULL),
            Kind::ObjectBegin
            | Kind::ObjectEnd
            | Kind::ArrayBegin
            | Kind::ArrayEnd
            | Kind::Colon
            | Kind::Comma
            | Kind::End
            | Kind::Wrong(_) => Err(self.expected("value", &token)),
        }
    }

    /// Puts a value into the table around it. Returns whether another one follows.
    fn goes_on(&mut self, open: &mut Open, value: Value) -> mlua::Result<bool> {
        open.table.raw_set(&open.key, value)?;
        let token = self.tokens.next();
        match (token.kind, &mut open.key) {
            (Kind::Comma, Value::Integer(place)) => *place += 1,
            (Kind::Comma, key) => {
                let token = self.tokens.next();
                *key = self.key(token)?;
            }
            (Kind::ArrayEnd, Value::Integer(_)) | (Kind::ObjectEnd, Value::String(_)) => {
                self.ascend(open);
                return Ok(false);
            }
            (kind, key) => {
                let end = if key.is_integer() { "array end" } else { "object end" };
                let token = Token { kind, at: token.at };
                return Err(self.expected(&format!("comma or {end}"), &token));
            }
        }
        Ok(true)
    }

    fn array(&mut self) -> mlua::Result<Begun> {
        self.descend(2)?;
        let table = self.lua.create_table()?;
        let token = self.tokens.next();
        if matches!(token.kind, Kind::ArrayEnd) {
            self.depth -= 1;
            return Ok(Begun::Whole(Value::Table(table)));
        }
        self.top += 1;
        Ok(Begun::Open(Open { table, key: Value::Integer(1) }, token))
    }

    fn object(&mut self) -> mlua::Result<Begun> {
        self.descend(3)?;
        let table = self.lua.create_table()?;
        let token = self.tokens.next();
        if matches!(token.kind, Kind::ObjectEnd) {
            self.depth -= 1;
            return Ok(Begun::Whole(Value::Table(table)));
        }
        let key = self.key(token)?;
        self.top += 2;
        Ok(Begun::Open(Open { table, key }, self.tokens.next()))
    }

    fn descend(&mut self, slots: usize) -> mlua::Result<()> {
        self.depth += 1;
        if self.depth > self.depth_max || self.top + slots > STACK_SLOTS_MAX {
            let (depth, at) = (self.depth, self.tokens.at);
            let text = format!("Found too many nested data structures ({depth}) at character {at}");
            return Err(fault(self.lua, &text));
        }
        Ok(())
    }

    fn ascend(&mut self, open: &Open) {
        self.depth -= 1;
        self.top -= open.slots();
    }

    /// A key and the colon behind it.
    fn key(&mut self, token: Token) -> mlua::Result<Value> {
        let Kind::Text(text) = token.kind else {
            return Err(self.expected("object key string", &token));
        };
        let key = self.lua.create_string(text)?;
        match self.tokens.next() {
            Token { kind: Kind::Colon, .. } => key.into_lua(self.lua),
            token => Err(self.expected("colon", &token)),
        }
    }

    fn expected(&self, what: &str, found: &Token) -> mlua::Error {
        let (name, at) = (found.kind.name(), found.at + 1);
        fault(self.lua, &format!("Expected {what} but found {name} at character {at}"))
    }
}

/// What begins with a token.
enum Begun {
    Whole(Value),
    /// A table, and the token after its beginning.
    Open(Open, Token),
}
