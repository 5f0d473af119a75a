-- Token bucket: a bucket that is full at first, and filled evenly.
--
-- KEYS[1]  a hash: `level` is what the bucket holds, in parts of a token (as many as the period
--          has microseconds), and `at` the microsecond at which it held that
-- ARGV     capacity, tokens that come in a period, the period in milliseconds, cost (1 unless
--          given; 0 only looks)
-- Returns  limited (0 or 1), capacity, remaining, retry_after_ms (-1: now, or never),
--          milliseconds until the bucket is full

local function whole(text, least)
  local number = tonumber(text)
  return number and number >= least and number % 1 == 0 and number < 2 ^ 43 and number
end

local capacity, refill = whole(ARGV[1], 1), whole(ARGV[2], 1)
local period, cost = whole(ARGV[3], 1), whole(ARGV[4] or '1', 0)
if not (capacity and refill and period and cost) then
  return redis.error_reply('ERR expected capacity, tokens in a period, period in milliseconds, and maybe a cost')
end

local token = period * 1000
local full = capacity * token
if full >= 2 ^ 52 or cost * token >= 2 ^ 52 then
  return redis.error_reply('ERR capacity or cost takes too long at this rate')
end

local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local kept = redis.call('HMGET', KEYS[1], 'level', 'at')
local level, at = tonumber(kept[1] or '') or full, tonumber(kept[2] or '') or now
level = math.min(full, level + math.max(now - at, 0) * refill)

-- How long until so many parts have come, in milliseconds, rounded up.
local function wait(parts)
  return math.ceil(parts / refill / 1000)
end

if cost * token > level then
  local retry = cost > capacity and -1 or wait(cost * token - level)
  return {1, capacity, math.floor(level / token), retry, wait(full - level)}
end
if cost > 0 then
  level = level - cost * token
  redis.call('HSET', KEYS[1], 'level', level, 'at', now)
  redis.call('PEXPIRE', KEYS[1], wait(full - level))
end
return {0, capacity, math.floor(level / token), -1, wait(full - level)}
