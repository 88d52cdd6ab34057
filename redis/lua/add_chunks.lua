-- Writes chunks of a file that is uploaded. The highest number
-- is noted ahead of them: it is how far a removal has to look. Each is written
-- at once: a second write would have it indexed twice, and its words counted.
--
-- KEYS: file, known, totals, chunks. ARGV: the highest number; for each chunk the number
-- of its fields and values, its digest or nothing, its place, and the fields.

local status = redis.call('HGET', KEYS[1], 'status')
if status ~= 'uploaded' then return status or '' end
local last = tonumber(redis.call('HGET', KEYS[1], 'last') or '-1')
if tonumber(ARGV[1]) > last then redis.call('HSET', KEYS[1], 'last', ARGV[1]) end
local at, added = 2, 0
for i = 4, #KEYS do
	local n, digest = tonumber(ARGV[at]), ARGV[at + 1]
	added = added + 1 - redis.call('EXISTS', KEYS[i])
	redis.call('HSET', KEYS[i], unpack(ARGV, at + 3, at + 2 + n))
	if digest ~= '' then redis.call('HSET', KEYS[2], digest, ARGV[at + 2]) end
	at = at + n + 3
end
redis.call('HINCRBY', KEYS[1], 'chunks', added)
change(KEYS[3], 0, 0, added)
return status
