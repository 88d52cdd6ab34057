-- How often chunks were deleted, and how much of that the full-text index has
-- forgotten: it keeps the words of a deleted chunk, marked as such, until it is
-- merged. What earlier versions have left in it is erased, too.
CREATE TABLE erasures (
	deleted INTEGER NOT NULL,
	merged  INTEGER NOT NULL
) STRICT;
INSERT INTO erasures SELECT EXISTS (SELECT 1 FROM words_idx), 0;
