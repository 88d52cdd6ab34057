-- Removes the record of a file, and with it the file from
-- everyone's sight, and leaves a note of what is to be removed yet.
--
-- KEYS: file, gone, files, same, live, dark, blob, totals. ARGV: id, escaped id, a name of
-- this call, by which it knows its own work when it is sent again.

local d = redis.call('HMGET', KEYS[1], 'member', 'same', 'last', 'bytes', 'chunks', 'status')
if not d[1] then
	return redis.call('HGET', KEYS[2], 'call') == ARGV[3] and 1 or 0
end
redis.call('HSET', KEYS[2], 'last', d[3] or '-1', 'call', ARGV[3])
redis.call('ZREM', KEYS[3], d[1])
if redis.call('HGET', KEYS[4], d[2]) == ARGV[1] then redis.call('HDEL', KEYS[4], d[2]) end
redis.call('SREM', KEYS[5], ARGV[1])
redis.call('SADD', KEYS[6], ARGV[2])
change(KEYS[8], -1, 0 - tonumber(d[4]), d[6] == 'error' and 0 or 0 - tonumber(d[5]))
redis.call('UNLINK', KEYS[1], KEYS[7])
return 1
