-- Vectors of exchanges, for recall.
CREATE TABLE turns (
	id     INTEGER PRIMARY KEY, -- of the exchange
	model  TEXT NOT NULL,       -- the embedder
	vector BLOB NOT NULL        -- store.EncodeVector
) STRICT;

-- However an exchange goes, its vector goes with it.
CREATE TRIGGER exchanges_delete AFTER DELETE ON exchanges BEGIN
	DELETE FROM turns WHERE id = old.id;
END;
