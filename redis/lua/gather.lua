-- Reads the end of a session. How many exchanges the wish comes to is guessed by
-- the recent mean, and made sure of by looking at the first one of them: it says
-- how much was appended before it. The cost doesn't grow with the session. They are
-- read from the newest back, one by one, until they reach a size.
--
-- KEYS: session, log, epoch. ARGV: tokens, messages, number of exchanges or 0, how
-- many more come with as many as the tokens and messages take, size in bytes.

local d = redis.call('HMGET', KEYS[1], 'seq', 'ever', 'sent', 'mean_tokens', 'mean_messages')
local epoch = redis.call('GET', KEYS[3]) or '0'
if not d[1] then return {epoch, '0', '0', 0, {}} end
local length, n = redis.call('LLEN', KEYS[2]), tonumber(ARGV[3])
if n == 0 then
	local tokens, messages = math.max(tonumber(ARGV[1]), 0), math.max(tonumber(ARGV[2]), 0)
	n = math.ceil(math.max(tokens / math.max(tonumber(d[4]), 0.01), messages / math.max(tonumber(d[5]), 0.01)))
	while n > 0 and n < length do
		local offset, before = string.match(redis.call('LINDEX', KEYS[2], -n), '^%d+:(%-?%d+):(%d+):')
		local share = 1
		local function cover(wanted, got)
			if got < wanted then share = math.max(share, math.min(wanted / math.max(got, 0.01), 8)) end
		end
		cover(tokens, d[2] - offset)
		cover(messages, d[3] - before)
		if share == 1 then break end
		n = math.ceil(n * share)
	end
	n = n + tonumber(ARGV[4])
end
local list, room = {}, tonumber(ARGV[5])
for i = 1, math.min(n, length) do
	local e = redis.call('LINDEX', KEYS[2], -i)
	list[i], room = e, room - #e
	if room <= 0 then break end
end
return {epoch, d[1], d[2], length, list}
