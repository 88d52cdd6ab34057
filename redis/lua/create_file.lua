-- Adds the record of a file, and shows its original.
--
-- KEYS: file, gone, files, same, live, dark, order, blob, blob as uploaded, totals.
-- ARGV: id; escaped id; what makes files the same; status; creation; a name of
-- this call, by which it knows its own file when it is sent again; fields.

local id, hidden, status = ARGV[1], ARGV[2], ARGV[4]
local other = redis.call('HGET', KEYS[4], ARGV[3])
if other then
	if other == id and redis.call('HGET', KEYS[1], 'call') == ARGV[6] then return {0} end
	return {1, other}
end
if redis.call('EXISTS', KEYS[1], KEYS[2]) > 0 then return {2} end
local member = string.format('%016.0f', redis.call('INCR', KEYS[7])) .. ':' .. id
redis.call('HSET', KEYS[1], 'id', id, 'status', status, 'created', ARGV[5], 'call', ARGV[6], 'member', member, 'same', ARGV[3], unpack(ARGV, 7))
redis.call('ZADD', KEYS[3], ARGV[5], member)
if status ~= 'error' then redis.call('HSET', KEYS[4], ARGV[3], id) end
if status == 'processed' then
	redis.call('SADD', KEYS[5], id)
else
	redis.call('SADD', KEYS[6], hidden)
end
change(KEYS[10], 1, redis.call('HGET', KEYS[1], 'bytes'), 0)
if redis.call('EXISTS', KEYS[9]) == 1 then
	redis.call('RENAME', KEYS[9], KEYS[8])
	redis.call('PERSIST', KEYS[8])
end
return {0}
