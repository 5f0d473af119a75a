//! Scripts that do not end by themselves, or ask for too much.

use std::sync::atomic::Ordering::Relaxed;

use super::Bench;
use crate::protocol::Resp;

#[test]
fn an_abandoned_run_ends_whatever_the_script_catches() {
    let mut bench = Bench::new();
    for text in [
        "redis.call('wide')",
        "pcall(redis.call, 'wide') return 1",
        "while true do pcall(redis.pcall, 'wide') end",
        "local f = coroutine.wrap(function() while true do pcall(redis.call, 'wide') end end) f()",
        "local function wide() redis.call('wide') end \
         for i = 1, 5 do coroutine.resume(coroutine.create(wide)) end return 1",
        "xpcall(function() redis.call('wide') end, function() while true do end end)",
    ] {
        assert_eq!(bench.eval(text), "abandoned", "{text}");
        assert_eq!(bench.eval("return redis.call('incr', 'n') > 0"), ":1\r\n");
    }
}

#[test]
fn an_endless_script_is_killed_whatever_it_catches() {
    let mut bench = Bench::new();
    for text in [
        "while true do end",
        "while true do pcall(function() while true do end end) end",
        "coroutine.wrap(function() while true do end end)()",
        "while true do coroutine.resume(coroutine.create(function() while true do end end)) end",
        "local function f() return f() end f()",
        "while true do xpcall(error, function() while true do end end) end",
        "while true do redis.pcall('get', 'a') end",
    ] {
        bench.kill.store(true, Relaxed);
        let found = bench.eval(text);
        let expected = "-ERR Script killed by user with SCRIPT KILL... script: SHA";
        assert!(found.starts_with(expected), "{text}: {found}");
        bench.kill.store(false, Relaxed);
        let counting = "local n = 0 for i = 1, 1e6 do n = n + 1 end return n";
        assert_eq!(bench.eval(counting), ":1000000\r\n", "{text}");
    }
}

#[test]
fn a_greedy_script_is_refused_memory_and_leaves_it() {
    let mut bench = Bench::new();
    for text in [
        "local s = 'x' while true do s = s .. s end",
        "return string.rep('x', 1e9)",
        "local t = {} while true do t[#t + 1] = {} end",
        "local t = {} while true do t['key' .. #t] = 1 t[#t + 1] = 'x' end",
        "local s = string.rep('x', 1e6) return (s:gsub('x', s))",
        "return table.concat({string.rep('x', 3e7), string.rep('y', 3e7)})",
        "local t = {} while true do t[#t + 1] = redis.call('echo', string.rep('x', 1e5) .. #t) end",
    ] {
        let found = bench.eval(text);
        assert!(found.starts_with("-ERR not enough memory script: SHA"), "{text}: {found}");
        assert!(bench.interpreter.used_bytes() < 8 << 20, "{text}");
        assert_eq!(bench.eval("return #string.rep('x', 5e6)"), ":5000000\r\n");
    }
    let caught = "return {pcall(string.rep, 'x', 1e9)}";
    assert_eq!(bench.eval(caught), "*2\r\n$-1\r\n$17\r\nnot enough memory\r\n");
}

#[test]
fn tables_that_hold_themselves_end_in_an_error() {
    let mut bench = Bench::new();
    let found = bench.eval("local t = {} t[1] = t return t");
    assert!(found.ends_with("*1\r\n-ERR reached lua stack limit\r\n"), "{}", found.len());
    let held =
        "local s = string.rep('x', 1e7) local t = {} for i = 1, 100 do t[i] = s end return t";
    assert!(bench.eval(held).starts_with("-ERR the script's reply is too large"));
}

#[test]
fn what_a_script_returns_is_bounded_whatever_kind_of_table_it_is() {
    let mut bench = Bench::new();
    let lines = "local s = string.rep('x', 1e7) local t = {} \
        for i = 1, 100 do t[i] = {ok = s} end return t";
    assert!(bench.eval(lines).starts_with("-ERR the script's reply is too large"));
}

#[test]
fn a_kill_ends_the_writing_of_a_reply() {
    let mut bench = Bench::new();
    for text in [
        "local t = {} for i = 1, 40 do t = {t, t} end return t",
        "local t = {} for i = 1, 40 do t = {map = {a = t, b = t}} end return t",
        "local t = {} for i = 1, 5000 do t[i] = t end return t",
    ] {
        bench.kill.store(true, Relaxed);
        let found = bench.eval(text);
        assert!(found.starts_with("-ERR Script killed by user with SCRIPT KILL..."), "{text}");
        bench.kill.store(false, Relaxed);
        assert_eq!(bench.eval("return 1"), ":1\r\n");
    }
}

