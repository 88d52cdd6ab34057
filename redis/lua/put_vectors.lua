-- Keeps vectors of exchanges that are in the log, for as long as
-- their session lives: never longer, by a millisecond that passes meanwhile.
--
-- KEYS: log, turn, session. ARGV: for each vector the Seq, the digest of the
-- exchange's ID, the value.

for i = 1, #ARGV, 3 do
	local e = find(tonumber(ARGV[i]))
	local digest = e and string.match(e, '^%d+:%-?%d+:%d+:%d+:%-?%d+:()')
	if digest and string.sub(e, digest, digest + 15) == ARGV[i + 1] then
		redis.call('HSET', KEYS[2], ARGV[i], ARGV[i + 2])
	end
end
local left = redis.call('PTTL', KEYS[3])
if left ~= -1 then redis.call('PEXPIRE', KEYS[2], left - 1) end
return {}
