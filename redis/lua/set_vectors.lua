-- Gives chunks of a processed file other vectors, of which a
-- chunk has one.
--
-- KEYS: file, known, chunks. ARGV: how the fields of vectors begin; for each chunk
-- its digest, its place, its field, and its vector or nothing.

local status = redis.call('HGET', KEYS[1], 'status')
if status ~= 'processed' then return status or '' end
for i = 3, #KEYS do
	local at = 2 + (i - 3) * 4
	local digest, place, field, vector = ARGV[at], ARGV[at + 1], ARGV[at + 2], ARGV[at + 3]
	if redis.call('EXISTS', KEYS[i]) == 1 then
		for _, name in ipairs(redis.call('HKEYS', KEYS[i])) do
			if string.sub(name, 1, #ARGV[1]) == ARGV[1] and (name ~= field or vector == '') then redis.call('HDEL', KEYS[i], name) end
		end
		if vector ~= '' then
			redis.call('HSET', KEYS[i], field, vector, 'digest', digest)
			redis.call('HSET', KEYS[2], digest, place)
		end
	end
end
return status
