//! The libraries answer what Redis answers.
//!
//! The probes and what Redis says to them stand in `tests/it/lua`, where a server is held to them,
//! too. Here each runs in an interpreter without one.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use mlua::{Function, Lua, MultiValue, Value};
use proptest::prelude::*;

use super::{Abandon, Call, EXTENSIONS, Interpreter, Invocation, LogLevel, Origin, Scripts, Setup};
use crate::protocol::{Args, OwnedArgs, Reply, Resp};

/// A server that no script here asks for anything.
struct Nobody;

impl Call for Nobody {
    fn call(&mut self, _: Args<'_>, _: Resp, _: &mut Vec<u8>) -> Result<(), Abandon> {
        Err(Abandon)
    }

    fn log(&mut self, _: LogLevel, _: &[u8]) {}

    fn allows(&mut self, _: Args<'_>) -> Option<bool> {
        None
    }
}

/// Lua with the libraries, and nothing around them.
fn bare() -> Lua {
    let lua = Lua::new();
    for (name, install) in EXTENSIONS {
        lua.globals().raw_set(*name, install(&lua).expect("it is made")).expect("a global");
    }
    lua
}

fn read(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/lua").join(name);
    std::fs::read_to_string(path).expect("it is there")
}

#[test]
fn libraries_answer_every_probe_as_redis_does() {
    let setup = Setup {
        redis_version: "7.2.4",
        memory_max: 64 << 20,
        worker: 0,
        bare_codes: true,
        kill: Arc::new(AtomicBool::default()),
    };
    let (mut interpreter, scripts) = (Interpreter::new(&setup), Scripts::default());
    let (show, probes) = (read("show.lua"), read("libraries.txt"));
    let (mut wrong, mut asked, mut count) = (Vec::new(), "", 0);
    let nothing = OwnedArgs::of::<&[u8]>([]);
    for line in probes.lines() {
        if let Some(body) = line.strip_prefix("> ") {
            asked = body;
        }
        let Some(expected) = line.strip_prefix('<') else { continue };
        count += 1;
        let text = show.replace("BODY", asked);
        let script = interpreter.load(&scripts, text.as_bytes(), Origin::Eval).expect("it reads");
        let words = Invocation { keys: nothing.as_args(), args: nothing.as_args() };
        let mut out = Vec::new();
        let mut reply = Reply::new(&mut out, Resp::V2);
        let run = interpreter.run((&scripts, &script), words, &mut Nobody, &mut reply);
        let got = run.map(|()| String::from_utf8_lossy(&out).into_owned());
        let expected = expected.trim_start();
        if got != Ok(format!("${}\r\n{expected}\r\n", expected.len())) {
            wrong.push(format!("{asked}\n  not {expected}\n  but {got:?}"));
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
        let lua = bare();
        // Lua's own pcall has no room for many results; what the prelude makes of it has.
        let script = "local bytes, format = ... \
            local function try(f, ...) pcall(function(...) f(...) end, ...) end \
            for _, f in ipairs({cjson.decode, cjson.encode, cmsgpack.unpack, cmsgpack.pack, \
                struct.size}) do try(f, bytes) end \
            try(struct.unpack, format, bytes, select(3, ...)) \
            try(struct.pack, format, bytes, select(3, ...)) \
            try(cmsgpack.unpack_one, bytes, select(3, ...)) \
            try(cmsgpack.unpack_limit, bytes, select(3, ...)) \
            for _, f in pairs(bit) do try(f, select(3, ...)) end";
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
        let lua = bare();
        let run: Function = lua.load("pcall(cjson.decode, ...)").into_function().expect("a script");
        prop_assert!(run.call::<()>(text).is_ok());
    }

    #[test]
    fn what_is_packed_unpacks_to_the_same(
        numbers in proptest::collection::vec(any::<f64>(), 0..20),
        texts in proptest::collection::vec(any::<Vec<u8>>(), 0..5),
    ) {
        let lua = bare();
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
