-- The id of a tenant and the id of a session are the high 32 bits of the ids of
-- what belongs to them, so that a tenant's chunks, and a session's exchanges,
-- are one range of rowids. They are never used twice.

CREATE TABLE tenants (
	id        INTEGER PRIMARY KEY,
	name      TEXT    NOT NULL UNIQUE,
	deletions INTEGER NOT NULL DEFAULT 0, -- sessions deleted so far: the epoch
	chunks    INTEGER NOT NULL DEFAULT 0  -- chunk numbers given out so far
) STRICT;

CREATE TABLE keys (
	id      INTEGER PRIMARY KEY,
	digest  BLOB    NOT NULL UNIQUE,
	tenant  TEXT    NOT NULL,
	plan    TEXT    NOT NULL,
	name    TEXT    NOT NULL,
	created INTEGER NOT NULL, -- this and all times but files.created: Unix milliseconds
	expires INTEGER,
	revoked INTEGER
) STRICT;

CREATE TABLE sessions (
	id       INTEGER PRIMARY KEY AUTOINCREMENT,
	tenant   INTEGER NOT NULL REFERENCES tenants,
	digest   BLOB    NOT NULL, -- SHA-256 of the name: names may be long
	name     TEXT    NOT NULL,
	created  INTEGER NOT NULL,
	updated  INTEGER NOT NULL,
	touched  INTEGER NOT NULL, -- rises with every append of the tenant; orders the listing
	seq      INTEGER NOT NULL, -- of the newest exchange
	messages INTEGER NOT NULL, -- in the exchanges kept
	tokens   INTEGER NOT NULL, -- likewise
	appended INTEGER NOT NULL  -- tokens ever appended
) STRICT;
CREATE UNIQUE INDEX sessions_digest ON sessions (tenant, digest);
CREATE INDEX sessions_touched ON sessions (tenant, touched);

CREATE TABLE exchanges (
	id       INTEGER PRIMARY KEY, -- session << 32 | seq
	session  INTEGER NOT NULL,    -- no reference: exchanges outlive a deleted session until they are purged
	name     TEXT    NOT NULL,    -- Exchange.ID
	position INTEGER NOT NULL,    -- Exchange.Offset
	created  INTEGER NOT NULL,
	model    TEXT    NOT NULL,
	finish   TEXT    NOT NULL,
	hidden   INTEGER NOT NULL,
	carried  BLOB    NOT NULL,
	passages BLOB,             -- store.EncodeRefs
	count    INTEGER NOT NULL, -- of messages
	tokens   INTEGER NOT NULL, -- in them
	meta     BLOB    NOT NULL, -- store.EncodeMessages
	body     INTEGER NOT NULL  -- of bodies
) STRICT;
CREATE UNIQUE INDEX exchanges_name ON exchanges (session, name);

-- The messages of exchanges, in the order of time: what is large is only ever
-- added at the end. Among the exchanges, in the order of sessions, every second
-- append would have to split a page and to spread its neighbours anew.
CREATE TABLE bodies (
	id       INTEGER PRIMARY KEY,
	messages BLOB NOT NULL -- a JSON array
) STRICT;

-- Sessions whose exchanges are still to be removed.
CREATE TABLE purges (
	session INTEGER PRIMARY KEY
) STRICT;

-- What voids the appends of requests that began before a session was deleted.
CREATE TABLE deletions (
	tenant  INTEGER NOT NULL REFERENCES tenants,
	digest  BLOB    NOT NULL,
	epoch   INTEGER NOT NULL,
	created INTEGER NOT NULL,
	PRIMARY KEY (tenant, digest)
) STRICT, WITHOUT ROWID;
CREATE INDEX deletions_created ON deletions (created);

CREATE TABLE files (
	id      INTEGER PRIMARY KEY AUTOINCREMENT,
	tenant  INTEGER NOT NULL REFERENCES tenants,
	name    TEXT    NOT NULL, -- File.ID
	title   TEXT    NOT NULL, -- File.Name
	purpose TEXT    NOT NULL,
	bytes   INTEGER NOT NULL,
	digest  BLOB    NOT NULL,
	created INTEGER NOT NULL, -- Unix seconds
	status  TEXT    NOT NULL,
	reason  TEXT    NOT NULL,
	model   TEXT    NOT NULL,
	chunks  INTEGER NOT NULL,
	hidden  INTEGER NOT NULL, -- 1 while it is being created or removed: nobody sees it
	dark    INTEGER NOT NULL  -- 1 while it may have chunks that no search may find
) STRICT;
CREATE UNIQUE INDEX files_name ON files (tenant, name) WHERE hidden = 0;
CREATE INDEX files_created ON files (tenant, created, id) WHERE hidden = 0;
CREATE INDEX files_digest ON files (tenant, digest) WHERE hidden = 0;
CREATE INDEX files_processed ON files (tenant) WHERE status = 'processed' AND hidden = 0;
CREATE INDEX files_dark ON files (tenant) WHERE dark = 1;

CREATE TABLE originals (
	file    INTEGER NOT NULL REFERENCES files,
	part    INTEGER NOT NULL,
	content BLOB    NOT NULL,
	UNIQUE (file, part)
) STRICT;

CREATE TABLE chunks (
	id      INTEGER PRIMARY KEY, -- tenant << 32 | number
	file    INTEGER NOT NULL REFERENCES files,
	n       INTEGER NOT NULL,
	page    INTEGER NOT NULL,
	tokens  INTEGER NOT NULL,
	section TEXT    NOT NULL,
	text    TEXT    NOT NULL,
	terms   TEXT    NOT NULL
) STRICT;
CREATE INDEX chunks_file ON chunks (file, n);

-- Apart from chunks, so that a scan reads vectors only.
CREATE TABLE vectors (
	id     INTEGER PRIMARY KEY REFERENCES chunks,
	file   INTEGER NOT NULL,
	model  TEXT    NOT NULL,
	vector BLOB    NOT NULL -- little-endian float32
) STRICT;

CREATE VIRTUAL TABLE words USING fts5 (
	terms,
	content = 'chunks',
	content_rowid = 'id',
	tokenize = 'porter unicode61 remove_diacritics 2'
);

CREATE TRIGGER chunks_insert AFTER INSERT ON chunks BEGIN
	INSERT INTO words (rowid, terms) VALUES (new.id, new.terms);
END;

CREATE TRIGGER chunks_delete BEFORE DELETE ON chunks BEGIN
	INSERT INTO words (words, rowid, terms) VALUES ('delete', old.id, old.terms);
	DELETE FROM vectors WHERE id = old.id;
END;
