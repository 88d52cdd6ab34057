-- Copies a part of what a session has seen.
-- KEYS: seen, staged seen. ARGV: cursor, about how many, for how long the copy is
-- kept in ms. It answers the next cursor, 0 at the end.

local part = redis.call('HSCAN', KEYS[1], ARGV[1], 'COUNT', ARGV[2])
for i = 1, #part[2], 1000 do
	redis.call('HSET', KEYS[2], unpack(part[2], i, math.min(i + 999, #part[2])))
end
redis.call('PEXPIRE', KEYS[2], ARGV[3])
return part[1]
