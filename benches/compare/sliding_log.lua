-- An exact sliding log in a sorted set: what one would write on Redis for RL.LIMIT.
-- KEYS[1] what is counted; ARGV[1] limit, ARGV[2] window in milliseconds.
-- Answers limited, limit, remaining, retry_after_ms, reset_after_ms.
local time = redis.call('TIME')
local now_us = time[1] * 1000000 + time[2]
local limit, window_ms = tonumber(ARGV[1]), tonumber(ARGV[2])
local opens_us = now_us - window_ms * 1000

redis.call('ZREMRANGEBYSCORE', KEYS[1], 0, opens_us)
local used = redis.call('ZCARD', KEYS[1])
if used >= limit then
  local oldest = redis.call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')
  local retry_ms = math.ceil((oldest[2] - opens_us) / 1000)
  return {1, limit, 0, retry_ms, redis.call('PTTL', KEYS[1])}
end
-- In one microsecond the set only grows, so its size makes the member unique.
redis.call('ZADD', KEYS[1], now_us, time[1] .. '.' .. time[2] .. '.' .. used)
redis.call('PEXPIRE', KEYS[1], window_ms)
return {0, limit, limit - used - 1, -1, window_ms}