#[test]
fn large_maps_and_sets_are_returned_whole() {
    let mut bench = Bench::new();
    let count = 20_000;
    for (kind, sign, elements) in [("map", '%', 2 * count), ("set", '~', count)] {
        let fill = format!("for i = 1, {count} do t['k' .. i] = 'v' end");
        let found = bench.bytes(&format!("local t = {{}} {fill} return {{{kind} = t}}"), Resp::V3);
        assert!(found.starts_with(&format!("{sign}{count}\r\n")), "{kind}");
        assert_eq!(found.matches('$').count(), elements, "{kind}");
    }
    let nested = "local t = 1 for i = 1, 1990 do t = {map = {[t] = t}} end return t";
    let found = bench.bytes(&nested.replace("= t}}", "= i}}"), Resp::V3);
    assert_eq!(found.matches("%1").count(), 1_990);
}

#[test]
fn what_libraries_and_commands_are_given_is_bounded_as_lua_is() {
    let mut bench = Bench::new();
    let words = "local s = string.rep('x', 1e7) local t = {} for i = 1, 10 do t[i] = s end ";
    for (left, expected) in [
        ("return #cjson.encode(t)", "not enough memory"),
        ("return #cmsgpack.pack(t)", "not enough memory"),
        ("return #struct.pack(string.rep('s', 10), unpack(t))", "not enough memory"),
        ("return redis.call('echo', unpack(t))", "Too many bytes in the arguments of a command"),
        ("return cjson.encode({[2 ^ 31 - 1] = 1, [2] = 1, [3] = 1})", "excessively sparse array"),
    ] {
        let found = bench.eval(&format!("{words} {left}"));
        assert!(found.starts_with("-ERR ") && found.contains(expected), "{left}: {found}");
        assert_eq!(bench.eval("return cjson.encode({1, {}})"), "$6\r\n[1,{}]\r\n");
    }
}

#[test]
fn a_kill_ends_what_a_library_writes() {
    let mut bench = Bench::new();
    for text in [
        "local t = {1} for i = 1, 40 do t = {t, t} end return cjson.encode(t)",
        "local t = {} for i = 1, 5000 do t[i] = t end return cmsgpack.pack(t)",
        "cjson.encode_sparse_array(false, 0) return cjson.encode({[2 ^ 31 - 1] = 1})",
    ] {
        bench.kill.store(true, Relaxed);
        let found = bench.eval(text);
        assert!(found.starts_with("-ERR Script killed by user"), "{text}: {found}");
        bench.kill.store(false, Relaxed);
    }
}

#[test]
fn compiled_scripts_do_not_take_the_room_of_those_that_come() {
    let mut bench = Bench::new();
    let filler = "local a = {1,2,3,4,5,6,7,8} ".repeat(150);
    let function = |place: u32| format!("t[{place}] = function() {filler} end ");
    let functions = (0..40).map(function).collect::<Vec<_>>().concat();
    for number in 0..40 {
        let found = bench.eval(&format!("local t = {{}} {functions} return {number}"));
        assert_eq!(found, format!(":{number}\r\n"));
        assert!(bench.interpreter.used_bytes() < 40 << 20, "{number}");
    }
}

#[test]
fn deep_calls_long_lists_and_nested_code_have_lua_s_own_ends() {
    let mut bench = Bench::new();
    let deep = |calls: u32| {
        let f = "local function f(n) if n == 0 then return 0 end return 1 + f(n - 1) end";
        format!("{f} return f({calls})")
    };
    let overflow = "-ERR user_script:1: stack overflow script: SHA, on @user_script:1.\r\n";
    assert_eq!(bench.eval(&deep(190_000)), overflow);
    assert_eq!(bench.eval(&deep(15_000)), ":15000\r\n");
    let unpacked = |count: u32| {
        format!("local t = {{}} for i = 1, {count} do t[i] = i end return #({{unpack(t)}})")
    };
    assert_eq!(bench.eval(&unpacked(7_900)), ":7900\r\n");
    assert!(bench.eval(&unpacked(8_000)).contains("too many results to unpack"));
    let nested = "return loadstring(string.rep('(', 300) .. '1' .. string.rep(')', 300)) == nil";
    assert_eq!(bench.eval(nested), ":1\r\n");
}
