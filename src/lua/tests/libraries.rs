//! Libraries: what they may do while they are loaded, and their functions afterwards.

use super::super::{RestorePolicy, ScriptFlags, dump_libraries};
use super::Bench;

const REGISTERING: &str = "ERR Error registering functions: ERR ";

fn library(name: &str, code: &str) -> String {
    format!("#!lua name={name}\n{code}")
}

/// Codes that do not load, and why; in what they register without `ERR` and all before it.
const WRONG: &[(&str, &str)] = &[
    ("return 1", "ERR No functions registered"),
    ("syntax error", "ERR Error compiling function: user_function:2: '=' expected near 'error'"),
    ("redis.register_function()", "wrong number of arguments to redis.register_function"),
    (
        "redis.register_function('x')",
        "calling redis.register_function with a single argument is only applicable to Lua \
         table (representing named arguments).",
    ),
    (
        "redis.register_function('x', 1)",
        "second argument to redis.register_function must be a function",
    ),
    (
        "redis.register_function('x-y', function() end)",
        "Library names can only contain letters, numbers, or underscores(_) and must be at \
         least one character long",
    ),
    (
        "local f = function() end redis.register_function('x', f) \
         redis.register_function('X', f)",
        "Function already exists in the library",
    ),
    (
        "redis.register_function({function_name='x'})",
        "redis.register_function must get a callback argument",
    ),
    (
        "redis.register_function({callback=function() end})",
        "redis.register_function must get a function name argument",
    ),
    (
        "redis.register_function({function_name='x', callback=1})",
        "callback argument given to redis.register_function must be a function",
    ),
    (
        "redis.register_function({function_name='x', callback=function() end, foo=1})",
        "unknown argument given to redis.register_function",
    ),
    (
        "redis.register_function({function_name='x', callback=function() end, flags=1})",
        "flags argument to redis.register_function must be a table representing function \
         flags",
    ),
    (
        "redis.register_function({function_name='x', callback=function() end, flags={'y'}})",
        "unknown flag given",
    ),
    ("x = 1", "user_function:2: Attempt to modify a readonly table"),
    ("redis.x = 1", "user_function:2: Attempt to modify a readonly table"),
    ("while true do end", "FUNCTION LOAD timeout"),
];

#[test]
fn what_a_library_does_wrong_is_told_as_redis_tells_it() {
    let mut bench = Bench::new();
    for (code, expected) in WRONG {
        let found = bench.load_library(&library("a", code), RestorePolicy::Append);
        let text = found.strip_prefix(REGISTERING).unwrap_or(&found);
        assert_eq!(text, *expected, "{code}");
    }
    for name in ["error", "pairs", "math", "KEYS", "redis.call", "redis.setresp"] {
        let code = library("a", &format!("local x = {name}"));
        let field = name.trim_start_matches("redis.");
        let expected = format!(
            "{REGISTERING}user_function:2: Script attempted to access nonexistent global variable \
             '{field}'"
        );
        assert_eq!(bench.load_library(&code, RestorePolicy::Append), expected);
    }
    assert_eq!(bench.libraries.stats().libraries, 0);
}

