-- Does nothing. A server that runs it runs scripts that write, too.
-- KEYS: maybe one, whose server is meant.

return 1
