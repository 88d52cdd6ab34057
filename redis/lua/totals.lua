-- The beginning of scripts that change what a tenant's files come to: change keeps
-- the totals right that are known, in the hash at key. While they are being summed
-- up, they are not kept then. Of a tenant without files there are none.

local function change(key, files, bytes, chunks)
	if redis.call('HEXISTS', key, 'summing') == 1 then
		redis.call('UNLINK', key)
	elseif redis.call('EXISTS', key) == 1 then
		redis.call('HINCRBY', key, 'bytes', bytes)
		redis.call('HINCRBY', key, 'chunks', chunks)
		if redis.call('HINCRBY', key, 'files', files) == 0 then redis.call('UNLINK', key) end
	end
end
