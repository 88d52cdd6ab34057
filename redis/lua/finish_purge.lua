-- Ends a removal. KEYS: gone, dark. ARGV: escaped id.

redis.call('UNLINK', KEYS[1])
return redis.call('SREM', KEYS[2], ARGV[1])
