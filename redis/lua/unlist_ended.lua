-- Takes off the lists some sessions whose time was up a while ago.
-- KEYS: expiring, sessions. ARGV: before when they must have ended, in ms.

local ended = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', ARGV[1], 'LIMIT', 0, 100)
if #ended > 0 then
	redis.call('ZREM', KEYS[1], unpack(ended))
	redis.call('ZREM', KEYS[2], unpack(ended))
end
return #ended
