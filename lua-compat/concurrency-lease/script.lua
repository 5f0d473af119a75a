-- Concurrency lease: at most a limit at the same time, each until it ends or its lease does.
--
-- KEYS[1]  the leases: a sorted set of their names, scored by the millisecond at which they end
-- ARGV     limit, lease in milliseconds (0 gives the name's lease back), the name
-- Returns  limited (0 or 1), limit, remaining, retry_after_ms (until the next lease ends at the
--          latest; -1: now, or never), milliseconds until the last lease ends

local function whole(text, least)
  local number = tonumber(text)
  return number and number >= least and number % 1 == 0 and number < 2 ^ 43 and number
end

local limit, lease, name = whole(ARGV[1], 0), whole(ARGV[2], 0), ARGV[3]
if not (limit and lease and name) then
  return redis.error_reply('ERR expected limit, lease in milliseconds, and a name')
end

local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)

-- How long until the lease at this place ends.
local function left(place)
  local held = redis.call('ZRANGE', KEYS[1], place, place, 'WITHSCORES')
  return held[2] and held[2] - now or 0
end

if lease == 0 then
  redis.call('ZREM', KEYS[1], name)
elseif redis.call('ZSCORE', KEYS[1], name) or redis.call('ZCARD', KEYS[1]) < limit then
  redis.call('ZADD', KEYS[1], now + lease, name)
  redis.call('PEXPIREAT', KEYS[1], now + left(-1))
else
  local held = redis.call('ZCARD', KEYS[1])
  local retry = limit == 0 and -1 or left(held - limit)
  return {1, limit, 0, retry, left(-1)}
end
return {0, limit, math.max(limit - redis.call('ZCARD', KEYS[1]), 0), -1, left(-1)}
