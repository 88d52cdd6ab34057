-- Removes a session, and voids the appends of requests that
-- began before. The epoch is the time, and not a count, so that one that was
-- forgotten after voidFor is never given out again.
--
-- KEYS: session, log, seen, epoch, turn. ARGV: time in µs or 0, ms to remember.

local now = tonumber(ARGV[1])
if now == 0 then
	local t = redis.call('TIME')
	now = t[1] * 1000000 + t[2]
end
local epoch = math.max(tonumber(redis.call('GET', KEYS[4]) or '0') + 1, now)
redis.call('SET', KEYS[4], string.format('%.0f', epoch), 'PX', ARGV[2])
local existed = redis.call('EXISTS', KEYS[1])
redis.call('UNLINK', KEYS[1], KEYS[2], KEYS[3], KEYS[5])
return existed
