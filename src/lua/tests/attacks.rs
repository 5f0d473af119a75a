//! Scripts that try to break the process, each followed by one that must still be answered.
//!
//! Lua is built with its own checks of the stack under test, which abort: that a row is passed at
//! all says that nothing was put where there was no room. What a row answers follows Redis where
//! that one survives it.

use super::Bench;

/// How a reply to each begins.
const ATTEMPTS: &[(&str, &[(&str, &str)])] = &[
    ("many values at once", MANY_VALUES),
    ("errors of every type", ERRORS),
    ("nesting", NESTING),
    ("patterns", PATTERNS),
    ("numbers at the edge", EDGES),
    ("values that change or lie", LIARS),
];

const MANY_VALUES: &[(&str, &str)] = &[
    ("return unpack({7}, 1, 30)", ":7"),
    ("return unpack({}, 1, 7900)", "$-1"),
    ("return select('#', pcall(function() return unpack({}, 1, 30) end))", ":31"),
    ("return select('#', pcall(function() return unpack({}, 1, 7900) end))", ":7901"),
    ("return select('#', pcall(unpack, {}, 1, 18))", ":19"),
    ("return select(19, pcall(unpack, {[18] = 'last'}, 1, 18))", "$4\r\nlast"),
    ("return select(31, pcall(unpack, {[30] = 'last'}, 1, 30))", "$4\r\nlast"),
    ("return select('#', xpcall(function() return unpack({}, 1, 30) end, error))", ":31"),
    ("return select('#', xpcall(function() return unpack({}, 1, 30) end, nil))", ":31"),
    ("return select('#', pcall(function() end))", ":1"),
    ("return select('#', pcall(function() return nil, nil end))", ":3"),
    (
        "local function f() return unpack({}, 1, 7000) end \
         for i = 1, 50 do local g = f f = function() return pcall(g) end end \
         return select('#', f())",
        ":7050",
    ),
    ("return select('#', pcall(cmsgpack.unpack, ('\\1'):rep(30)))", ":31"),
    ("return select('#', cmsgpack.unpack(('\\1'):rep(7990)))", ":7990"),
    ("return select('#', cmsgpack.unpack(('\\161a'):rep(9000)))", "-ERR"),
    ("return select('#', struct.unpack(('b'):rep(30), ('a'):rep(30)))", ":31"),
    ("return select('#', struct.unpack(('b'):rep(9000), ('a'):rep(9000)))", "-ERR user_script:1:"),
    ("return select('#', ('x'):rep(1e6):byte(1, -1))", "-ERR user_script:1: stack overflow"),
    (
        "local c = coroutine.wrap(function() coroutine.yield(unpack({}, 1, 7000)) end) \
         return select('#', c())",
        ":7000",
    ),
    (
        "return select('#', coroutine.resume(coroutine.create(function() \
         return unpack({}, 1, 7000) end)))",
        ":7001",
    ),
    ("local t = {} for i = 1, 7000 do t[i] = 'x' end return redis.call('echo', unpack(t))", "$1"),
    ("local t = {} for i = 1, 9000 do t[i] = {} end return #cjson.encode(t)", ":27001"),
    ("return #cjson.decode('[' .. ('\"aa\",'):rep(50000) .. '1]')", ":50001"),
    ("local t = {} for i = 1, 20000 do t[i] = 'v' .. i end return t", "*20000"),
    ("local t = {} for i = 1, 20000 do t['k' .. i] = 'v' end return {map = t}", "*40000"),
    ("local t = {} for i = 1, 20000 do t['k' .. i] = 1 end return {set = t}", "*20000"),
    (
        "local t = {} for i = 1, 20000 do t[i] = select(2, pcall(redis.call, 'bad')) end \
         return #t",
        ":20000",
    ),
];

