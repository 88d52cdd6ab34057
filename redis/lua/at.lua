-- Reads the exchanges with the given Seqs, in rising order.
--
-- KEYS: log. ARGV: Seqs, in rising order.

local found = {}
for i = 1, #ARGV do
	local e = find(tonumber(ARGV[i]))
	if e then found[#found + 1] = e end
end
return found
