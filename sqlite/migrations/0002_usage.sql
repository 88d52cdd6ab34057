-- Tokens used, by calendar month of UTC.
CREATE TABLE usage (
	tenant INTEGER NOT NULL REFERENCES tenants,
	month  INTEGER NOT NULL, -- year * 12 + month - 1
	tokens INTEGER NOT NULL,
	PRIMARY KEY (tenant, month)
) STRICT, WITHOUT ROWID;