const ERRORS: &[(&str, &str)] = &[
    ("error()", "-ERR nil"),
    ("error(function() end)", "-ERR function: "),
    ("error(coroutine.create(function() end))", "-ERR thread: "),
    ("error({err = {}})", "-ERR unknown error"),
    ("error(setmetatable({}, {__tostring = function() error('y') end}))", "-ERR unknown error"),
    ("error(setmetatable({}, {__index = function() error('z') end}))", "-ERR unknown error"),
    ("error(setmetatable({}, {__index = function() return redis.call('echo', 'x') end}))", "-x"),
    ("error('two', 2)", "-ERR two script: "),
    ("return {pcall(function() error('two', 2) end)}", "*2\r\n$-1\r\n$3\r\ntwo"),
    ("return {pcall(7)}", "*2\r\n$-1\r\n$30\r\nattempt to call a number value"),
    (
        "return {xpcall(7, function(err) return err end)}",
        "*2\r\n$-1\r\n$30\r\nattempt to call a number value",
    ),
    ("return {xpcall(function() error('x') end, function(e) error(e) end)}", "*2\r\n$-1\r\n"),
    ("local function h() return xpcall(error, h) end return {xpcall(error, h)}", "*2\r\n$-1"),
    ("local function f() return xpcall(f, function() return f() end) end f()", "$-1"),
    (
        "local function f(n) if n == 0 then return redis.call('bad') end return f(n - 1) end \
         return f(100)",
        "-ERR Unknown Redis command",
    ),
];

const NESTING: &[(&str, &str)] = &[
    ("return cjson.decode(('['):rep(1e5))", "-ERR user_script:1: Found too many nested"),
    (
        "cjson.decode_max_depth(2147483647) \
         return cjson.decode(('['):rep(1e5))",
        "-ERR user_script:1: Found too many nested",
    ),
    (
        "cjson.encode_max_depth(2147483647) \
         local t = {} for i = 1, 1e5 do t = {t} end return cjson.encode(t)",
        "-ERR user_script:1: Cannot serialise, excessive nesting",
    ),
    ("local t = {} for i = 1, 1e5 do t = {t} end return #cmsgpack.pack(t)", ":17"),
    ("return cmsgpack.unpack(('\\145'):rep(1e5) .. '\\1')", "-ERR user_script:1: stack overflow"),
    ("local t = {} for i = 1, 1e5 do t = {t} end return t", "*1"),
    ("local t = {} for i = 1, 1e5 do t = {map = {t}} end return t", "*2"),
    ("return loadstring('return ' .. ('('):rep(1e5)) == nil", ":1"),
    ("return loadstring('return ' .. ('{'):rep(1e5)) == nil", ":1"),
    (
        "local n = 0 local function r() n = n + 1 \
         if n < 5000 then return load(r) and 'x' or 'y' end end return load(r) == nil",
        "",
    ),
    ("local function f() return (('a'):gsub('a', f)) end return f()", "-ERR C stack overflow"),
    (
        "local function f(n) return coroutine.wrap(function() return f(n + 1) end)() end f(1)",
        "-ERR user_script:1:",
    ),
    (
        "local t = setmetatable({}, {__tostring = function(t) return tostring(t) end}) \
         return tostring(t)",
        "-ERR C stack overflow",
    ),
    ("local function f(...) return 1 + f(1, ...) end return (pcall(f))", "$-1"),
];

/// What raises is no tail call: of a caller that is gone the prelude cannot tell the line.
const PATTERNS: &[(&str, &str)] = &[
    ("local _ = ('a'):rep(3e5):find(('a?'):rep(3e5))", "-ERR user_script:1: pattern too complex"),
    ("local _ = ('a'):rep(3e5):match(('a*'):rep(3e5))", "-ERR user_script:1: pattern too complex"),
    ("local _ = ('a'):gmatch(('a-'):rep(3e5))()", "-ERR user_script:1: pattern too complex"),
    ("local _ = ('a'):gsub(('(a)'):rep(3e5), '')", "-ERR user_script:1: pattern too complex"),
    ("local _ = ('a'):gsub(('a+'):rep(3e5), error)", "-ERR user_script:1: pattern too complex"),
    (
        "local function f(n) if n == 0 then return (('a'):rep(200):find(('a?'):rep(200))) end \
         local found ('a'):gsub('a', function() found = f(n - 1) end) return found end \
         return f(150)",
        ":1",
    ),
    ("return ('a'):rep(3e5):find(('a'):rep(3e5))", ":1"),
    ("return ('a?'):rep(3e5):find(('a?'):rep(3e5), 1, true)", ":1"),
    ("return select('#', ('x'):match(('()'):rep(30)))", ":30"),
    ("return select('#', ('x'):find(('()'):rep(30)))", ":32"),
    ("local _ = ('x'):match(('()'):rep(33))", "-ERR user_script:1: too many captures"),
    ("local _ = ('x'):find('[')", "-ERR user_script:1: malformed pattern (missing ']')"),
    ("local _ = string.find()", "-ERR user_script:1: bad argument #1 to 'find'"),
    ("local _ = ('x'):gsub('%')", "-ERR user_script:1: bad argument #3 to 'gsub'"),
    ("return ('x'):gsub('x', function() error('mine') end)", "-ERR user_script:1: mine"),
    ("local _ = ('x'):gsub('x', {x = {}})", "-ERR user_script:1: invalid replacement value"),
    ("return (('abc'):gsub('%w', {a = '1', b = true and '2'}))", "$3\r\n12c"),
    ("return select(2, ('abc'):gsub('%w', '%0%0'))", ":3"),
];

