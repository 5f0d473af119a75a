-- GCRA: requests spread over the window, with a burst at once.
--
-- KEYS[1]  a string: the microsecond at which nothing is owed any more
-- ARGV     limit, window in milliseconds, cost (1 unless given; 0 only looks), burst (what may
--          come at once; the limit unless given)
-- Returns  limited (0 or 1), burst, remaining, retry_after_ms (-1: now, or never), reset_after_ms

local function whole(text, least)
  local number = tonumber(text)
  return number and number >= least and number % 1 == 0 and number < 2 ^ 43 and number
end

local limit, window, cost = whole(ARGV[1], 1), whole(ARGV[2], 1), whole(ARGV[3] or '1', 0)
local burst = whole(ARGV[4] or ARGV[1], 1)
if not (limit and window and cost and burst) then
  return redis.error_reply('ERR expected limit, window in milliseconds, and maybe cost and burst')
end

-- What a unit takes, rounded up: the rate is never exceeded.
local interval = math.ceil(window * 1000 / limit)
if (burst + cost) * interval >= 2 ^ 52 then
  return redis.error_reply('ERR burst and cost take too long at this rate')
end

local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local owed = math.max(tonumber(redis.call('GET', KEYS[1]) or '0') - now, 0)
local room = burst * interval
local after = owed + cost * interval
if after > room and cost > 0 then
  local retry = cost > burst and -1 or math.ceil((after - room) / 1000)
  local remaining = math.max(math.floor((room - owed) / interval), 0)
  return {1, burst, remaining, retry, math.ceil(owed / 1000)}
end
local reset = math.ceil(after / 1000)
if cost > 0 then
  redis.call('SET', KEYS[1], now + after, 'PX', reset)
end
return {0, burst, math.max(math.floor((room - after) / interval), 0), -1, reset}
