-- Reads exchanges in either order, until they reach a size. Since replaced
-- exchanges are missing from the log, it looks for the place by halves. They are
-- read one by one, since nothing tells how large they are: that takes the server
-- twice as long as all at once, 9 µs each amid 20,000.
--
-- KEYS: session, log. ARGV: after, limit, 1 for newest first, size in bytes.

if redis.call('EXISTS', KEYS[1]) == 0 then return false end
local after, limit, room = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[4])
local length = redis.call('LLEN', KEYS[2])
local low, high = 0, length
local descending = ARGV[3] == '1'
if descending and after == 0 then
	low = high
else
	while low < high do
		local middle = math.floor((low + high) / 2)
		local seq = tonumber(string.match(redis.call('LINDEX', KEYS[2], middle), '^%d+'))
		if seq > after or descending and seq == after then high = middle else low = middle + 1 end
	end
end
local list, at, step = {}, low, 1
if descending then at, step = low - 1, -1 end
while #list < limit and room > 0 and at >= 0 and at < length do
	local e = redis.call('LINDEX', KEYS[2], at)
	list[#list + 1], room, at = e, room - #e, at + step
end
return list
