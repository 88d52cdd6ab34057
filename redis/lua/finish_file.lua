-- Sets the status of a file, and returns the one it had.
--
-- KEYS: file, live, dark, same, totals. ARGV: id, escaped id, status, reason.

local before = redis.call('HGET', KEYS[1], 'status')
if not before then return '' end
if before == 'error' and ARGV[3] ~= 'error' then return before end
redis.call('HSET', KEYS[1], 'status', ARGV[3], 'reason', ARGV[4])
if ARGV[3] == 'processed' then
	redis.call('SADD', KEYS[2], ARGV[1])
	redis.call('SREM', KEYS[3], ARGV[2])
	return before
end
redis.call('SREM', KEYS[2], ARGV[1])
redis.call('SADD', KEYS[3], ARGV[2])
if ARGV[3] == 'error' and before ~= 'error' then
	change(KEYS[5], 0, 0, 0 - tonumber(redis.call('HGET', KEYS[1], 'chunks')))
end
local same = redis.call('HGET', KEYS[1], 'same')
if ARGV[3] == 'error' and redis.call('HGET', KEYS[4], same) == ARGV[1] then
	redis.call('HDEL', KEYS[4], same)
end
return before
