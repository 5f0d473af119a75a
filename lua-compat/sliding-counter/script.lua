-- Sliding counter: two windows counted, the older weighted by how much of it still overlaps.
--
-- KEYS[1]  a hash: `window` is the number of the window, `count` what it holds, `before` what the
--          window before it held
-- ARGV     limit, window in milliseconds, cost (1 unless given; 0 only looks)
-- Returns  limited (0 or 1), limit, remaining, retry_after_ms (-1: now, or never), reset_after_ms

local function whole(text, least)
  local number = tonumber(text)
  return number and number >= least and number % 1 == 0 and number < 2 ^ 53 and number
end

local limit, window, cost = whole(ARGV[1], 0), whole(ARGV[2], 1), whole(ARGV[3] or '1', 0)
if not (limit and window and cost) or (limit + cost) * window >= 2 ^ 53 then
  return redis.error_reply('ERR expected limit, window in milliseconds, and maybe a cost')
end

local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local into = now % window
local number = (now - into) / window
local kept = redis.call('HMGET', KEYS[1], 'window', 'count', 'before')
local age = number - (tonumber(kept[1] or '') or number)
local count, before = tonumber(kept[2] or '0'), tonumber(kept[3] or '0')
if age == 1 then
  count, before = 0, count
elseif age ~= 0 then
  count, before = 0, 0
end

local function reset()
  if count > 0 then return 2 * window - into end
  return before > 0 and window - into or 0
end

-- All in units times milliseconds, so that nothing is rounded before the end.
local free = (limit - count) * window - before * (window - into)
if cost * window > free and cost > 0 then
  local retry = -1
  if cost <= limit then
    local room = (limit - count - cost) * window
    if room >= 0 then
      retry = window - into - math.floor(room / before)
    else
      retry = 2 * window - into - math.floor((limit - cost) * window / count)
    end
  end
  return {1, limit, math.max(math.floor(free / window), 0), retry, reset()}
end
if cost > 0 then
  count = count + cost
  redis.call('HSET', KEYS[1], 'window', number, 'count', count, 'before', before)
  redis.call('PEXPIRE', KEYS[1], 2 * window - into)
end
return {0, limit, math.max(math.floor(free / window) - cost, 0), -1, reset()}
