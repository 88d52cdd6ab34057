-- Keeps the totals of a tenant's files, unless something has changed since they
-- began to be summed up.
--
-- KEYS: totals. ARGV: who sums up; how long to keep them, in ms; files, bytes,
-- chunks.

if redis.call('HGET', KEYS[1], 'summing') ~= ARGV[1] then return 0 end
redis.call('UNLINK', KEYS[1])
if ARGV[3] == '0' then return 0 end
redis.call('HSET', KEYS[1], 'files', ARGV[3], 'bytes', ARGV[4], 'chunks', ARGV[5])
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return 1