#[test]
fn functions_are_called_with_keys_and_arguments() {
    let mut bench = Bench::new();
    let code = library(
        "mylib",
        "local n = 0
        redis.register_function('count', function() n = n + 1 return n end)
        redis.register_function('Words', function(keys, args)
            return {keys[1], args[1], #keys, #args} end)
        redis.register_function('get', function(keys) return redis.call('get', keys[1]) end)
        redis.register_function('boom', function() error('boom') end)
        redis.register_function('unknown', function() return redis.call('foo') end)
        redis.register_function('global', function() x = 1 end)
        redis.register_function('keys', function() return KEYS end)
        redis.register_function('wide', function() pcall(redis.call, 'wide') return 1 end)
        redis.register_function('register', function() return redis.register_function end)",
    );
    assert_eq!(bench.load_library(&code, RestorePolicy::Append), "mylib");
    bench.eval("redis.call('set', 'k', 'v') table.insert(KEYS, 'k')");
    let table: [(&str, [&[&str]; 2], &str); 10] = [
        ("count", [&[], &[]], ":1\r\n"),
        ("COUNT", [&[], &[]], ":2\r\n"),
        ("words", [&["k"], &["a", "b"]], "*4\r\n$1\r\nk\r\n$1\r\na\r\n:1\r\n:2\r\n"),
        ("get", [&["k"], &[]], "$1\r\nv\r\n"),
        ("boom", [&[], &[]], "-ERR user_function:7: boom script: boom, on @user_function:7.\r\n"),
        (
            "unknown",
            [&[], &[]],
            "-ERR Unknown Redis command called from script script: unknown, on \
             @user_function:8.\r\n",
        ),
        (
            "global",
            [&[], &[]],
            "-ERR user_function:9: Attempt to modify a readonly table script: global, on \
             @user_function:9.\r\n",
        ),
        (
            "keys",
            [&[], &[]],
            "-ERR user_function:10: Script attempted to access nonexistent global variable 'KEYS' \
             script: keys, on @user_function:10.\r\n",
        ),
        ("wide", [&[], &[]], "abandoned"),
        ("register", [&[], &[]], "$-1\r\n"),
    ];
    for (name, words, expected) in table {
        assert_eq!(bench.fcall(name, words), expected, "{name}");
    }
}

#[test]
fn a_function_s_name_is_in_one_library_only() {
    let mut bench = Bench::new();
    let code = |name: &str, function: &str, result: u32| {
        let register = format!(
            "redis.register_function{{function_name='{function}', callback=function() return \
             {result} end, flags={{'no-writes','allow-oom'}}, description='desc'}}"
        );
        library(name, &register)
    };
    let append = RestorePolicy::Append;
    assert_eq!(bench.load_library(&code("a", "f", 1), append), "a");
    let taken = "ERR Library 'a' already exists";
    assert_eq!(bench.load_library(&code("a", "g", 1), append), taken);
    let taken = "ERR Function F already exists";
    assert_eq!(bench.load_library(&code("b", "F", 1), append), taken);
    assert_eq!(bench.load_library(&code("b", "F", 1), RestorePolicy::Replace), taken);
    assert_eq!(bench.load_library(&code("a", "f", 2), RestorePolicy::Replace), "a");
    assert_eq!(bench.fcall("f", [&[], &[]]), ":2\r\n");
    let found = bench.libraries.find(b"f").unwrap();
    assert_eq!(found.function().description.as_deref(), Some(&b"desc"[..]));
    assert!(found.function().flags.has(ScriptFlags::NO_WRITES));
    assert_eq!(bench.libraries.delete(b"x").unwrap_err().to_string(), "ERR Library not found");
    bench.libraries.delete(b"a").unwrap();
    assert_eq!(bench.fcall("f", [&[], &[]]), "absent");
}

#[test]
fn a_dump_restores_what_was_there_on_another_server() {
    let (mut from, mut to) = (Bench::new(), Bench::new());
    for name in ["a", "b"] {
        let code = format!("redis.register_function('{name}f', function() return '{name}' end)");
        from.load_library(&library(name, &code), RestorePolicy::Append);
    }
    let payload = dump_libraries(&from.libraries);
    let mut restore = |policy| {
        let Bench { interpreter, libraries, .. } = &mut to;
        let left = interpreter.restore_libraries(libraries, &payload, policy);
        left.map_err(|error| error.to_string())
    };
    assert_eq!(restore(RestorePolicy::Append), Ok(()));
    assert_eq!(restore(RestorePolicy::Append), Err("ERR Library a already exists".to_owned()));
    assert_eq!(restore(RestorePolicy::Replace), Ok(()));
    assert_eq!(restore(RestorePolicy::Flush), Ok(()));
    assert_eq!(to.fcall("af", [&[], &[]]), "$1\r\na\r\n");
    assert_eq!(to.libraries.stats(), from.libraries.stats());
}

/// Made by a Redis 7.0.15: one library.
#[test]
fn a_dump_of_redis_is_read() {
    let code = "#!lua name=a\nredis.register_function(\"f\",function(k,a) return 1 end)";
    let mut payload = b"\xf5\x40\x44".to_vec();
    payload.extend_from_slice(code.as_bytes());
    payload.extend_from_slice(b"\x0a\x00\xef\xf3\x97\x83\x35\x42\x8d\x15");
    let mut bench = Bench::new();
    let Bench { interpreter, libraries, .. } = &mut bench;
    interpreter.restore_libraries(libraries, &payload, RestorePolicy::Append).unwrap();
    assert_eq!(bench.fcall("f", [&[], &[]]), ":1\r\n");
    assert_eq!(dump_libraries(&bench.libraries), payload);
}
