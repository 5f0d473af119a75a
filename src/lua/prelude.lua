-- What stands between a script and Lua's own library.
--
-- Scripts see read-only views. A view is an empty table whose metatable finds what is inside and
-- refuses writes; what is inside is reachable only from here. All scripts of a worker share one
-- state, so nothing of one may be left for the next.
--
-- Lua 5.1 raises an error of a library function at the place of its caller. Functions that are
-- wrapped here therefore raise through `native`, which looks past this file for that place.

local native, extensions, matching, version, version_number = ...

local byte, sub, gsub = string.byte, string.sub, string.gsub
local select, type, unpack = select, type, unpack
local raw_getmetatable, raw_setmetatable = getmetatable, setmetatable
local raw_insert_into, raw_next, raw_pcall, raw_xpcall = rawset, next, pcall, xpcall
local raw_load, raw_loadstring, raw_resume = load, loadstring, coroutine.resume
local raw_rawget, raw_collectgarbage, raw_error = rawget, collectgarbage, error
local raw_setfenv = setfenv

local READONLY = "Attempt to modify a readonly table"

-- Views, each with what is inside.
local inside = {}

local function readonly(content)
    local view = raw_setmetatable({}, { __index = content, __newindex = native.modify })
    inside[view] = content
    return view
end

-- What the functions of this file call for a script is a level of the stack that a script on a
-- Redis does not have: no error is blamed on it.
local function unblamed(err)
    if type(err) == "string" and sub(err, 1, 8) == "prelude:" then
        return (gsub(err, "^prelude:%d+: ", "", 1))
    end
    return err
end

-- An error of the server is not a Lua value; scripts see Redis's table, or with pcall its text.
local function thrown(err)
    if type(err) == "userdata" then
        local text, is_reply, is_counted = native.message(err)
        if is_reply then
            return { err = text, ignore_error_stats_update = is_counted or nil }
        end
        return text
    end
    return unblamed(err)
end

local function plain(err)
    if type(err) == "userdata" then
        return (native.message(err))
    end
    if type(err) == "table" and type(err.err) == "string" then
        return err.err
    end
    return unblamed(err)
end

-- Lua 5.1's own pcall and xpcall make room for twenty values, put before the results whether it
-- went well, and never ask whether there is room for that. So they see few; more go in a table.
local FEW, HELD = 16, {}

local function hold(...)
    local count = select("#", ...)
    if count <= FEW then
        return ...
    end
    return HELD, { n = count, ... }
end

local function released(ok, ...)
    local first, held = ...
    if first == HELD then
        return ok, unpack(held, 1, held.n)
    end
    return ok, ...
end

-- The function has no name here, as it has none where pcall calls it.
local function collect(...)
    return hold((...)(select(2, ...)))
end

local function protected(...)
    return released(raw_pcall(collect, ...))
end

local function itself(value)
    return value
end

-- Ends a wrapped call: an error is raised at the place of the script that called.
local function settle(name, ok, ...)
    if ok then
        return ...
    end
    local err = ...
    if type(err) ~= "string" or sub(err, 1, 11) == "table index" then
        return raw_error(err, 0)
    end
    return native.fail((gsub(err, "'%?'", "'" .. name .. "'", 1)))
end

-- Nothing is caught any more of a run that is to end.
local function after_pcall(ok, ...)
    if ok then
        return true, ...
    elseif native.is_stopping() then
        return raw_error((...), 0)
    end
    return false, plain((...))
end

local function after_resume(ok, ...)
    if ok then
        return true, ...
    elseif native.is_stopping() then
        return raw_error((...), 0)
    end
    return false, thrown((...))
end

-- What scripts find as globals; KEYS and ARGV come with each run.
local globals = {
    _VERSION = _VERSION,
    assert = assert,
    error = error,
    gcinfo = gcinfo,
    ipairs = ipairs,
    rawequal = rawequal,
    select = select,
    tonumber = tonumber,
    tostring = tostring,
    type = type,
    unpack = unpack,
}

function globals.pairs(...)
    local t = ...
    if type(t) == "table" then
        return raw_next, inside[t] or t, nil
    end
    return settle("pairs", raw_pcall(pairs, ...))
end

function globals.next(...)
    local t, key = ...
    if type(t) == "table" then
        return raw_next(inside[t] or t, key)
    end
    return settle("next", raw_pcall(raw_next, ...))
