-- Copies a part of a session's log behind what is staged.
-- KEYS: log, staged log. ARGV: the first to be copied, about how many bytes, for
-- how long the copy is kept in ms. It answers where to go on, -1 at the end.

local at, room = tonumber(ARGV[1]), tonumber(ARGV[2])
while room > 0 do
	local part = redis.call('LRANGE', KEYS[1], at, at + 7)
	if #part == 0 then return -1 end
	redis.call('RPUSH', KEYS[2], unpack(part))
	for i = 1, #part do room = room - #part[i] - 256 end
	at = at + #part
end
redis.call('PEXPIRE', KEYS[2], ARGV[3])
return at
