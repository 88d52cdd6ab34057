-- When a session ends, unless it is appended to before; NULL: never.
ALTER TABLE sessions ADD COLUMN expires INTEGER;
CREATE INDEX sessions_expires ON sessions (expires) WHERE expires IS NOT NULL;
