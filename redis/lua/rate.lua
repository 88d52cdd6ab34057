-- Counts a request of a tenant, if fewer than the limit were counted
-- in the window. The times are microseconds of the server's clock, one for all
-- proxies; where that is set back, the latest time seen stands, so that no window
-- holds more than the limit. It also says whether the tenant has processed files,
-- and what it has used where it is asked.
--
-- KEYS: rate, live, and maybe usage. ARGV: limit, window, name of the request, time or 0.
--
-- A request sent again because its reply was lost has the same name and is not
-- counted twice.

local limit, window, now = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[4])
if now == 0 then
	local t = redis.call('TIME')
	now = t[1] * 1000000 + t[2]
end
local last = tonumber(redis.call('ZRANGE', KEYS[1], -1, -1, 'WITHSCORES')[2])
if last and last > now then now = last end
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', string.format('%.0f', now - window))
local n = redis.call('ZCARD', KEYS[1])
local allowed = redis.call('ZSCORE', KEYS[1], ARGV[3])
if not allowed and n < limit then
	redis.call('ZADD', KEYS[1], string.format('%.0f', now), ARGV[3])
	redis.call('PEXPIRE', KEYS[1], window / 1000 * 2)
	allowed, last, n = true, now, n + 1
end
local reset, retry = 0, 0
if n > 0 then reset = last + window - now end
if limit <= 0 then
	retry = window
elseif n >= limit then
	local i = n - limit
	retry = redis.call('ZRANGE', KEYS[1], i, i, 'WITHSCORES')[2] + window - now
end
local used = KEYS[3] and redis.call('GET', KEYS[3]) or '0'
return {allowed and 1 or 0, n, reset, retry, redis.call('EXISTS', KEYS[2]), tonumber(used)}
