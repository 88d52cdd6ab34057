-- Notes when a session ends, and takes off the list some whose time
-- was up a while ago.
-- KEYS: expiring, sessions. ARGV: name, when it ends in ms, before when the
-- others must have ended.

redis.call('ZADD', KEYS[1], ARGV[2], ARGV[1])
local ended = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', ARGV[3], 'LIMIT', 0, 10)
if #ended > 0 then
	redis.call('ZREM', KEYS[1], unpack(ended))
	redis.call('ZREM', KEYS[2], unpack(ended))
end
return #ended
