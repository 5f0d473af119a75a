-- Fixed window: at most a limit in each window, which begins with the first request it counts.
--
-- KEYS[1]  the counter: a string that lives as long as its window
-- ARGV     limit, window in milliseconds, cost (1 unless given; 0 only looks)
-- Returns  limited (0 or 1), limit, remaining, retry_after_ms (-1: now, or never), reset_after_ms

local function whole(text, least)
  local number = tonumber(text)
  return number and number >= least and number % 1 == 0 and number < 2 ^ 53 and number
end

local limit, window, cost = whole(ARGV[1], 0), whole(ARGV[2], 1), whole(ARGV[3] or '1', 0)
if not (limit and window and cost) then
  return redis.error_reply('ERR expected limit, window in milliseconds, and maybe a cost')
end

local used = tonumber(redis.call('GET', KEYS[1]) or '0')
local left = math.max(redis.call('PTTL', KEYS[1]), 0)
if used + cost > limit and cost > 0 then
  local retry = cost > limit and -1 or left
  return {1, limit, math.max(limit - used, 0), retry, left}
end
if cost > 0 then
  if left > 0 then
    redis.call('INCRBY', KEYS[1], cost)
  else
    redis.call('SET', KEYS[1], used + cost, 'PX', window)
    left = window
  end
end
return {0, limit, math.max(limit - used - cost, 0), -1, left}
