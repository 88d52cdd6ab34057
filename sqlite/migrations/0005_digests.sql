-- What a vector was made of, by which a text that comes again finds it:
-- store.Chunk.Digest. NULL: it was added before this was kept.
ALTER TABLE vectors ADD COLUMN digest BLOB;
CREATE INDEX vectors_digest ON vectors (digest) WHERE digest IS NOT NULL;
