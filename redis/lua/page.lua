-- Reads exchanges in either order. Since replaced exchanges are
-- missing from the log, it looks for the place by halves.
--
-- KEYS: session, log. ARGV: after, limit, 1 for newest first.

if redis.call('EXISTS', KEYS[1]) == 0 then return false end
local after, limit = tonumber(ARGV[1]), tonumber(ARGV[2])
if limit <= 0 then return {} end
local low, high = 0, redis.call('LLEN', KEYS[2])
local descending = ARGV[3] == '1'
if descending and after == 0 then
	low = high
else
	while low < high do
		local middle = math.floor((low + high) / 2)
		local seq = tonumber(string.match(redis.call('LINDEX', KEYS[2], middle), '^%d+'))
		if seq > after or descending and seq == after then high = middle else low = middle + 1 end
	end
end
if not descending then return redis.call('LRANGE', KEYS[2], low, low + limit - 1) end
if low == 0 then return {} end
return redis.call('LRANGE', KEYS[2], math.max(low - limit, 0), low - 1)
