-- Reads the exchanges with the given Seqs, in rising order, until they reach a
-- size.
--
-- KEYS: log. ARGV: the size in bytes; Seqs, in rising order.

local found, room = {}, tonumber(ARGV[1])
for i = 2, #ARGV do
	local e = find(tonumber(ARGV[i]))
	if e then found[#found + 1], room = e, room - #e end
	if room <= 0 then break end
end
return found