end

function globals.rawget(...)
    local t, key = ...
    if inside[t] then
        return raw_rawget(inside[t], key)
    end
    return settle("rawget", raw_pcall(raw_rawget, ...))
end

function globals.rawset(...)
    if inside[(...)] then
        return raw_error(READONLY, 0)
    end
    return settle("rawset", raw_pcall(raw_insert_into, ...))
end

function globals.setmetatable(...)
    if inside[(...)] then
        return raw_error(READONLY, 0)
    end
    return settle("setmetatable", raw_pcall(raw_setmetatable, ...))
end

-- Metatables that scripts may look at, by what has them.
local shown = {}

function globals.getmetatable(...)
    local value = ...
    if type(value) == "string" then
        return shown.string
    end
    if inside[value] then
        return shown[value]
    end
    return settle("getmetatable", raw_pcall(raw_getmetatable, ...))
end

function globals.pcall(...)
    if select("#", ...) == 0 then
        return false, "attempt to call a nil value"
    end
    return after_pcall(protected(...))
end

function globals.xpcall(...)
    if select("#", ...) < 2 then
        return settle("xpcall", raw_pcall(raw_xpcall, ...))
    end
    local f, handler = ...
    local function run()
        return hold(itself(f)())
    end
    if type(handler) ~= "function" then
        return released(raw_xpcall(run, handler))
    end
    return released(raw_xpcall(run, function(err)
        -- While Lua handles an error of its hook it calls the hook no more, so a handler that
        -- does not end could not be ended either.
        if native.is_stopping() then
            return err
        end
        return handler(thrown(err))
    end))
end

-- Bytecode is refused with the message of a Redis, which has no reader for it.
local function as_bytecode(f, err, ...)
    if type(err) == "string" then
        err = gsub(err, "char%(1%)", "char(27)", 1)
    end
    return f, thrown(err), ...
end

function globals.loadstring(...)
    local text, name = ...
    if type(text) == "string" and byte(text, 1) == 27 then
        local masked = "\1" .. sub(text, 2)
        return as_bytecode(settle("loadstring", raw_pcall(raw_loadstring, masked, name or text)))
    end
    return settle("loadstring", raw_pcall(raw_loadstring, ...))
end

function globals.load(...)
    local reader, name = ...
    if type(reader) ~= "function" then
        return settle("load", raw_pcall(raw_load, ...))
    end
    local begun, masked = false, false
    local function masking()
        local piece = reader()
        if not begun and type(piece) == "string" and piece ~= "" then
            begun = true
            if byte(piece, 1) == 27 then
                masked = true
                return "\1" .. sub(piece, 2)
            end
        end
        return piece
    end
    if name == nil then
        name = "=(load)"
    end
    local f, err = settle("load", raw_pcall(raw_load, masking, name))
    if masked then
        return as_bytecode(f, err)
    end
    if f == nil then
        return nil, thrown(err)
    end
    return f
end

-- The collector belongs to all scripts of the worker: none may stop it.
local tuning = { setpause = 200, setstepmul = 200 }

function globals.collectgarbage(...)
    local option, argument = ...
    if option == "stop" or option == "restart" then
        return 0
    end
    if tuning[option] then
        local before = tuning[option]
        tuning[option] = tonumber(argument) or 0
        return before
    end
    return settle("collectgarbage", raw_pcall(raw_collectgarbage, ...))
end

local function copy(from)
    local to = {}
    for key, value in raw_next, from do
        to[key] = value
    end
    return to
end

-- The functions that match, as `matching.lua` guards them.
local string_content = copy(string)
for name, f in raw_next, matching(native, protected, unblamed) do
    string_content[name] = f
end

local math_content = copy(math)
math_content.random, math_content.randomseed = native.random, native.randomseed
local table_content, raw_insert = copy(table), table.insert
local coroutine_content = copy(coroutine)

function coroutine_content.resume(...)
    return after_resume(raw_resume(...))
end

-- It asks no metatable, so it alone could write into a view. A wrong argument is told first.
function table_content.insert(...)
    local t, place = ...
    local count = select("#", ...)
    if inside[t] then
        settle("insert", raw_pcall(raw_insert, {}, select(2, ...)))
        return raw_error(READONLY, 0)
    end
    -- What cannot fail goes there directly.
    if type(t) == "table" and (count == 2 or count == 3 and type(place) == "number") then
        return raw_insert(...)
    end
    return settle("insert", raw_pcall(raw_insert, ...))
