-- Runs one command, for small writes that come with deletions.
-- KEYS: its key. ARGV: its name, its other arguments.

return redis.call(ARGV[1], KEYS[1], unpack(ARGV, 2))