const EDGES: &[(&str, &str)] = &[
    ("return unpack({}, 0, 2147483647)", "-ERR user_script:1: too many results to unpack"),
    ("return unpack({}, -2147483648, 2147483647)", "-ERR user_script:1: too many results"),
    ("return select('#', unpack({}, 2147483640, 2147483647))", ":8"),
    ("return select(-2147483648, 1)", "-ERR user_script:1: bad argument #1 to 'select'"),
    ("return ('abc'):sub(-2147483648, 2147483647)", "$3\r\nabc"),
    ("return table.concat({}, '', 1, 2147483647)", "-ERR user_script:1: invalid value"),
    ("return cmsgpack.unpack('\\221\\255\\255\\255\\255')", "-ERR user_script:1: Missing bytes"),
    ("return cmsgpack.unpack('\\223\\255\\255\\255\\255\\1')", "-ERR user_script:1: Missing"),
    ("return bit.lshift(1, 1e300)", ":"),
    ("return #('x'):rep(-1)", ":0"),
    ("return ('x'):rep(1e9)", "-ERR not enough memory"),
    ("return #('%99.99f'):format(1e308)", ":409"),
    ("return ('%5000d'):format(1)", "-ERR user_script:1: invalid format"),
];

const LIARS: &[(&str, &str)] = &[
    ("return setmetatable({1, 2, 3}, {__index = function(t) table.remove(t) end})", "*3"),
    ("return setmetatable({}, {__index = function() error('x') end})", "*0"),
    ("return setmetatable({}, {__gc = error, __len = error, __pairs = error})", "*0"),
    ("return {map = setmetatable({a = 1}, {__pairs = error, __index = error})}", "*2"),
    ("return cjson.encode(setmetatable({1}, {__index = error, __len = error}))", "$3\r\n[1]"),
    ("return #cmsgpack.pack(setmetatable({1}, {__index = error, __len = error}))", ":2"),
    (
        "local t = {} for i = 1, 99 do t[i] = i end for k in pairs(t) do t[k] = nil end return t",
        "*0",
    ),
    (
        "local t = {} for i = 1, 200 do t[i] = i end table.sort(t, function() return true end)",
        "-ERR",
    ),
    (
        "local t = {} for i = 1, 20000 do t[i] = coroutine.create(coroutine.yield and \
         function() coroutine.yield() end) coroutine.resume(t[i]) end return #t",
        ":20000",
    ),
    (
        "return coroutine.wrap(function() ('a'):gsub('a', coroutine.yield) end)()",
        "-ERR user_script:1: attempt to yield across",
    ),
    (
        "local n = 0 return load(function() collectgarbage() n = n + 1 \
         if n < 500 then return 'local function f() end ' end end, 'x\\0y') == nil",
        "",
    ),
];

#[test]
fn no_script_stops_or_breaks_the_process() {
    let mut bench = Bench::new();
    let mut wrong = Vec::new();
    for (what, attempts) in ATTEMPTS {
        for (text, expected) in *attempts {
            let found = bench.eval(text);
            if !found.starts_with(expected) {
                let shown = found.get(..200).unwrap_or(&found);
                wrong.push(format!("{what}: {text}\n  not {expected:?}\n  but {shown:?}"));
            }
            assert_eq!(bench.eval("return {7, 'seven'}"), "*2\r\n:7\r\n$5\r\nseven\r\n", "{text}");
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
