-- Saves exchanges at the end of their session, those that it has
-- already excepted: by the digests of their IDs.
--
-- KEYS: session, log, seen, epoch, turn. ARGV: the mark's epoch and seq; the seq
-- up to which the session is known; 1 if it may have passed that; the session's
-- name; now in ms; the seq to be replaced or 0; 1 if duplicates must write too,
-- so that there is something for the replicas to confirm; the time to live in ms
-- or 0; and for each exchange: the digest of its ID, messages, tokens, the record.
--
-- A session that holds less than is known of it, and wasn't deleted, has lost
-- some: its time was up, or a replica took over that hadn't got all. What is
-- saved then replaces nothing: the seq may be another exchange's by now.
--
-- The means follow the last exchanges, about sixteen: what a session was like
-- long ago says little of how much of it a request needs.
--
-- It answers 0 (saved) or 1 (all are there already) and each one's seq; 2 where
-- the session was deleted; 3 (others were faster), the session's seq, and the
-- exchanges that are newer than the mark.

local session, log, seen = KEYS[1], KEYS[2], KEYS[3]
local d = redis.call('HMGET', session, 'seq', 'ever', 'messages', 'tokens', 'mean_tokens', 'mean_messages', 'sent')
local seq, ever = tonumber(d[1] or '0'), tonumber(d[2] or '0')
local epoch, mark, expected = tonumber(redis.call('GET', KEYS[4]) or '0'), tonumber(ARGV[2]), tonumber(ARGV[3])
local ttl = tonumber(ARGV[9])
if epoch > tonumber(ARGV[1]) then return {2} end

local known, fresh = {}, false
for i = 10, #ARGV, 4 do
	known[i] = redis.call('HGET', seen, ARGV[i])
	fresh = fresh or not known[i]
end
if fresh and ARGV[4] ~= '1' and seq > expected then
	return {3, d[1], redis.call('LRANGE', log, string.format('%.0f', mark - seq), -1)}
end

local messages, tokens, sent = tonumber(d[3] or '0'), tonumber(d[4] or '0'), tonumber(d[7] or '0')
local function remove(target)
	local last = -1
	while true do
		local part = redis.call('LRANGE', log, last - 15, last)
		for i = #part, 1, -1 do
			local at, m, t, digest = string.match(part[i], '^(%d+):%-?%d+:%d+:(%d+):(%-?%d+):()')
			at = tonumber(at)
			if at == target then
				redis.call('LREM', log, -1, part[i])
				redis.call('HDEL', seen, string.sub(part[i], digest, digest + 15))
				redis.call('HDEL', KEYS[5], string.format('%.0f', at))
				messages, tokens = messages - m, tokens - t
			end
			if at <= target then return end
		end
		if #part < 16 then return end
		last = last - 16
	end
end
local replaces = tonumber(ARGV[7])
if fresh and replaces > 0 and replaces <= seq and seq >= expected then remove(replaces) end

local function text(n) return string.format('%.0f', n) end
local mm, mt = d[6] and tonumber(d[6]), d[5] and tonumber(d[5])
local function push(digest, m, t, record)
	redis.call('RPUSH', log, text(seq + 1) .. ':' .. text(ever) .. ':' .. text(sent) .. ':' .. m .. ':' .. t .. ':' .. digest .. record)
	redis.call('HSET', seen, digest, text(seq + 1))
	m, t = tonumber(m), tonumber(t)
	if not mm then mm, mt = m, t end
	seq, ever, sent, messages, tokens = seq + 1, ever + t, sent + m, messages + m, tokens + t
	mm, mt = mm + (m - mm) / 16, mt + (t - mt) / 16
end
local seqs = {}
for i = 10, #ARGV, 4 do
	local same = known[i] or redis.call('HGET', seen, ARGV[i]) -- twice in the list
	if not same then push(ARGV[i], ARGV[i + 1], ARGV[i + 2], ARGV[i + 3]) end
	seqs[#seqs + 1] = same or text(seq)
end
if fresh then
	redis.call('HSET', session, 'seq', text(seq), 'ever', text(ever), 'sent', text(sent), 'updated', ARGV[6],
		'messages', text(messages), 'tokens', text(tokens), 'mean_messages', mm, 'mean_tokens', mt, 'ttl', ARGV[9])
	for _, key in ipairs({KEYS[5], session, log, seen}) do
		if ttl > 0 then redis.call('PEXPIRE', key, ARGV[9]) else redis.call('PERSIST', key) end
	end
	if not d[1] then redis.call('HSET', session, 'id', ARGV[5], 'created', ARGV[6]) end
elseif ARGV[8] == '1' and d[1] then
	redis.call('HSET', session, 'seq', d[1])
end
return {fresh and 0 or 1, seqs}
