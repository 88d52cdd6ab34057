-- The beginning of scripts that look for exchanges by their Seqs:
-- find returns the element of the log, KEYS[1], or nil. As many places as
-- replaced exchanges are missing from the log are looked through.

local log, length = KEYS[1], redis.call('LLEN', KEYS[1])
if length == 0 then return {} end
local function seq(at) return tonumber(string.match(redis.call('LINDEX', log, at), '^%d+')) end
local first = seq(0)
local gaps = seq(-1) - first + 1 - length
local function find(wanted)
	local low, high = math.max(wanted - first - gaps, 0), math.min(wanted - first, length - 1)
	while low < high do
		local middle = math.floor((low + high) / 2)
		if seq(middle) < wanted then low = middle + 1 else high = middle end
	end
	if low ~= high then return nil end
	local e = redis.call('LINDEX', log, low)
	if tonumber(string.match(e, '^%d+')) == wanted then return e end
end
