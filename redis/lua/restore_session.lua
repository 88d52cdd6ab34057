-- Sets a session's times, if it is there.
-- KEYS: turn, session, log, seen. ARGV: created, updated, time to live in ms or
-- 0, what is left of it.

if redis.call('EXISTS', KEYS[2]) == 0 then return 0 end
redis.call('HSET', KEYS[2], 'created', ARGV[1], 'updated', ARGV[2], 'ttl', ARGV[3])
for i = 1, 4 do
	if ARGV[3] == '0' then redis.call('PERSIST', KEYS[i]) else redis.call('PEXPIRE', KEYS[i], ARGV[4]) end
end
return 1
