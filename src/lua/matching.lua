-- Lua's functions that match patterns, so that no call of one holds its thread for ever.
--
-- What Lua's own matcher ends soon by any pattern it gets. The rest is matched by `pattern.rs`, to
-- the same results, and can be ended like any other script. A part of the prelude, by whose name
-- this is compiled, too: no error is blamed on it.

local native, protected, unblamed = ...

local byte, sub, gsub, concat = string.byte, string.sub, string.gsub, table.concat
local select, type, tonumber, ipairs = select, type, tonumber, ipairs
local raw_error = error

local guarded = {}

-- Lua 5.1 matches by functions that call themselves, once for each part of a pattern that repeats
-- or is captured, and sees no end to it; later versions have this one, and these words.
local PATTERN_PARTS_MAX = 200

local function bound_pattern(pattern)
    if type(pattern) == "string" and #pattern > PATTERN_PARTS_MAX
        and select(2, gsub(pattern, "[*+?()%-]", "%0")) > PATTERN_PARTS_MAX then
        return native.fail("pattern too complex")
    end
end

-- As `settle`, of functions whose own errors stand among those of what they call.
local function settle_matching(name, ok, ...)
    if ok then
        return ...
    end
    local err = unblamed((...))
    if err == (...) then
        return raw_error(err, 0)
    end
    return native.fail((gsub(err, "'%?'", "'" .. name .. "'", 1)))
end

-- Lua's own matcher goes back as often as a pattern allows and cannot be interrupted. What it may
-- take for text of this length is bounded by a power of the length: one for where a match begins,
-- and one for each part that repeats. Beyond so many steps, some fifty milliseconds, we match
-- ourselves, and can be ended.
local STEPS_MAX, WEIGHED_MAX = 2 ^ 24, 256

-- The exponents of patterns seen lately.
local weights, weighed = {}, 0

local function weigh(pattern)
    local weight = byte(pattern, 1) == 94 and 0 or 1
    for _, part in ipairs({ "[*+?%-]", "%%[b%d]" }) do
        weight = weight + select(2, gsub(pattern, part, "%0"))
    end
    if #pattern <= PATTERN_PARTS_MAX then
        if weighed == WEIGHED_MAX then
            weights, weighed = {}, 0
        end
        weights[pattern], weighed = weight, weighed + 1
    end
    return weight
end

-- A number has so many characters at most.
local NUMBER_LENGTH_MAX = 24

local function takes_long(text, pattern)
    local length = type(text) == "string" and #text or type(text) == "number" and NUMBER_LENGTH_MAX
    if not length or type(pattern) ~= "string" then
        return false
    end
    return (length + 1) ^ (weights[pattern] or weigh(pattern)) * #pattern > STEPS_MAX
end

local search, seek = native.search, native.seek

-- Of a place and what was captured there: the captures, and without any all of it.
local function captured(text, start, stop, ...)
    if select("#", ...) > 0 then
        return ...
    end
    return sub(text, start, stop)
end

local function unanchored(pattern)
    if byte(pattern, 1) == 94 then
        return sub(pattern, 2), true
    end
    return pattern, false
end

local long = {}

function long.find(text, pattern, from, is_plain)
    if is_plain or native.is_plain(pattern) then
        local start = seek(text, pattern, tonumber(from) or 1)
        if start then
            return start, start + #pattern - 1
        end
        return nil
    end
    local rest, is_anchored = unanchored(pattern)
    local function found(start, ...)
        if start then
            return start, ...
        end
        return nil
    end
    return found(search(text, rest, tonumber(from) or 1, is_anchored))
end

function long.match(text, pattern, from)
    local rest, is_anchored = unanchored(pattern)
    local function found(start, ...)
        if start then
            return captured(text, start, ...)
        end
        return nil
    end
    return found(search(text, rest, tonumber(from) or 1, is_anchored))
end

function long.gmatch(text, pattern)
    local from = 1
    local function found(start, stop, ...)
        if not start then
            from = #text + 2
            return nil
        end
        from = stop < start and start + 1 or stop + 1
        return captured(text, start, stop, ...)
    end
    return function()
        if from > #text + 1 then
            return nil
        end
        return found(search(text, pattern, from, false))
    end
end

-- What takes the place of a match.
local function replaced(by, text, start, stop, ...)
    local whole, value = sub(text, start, stop), nil
    if type(by) == "function" then
        value = by(captured(text, start, stop, ...))
    elseif type(by) == "table" then
        value = by[(captured(text, start, stop, ...))]
    else
        local captures, is_wrong = { captured(text, start, stop, ...) }, false
        value = gsub(by, "%%(.?)", function(mark)
            if mark == "0" then
                return whole
            end
            if mark == "" then
                return "\0"
            end
            local place = byte(mark) - 48
            if place < 0 or place > 9 then
                return mark
            end
            is_wrong = is_wrong or captures[place] == nil
            return captures[place]
        end)
        if is_wrong then
            return native.fail("invalid capture index")
        end
    end
    if not value then
        return whole
    end
    if type(value) ~= "string" and type(value) ~= "number" then
        return native.fail("invalid replacement value (a " .. type(value) .. ")")
    end
    return value
end

function long.gsub(text, pattern, by, most)
    local rest, is_anchored = unanchored(pattern)
    local pieces, count, from = {}, 0, 1
    most = tonumber(most) or #text + 1
    most = most > #text and #text + 1 or most - most % 1
    local function replace(start, stop, ...)
        if not start then
            return true
        end
        count = count + 1
        pieces[#pieces + 1] = sub(text, from, start - 1)
        pieces[#pieces + 1] = replaced(by, text, start, stop, ...)
        if stop >= start then
            from = stop + 1
            return is_anchored
        end
        pieces[#pieces + 1] = sub(text, start, start)
        from = start + 1
        return is_anchored or start > #text
    end
    while count < most and not replace(search(text, rest, from, is_anchored)) do end
    pieces[#pieces + 1] = sub(text, from)
    return concat(pieces), count
end

-- What is wrong with the arguments is told by Lua's own function, and at once: of no text.
local checks = {
    find = function(from, is_plain) return "", "", from, is_plain end,
    match = function(from) return "", "", from end,
    gmatch = function() return "", "" end,
    gsub = function(by, most) return "", "a", by, most end,
}

for _, name in ipairs({ "find", "match", "gmatch" }) do
    local matching, matching_long, check = string[name], long[name], checks[name]
    guarded[name] = function(...)
        local text, pattern, from, is_plain = ...
        if not (is_plain and name == "find") then
            bound_pattern(pattern)
        end
        if takes_long(text, pattern) then
            settle_matching(name, protected(matching, check(from, is_plain)))
            return matching_long(text .. "", select(2, ...))
        end
        return settle_matching(name, protected(matching, ...))
    end
end

function guarded.gsub(...)
    local text, pattern, by, most = ...
    bound_pattern(pattern)
    if takes_long(text, pattern) then
        settle_matching("gsub", protected(gsub, checks.gsub(by, most)))
        return long.gsub(text .. "", select(2, ...))
    end
    if type(by) == "function" then
        -- Called at once, so that the place of an error in that function is still known.
        return gsub(...)
    end
    return settle_matching("gsub", protected(gsub, ...))
end

return guarded
