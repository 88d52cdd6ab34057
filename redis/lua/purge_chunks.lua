-- Removes chunks, and what is known by them.
-- KEYS: known, chunks. ARGV: the chunks' places.

for i = 2, #KEYS do
	local digest = redis.call('HGET', KEYS[i], 'digest')
	if digest and redis.call('HGET', KEYS[1], digest) == ARGV[i - 1] then redis.call('HDEL', KEYS[1], digest) end
	redis.call('UNLINK', KEYS[i])
end
return 0