end

globals.string = readonly(string_content)
globals.math = readonly(math_content)
globals.table = readonly(table_content)
globals.coroutine = readonly(coroutine_content)
globals.os = readonly({ clock = os.clock })
for name, content in raw_next, extensions do
    globals[name] = readonly(content)
end

raw_getmetatable("").__index = string_content
shown.string = readonly({ __index = globals.string })

-- The server's own table, as scripts have it, functions, and a library while it is loaded.
local constants = {
    LOG_DEBUG = 0, LOG_VERBOSE = 1, LOG_NOTICE = 2, LOG_WARNING = 3,
    REDIS_VERSION = version, REDIS_VERSION_NUM = version_number,
}

local function with_constants(content)
    for key, value in raw_next, constants do
        content[key] = value
    end
    return content
end

local function api()
    return with_constants({
        call = native.call,
        pcall = native.pcall,
        error_reply = native.error_reply,
        status_reply = native.status_reply,
        sha1hex = native.sha1hex,
        log = native.log,
        setresp = native.setresp,
        set_repl = native.set_repl,
        acl_check_cmd = native.acl_check_cmd,
        REPL_NONE = 0, REPL_AOF = 1, REPL_SLAVE = 2, REPL_REPLICA = 2, REPL_ALL = 3,
    })
end

local function strict(content)
    return raw_setmetatable(content, { __index = native.missing })
end

-- The globals of functions, which get their keys and arguments as arguments.
local function_globals = copy(globals)
function_globals.redis = readonly(api())
function_globals.server = function_globals.redis

local script_api = api()
script_api.replicate_commands = function() return true end
script_api.breakpoint = function() return false end
script_api.debug = function() end
globals.redis = readonly(script_api)
globals.server = globals.redis

local loading_globals = {}
loading_globals.redis = readonly(strict(with_constants({
    log = native.log,
    register_function = native.register_function,
})))
loading_globals.server = loading_globals.redis

local environment = readonly(strict(globals))
globals._G = environment
shown[environment] = readonly({ __index = native.missing })

local library_environment = readonly(strict(function_globals))
function_globals._G = library_environment
shown[library_environment] = shown[environment]
local library_metatable = raw_getmetatable(library_environment)
strict(loading_globals)

-- From here on what is compiled, also by scripts, sees the view.
raw_setfenv(0, environment)

-- How a run ended, for who called: what kind of value it left, and the value.
local ERROR, VALUE, ARRAY = 0, 1, 2

-- Arrays up to this length are handed over value by value; what stands behind a `nil` is no part.
local SHORT = 8

local function finish(ok, value)
    if not ok then
        return ERROR, value
    end
    if type(value) ~= "table" or raw_getmetatable(value) or value.err ~= nil or value.ok ~= nil
        or value.double ~= nil or value.map ~= nil or value.set ~= nil
        or value.big_number ~= nil or value.verbatim_string ~= nil or #value > SHORT then
        return VALUE, value
    end
    return ARRAY, unpack(value, 1, #value)
end

local entry = {}

local callee, callee_keys, callee_arguments

-- Of what a run leaves the first value counts.
local function call_script()
    return (callee())
end

local function call_callee()
    return (callee(callee_keys, callee_arguments))
end

local function run(script, keys, arguments)
    globals.KEYS, globals.ARGV = keys, arguments
    callee = script
    return finish(raw_xpcall(call_script, native.caught))
end

local function call_function(f, keys, arguments)
    callee, callee_keys, callee_arguments = f, keys, arguments
    return finish(raw_xpcall(call_callee, native.caught))
end

-- The usual case: Lua makes tables of a few words for less than mlua does.
function entry.run_on_key(script, key, ...)
    return run(script, { key }, { ... })
end

function entry.call_function_on_key(f, key, ...)
    return call_function(f, { key }, { ... })
end

function entry.load_library(chunk)
    library_metatable.__index = loading_globals
    callee = chunk
    local ok, err = raw_xpcall(call_script, native.caught)
    library_metatable.__index = function_globals
    return finish(ok, err)
end

entry.run, entry.call_function = run, call_function
entry.library_environment = library_environment
entry.next = raw_next
return entry
