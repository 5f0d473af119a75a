-- Sliding log: at most a limit in every window, wherever it begins.
--
-- KEYS[1]  the log: a sorted set with a member for each unit, scored by its microsecond
-- ARGV     limit, window in milliseconds, cost (1 unless given; 0 only looks)
-- Returns  limited (0 or 1), limit, remaining, retry_after_ms (-1: now, or never), reset_after_ms

local function whole(text, least)
  local number = tonumber(text)
  return number and number >= least and number % 1 == 0 and number < 2 ^ 43 and number
end

local limit, window, cost = whole(ARGV[1], 0), whole(ARGV[2], 1), whole(ARGV[3] or '1', 0)
if not (limit and window and cost) then
  return redis.error_reply('ERR expected limit, window in milliseconds, and maybe a cost')
end

local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - window * 1000)
local used = redis.call('ZCARD', KEYS[1])

-- How long until the unit at this place has left the window, in milliseconds, rounded up.
local function left(place)
  local unit = redis.call('ZRANGE', KEYS[1], place, place, 'WITHSCORES')
  return unit[2] and math.ceil((unit[2] + window * 1000 - now) / 1000) or 0
end

if used + cost > limit and cost > 0 then
  local retry = cost > limit and -1 or left(used + cost - limit - 1)
  return {1, limit, math.max(limit - used, 0), retry, left(-1)}
end
if cost > 0 then
  -- Units of the same microsecond are told apart by their number.
  local same = redis.call('ZCOUNT', KEYS[1], now, now)
  for unit = 1, cost do
    redis.call('ZADD', KEYS[1], now, string.format('%d-%d', now, same + unit))
  end
  redis.call('PEXPIRE', KEYS[1], window)
end
return {0, limit, math.max(limit - used - cost, 0), -1, left(-1)}
