-- Puts staged exchanges at the end of their session, if it is as it was when they
-- were staged, and wasn't deleted. What was staged expires by itself.
--
-- KEYS: session, log, seen, epoch, turn, staged log, staged seen. ARGV: the mark's
-- epoch; the session's seq as it was; how long the staged log must be; how many of
-- its exchanges are new; 1 if the staged keys hold the old ones too and take the
-- place of log and seen, else the new ones are moved; the session's name; now in
-- ms; the time to live in ms or 0; seq, ever, sent, messages, tokens, mean messages
-- and mean tokens of the session as it will be; and where they are moved, for each
-- the digest of its ID and its seq.
--
-- It answers 0 (saved), 2 where the session was deleted, or 4 where it has changed.

local session, log, seen = KEYS[1], KEYS[2], KEYS[3]
if tonumber(redis.call('GET', KEYS[4]) or '0') > tonumber(ARGV[1]) then return {2} end
local seq = redis.call('HGET', session, 'seq')
if (seq or '0') ~= ARGV[2] or redis.call('LLEN', KEYS[6]) ~= tonumber(ARGV[3]) then return {4} end
local n, ttl = tonumber(ARGV[4]), tonumber(ARGV[8])
if n == 0 then -- a write, for the replicas to confirm
	if seq then redis.call('HSET', session, 'seq', seq) end
	return {0}
end
if ARGV[5] == '1' then
	redis.call('UNLINK', log, seen)
	redis.call('RENAME', KEYS[6], log)
	redis.call('RENAME', KEYS[7], seen)
else
	for i = 0, n - 1 do
		redis.call('LMOVE', KEYS[6], log, 'LEFT', 'RIGHT')
		redis.call('HSET', seen, ARGV[16 + 2 * i], ARGV[17 + 2 * i])
	end
end
redis.call('HSET', session, 'seq', ARGV[9], 'ever', ARGV[10], 'sent', ARGV[11], 'messages', ARGV[12], 'tokens', ARGV[13],
	'mean_messages', ARGV[14], 'mean_tokens', ARGV[15], 'updated', ARGV[7], 'ttl', ARGV[8])
if not seq then redis.call('HSET', session, 'id', ARGV[6], 'created', ARGV[7]) end
for _, key in ipairs({KEYS[5], session, log, seen}) do
	if ttl > 0 then redis.call('PEXPIRE', key, ARGV[8]) else redis.call('PERSIST', key) end
end
return {0}
