-- How often something was deleted, and up to which of these times it was erased
-- from where SQLite leaves it: see erase.go. What earlier versions have left is
-- erased, too.
CREATE TABLE erasures (
	chunks  INTEGER NOT NULL, -- deletions of chunks
	words   INTEGER NOT NULL, -- those that the full-text index has forgotten
	deleted INTEGER NOT NULL, -- deletions of anything
	wiped   INTEGER NOT NULL  -- those after which the pages were wiped
) STRICT;
INSERT INTO erasures SELECT there, 0, there, 0 FROM (SELECT EXISTS (SELECT 1 FROM tenants) AS there);
