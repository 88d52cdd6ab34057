-- Takes a session off the lists, unless it was touched since
-- it was read. KEYS: sessions, expiring. ARGV: name, score.

local score = redis.call('ZSCORE', KEYS[1], ARGV[1])
if score and tonumber(score) == tonumber(ARGV[2]) then
	redis.call('ZREM', KEYS[2], ARGV[1])
	return redis.call('ZREM', KEYS[1], ARGV[1])
end
return 0
