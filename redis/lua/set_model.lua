-- Records the model of a file's vectors. KEYS: file. ARGV: model.

if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
redis.call('HSET', KEYS[1], 'model', ARGV[1])
return 1
