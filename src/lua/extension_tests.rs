//! The libraries answer what Redis answers.
//!
//! The probes and what Redis says to them stand in `tests/it/lua`, where the servers are held to
//! them, too. Here each runs in an interpreter with nothing around it.

use std::path::Path;

use mlua::{Error, Function, Lua, MultiValue, Value};
use proptest::prelude::*;

use super::libraries;

/// An interpreter that hands errors of libraries to scripts as texts.
fn interpreter() -> Lua {
    let lua = Lua::new();
    for (name, library) in libraries(&lua).expect("they are made") {
        lua.globals().raw_set(name, library).expect("a global");
    }
    let pcall = |lua: &Lua, (run, arguments): (Function, MultiValue)| match run.call(arguments) {
        Ok(values) => {
            let mut values: MultiValue = values;
            values.push_front(Value::Boolean(true));
            Ok(values)
        }
        Err(error) => {
            let text = lua.create_string(text(&error))?;
            Ok(MultiValue::from_iter([Value::Boolean(false), Value::String(text)]))
        }
    };
    let pcall = lua.create_function(pcall).expect("a function");
    lua.globals().raw_set("pcall", pcall).expect("a global");
    for list in ["KEYS", "ARGV"] {
        lua.globals().raw_set(list, lua.create_table().expect("a table")).expect("a global");
    }
    lua
}

/// What an error says, without where it passed.
fn text(error: &Error) -> String {
    let text = match error {
        Error::CallbackError { cause, .. } => return text(cause),
        Error::RuntimeError(text) => text.clone(),
        other => other.to_string(),
    };
    text.split("\nstack traceback").next().unwrap_or_default().to_owned()
}

fn read(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/lua").join(name);
    std::fs::read_to_string(path).expect("it is there")
}

#[test]
fn libraries_answer_every_probe_as_redis_does() {
    let (lua, show, probes) = (interpreter(), read("show.lua"), read("libraries.txt"));
    let (mut wrong, mut asked, mut count) = (Vec::new(), "", 0);
    for line in probes.lines() {
        if let Some(body) = line.strip_prefix("> ") {
            asked = body;
        }
        let Some(expected) = line.strip_prefix('<') else { continue };
        count += 1;
        let chunk = lua.load(show.replace("BODY", asked)).set_name("@user_script");
        let got = match chunk.eval::<mlua::LuaString>() {
            Ok(got) => got.to_string_lossy(),
            Err(error) => format!("uncaught: {}", text(&error)),
        };
        if got != expected.trim_start() {
            wrong.push(format!("{asked}\n  not {expected}\n  but  {got}"));
        }
    }
    assert!(count > 350, "only {count} probes");
    assert!(wrong.is_empty(), "{} of {count}:\n{}", wrong.len(), wrong.join("\n"));
}

proptest! {
    #[test]
    fn no_bytes_make_a_library_panic(
        bytes in proptest::collection::vec(any::<u8>(), 0..200),
        places in proptest::collection::vec(-3_i32..12, 0..4),
    ) {
        let lua = interpreter();
        let script = "local bytes, format = ... \
            for _, f in ipairs({cjson.decode, cjson.encode, cmsgpack.unpack, cmsgpack.pack, \
                struct.size}) do pcall(f, bytes) end \
            pcall(struct.unpack, format, bytes, select(3, ...)) \
            pcall(struct.pack, format, bytes, select(3, ...)) \
            pcall(cmsgpack.unpack_one, bytes, select(3, ...)) \
            pcall(cmsgpack.unpack_limit, bytes, select(3, ...)) \
            for _, f in pairs(bit) do pcall(f, select(3, ...)) end";
        let run: Function = lua.load(script).into_function().expect("a script");
        let letters = b"bBhHiIlLTfdscx <>!0123456789";
        let format: Vec<u8> =
            bytes.iter().map(|byte| letters[usize::from(*byte) % letters.len()]).collect();
        let mut arguments = MultiValue::new();
        for text in [&bytes, &format] {
            arguments.push_back(Value::String(lua.create_string(text).expect("a string")));
        }
        arguments.extend(places.into_iter().map(|place| Value::Number(f64::from(place))));
        prop_assert!(run.call::<()>(arguments).is_ok());
    }

    #[test]
    fn almost_json_never_makes_the_decoder_panic(text in "[\\[\\]{}:,\"\\\\u0-9a-fnx. +-]{0,60}") {
        let lua = interpreter();
        let run: Function = lua.load("pcall(cjson.decode, ...)").into_function().expect("a script");
        prop_assert!(run.call::<()>(text).is_ok());
    }

    #[test]
    fn what_is_packed_unpacks_to_the_same(
        numbers in proptest::collection::vec(any::<f64>(), 0..20),
        texts in proptest::collection::vec(any::<Vec<u8>>(), 0..5),
    ) {
        let lua = interpreter();
        let script = "local all = {numbers = {}, texts = {}} \
            for i, v in ipairs({...}) do \
              local t = type(v) == 'string' and all.texts or all.numbers t[#t + 1] = v end \
            local back = cmsgpack.unpack(cmsgpack.pack(all)) \
            for name, list in pairs(all) do for i, v in ipairs(list) do \
              if back[name][i] ~= v and v == v then return false end end end \
            return true";
        let run: Function = lua.load(script).into_function().expect("a script");
        let mut arguments: MultiValue = numbers.into_iter().map(Value::Number).collect();
        for text in texts {
            arguments.push_back(Value::String(lua.create_string(text).expect("a string")));
        }
        prop_assert!(run.call::<bool>(arguments).expect("it runs"));
    }
}
