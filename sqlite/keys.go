package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/backstory-proxy/backstory/store"
)

const keyColumns = `digest, tenant, plan, name, created, expires, revoked`

// Key returns the key with the digest.
func (s *Store) Key(ctx context.Context, digest [32]byte) (store.Key, error) {
	var keys []store.Key
	err := s.keys(ctx, &keys, `SELECT `+keyColumns+` FROM keys WHERE digest = ?`, digest[:])
	if err != nil {
		return store.Key{}, err
	}
	if len(keys) == 0 {
		return store.Key{}, store.ErrNotFound
	}
	return keys[0], nil
}

// ListKeys returns a tenant's keys, or all, oldest first.
func (s *Store) ListKeys(ctx context.Context, tenant string) ([]store.Key, error) {
	var keys []store.Key
	if tenant == "" {
		return keys, s.keys(ctx, &keys, `SELECT `+keyColumns+` FROM keys ORDER BY created, id`)
	}
	return keys, s.keys(ctx, &keys, `SELECT `+keyColumns+` FROM keys WHERE tenant = ? ORDER BY created, id`, tenant)
}

func (s *Store) keys(ctx context.Context, keys *[]store.Key, query string, args ...any) error {
	rows, err := s.query(ctx, query, args...)
	if err != nil {
		return err
	}
	return each(ctx, rows, func() (bool, error) {
		var k store.Key
		var digest []byte
		var created int64
		var expires, revoked sql.NullInt64
		if err := rows.Scan(&digest, &k.Tenant, &k.Plan, &k.Name, &created, &expires, &revoked); err != nil {
			return false, err
		}
		if copy(k.Digest[:], digest) != len(k.Digest) {
			return false, errors.New("a key's digest is corrupt")
		}
		k.Created, k.Expires, k.Revoked = fromMilli(created), fromNullMilli(expires), fromNullMilli(revoked)
		*keys = append(*keys, k)
		return true, nil
	})
}

// PutKey adds the key, or replaces the one with the same digest.
func (s *Store) PutKey(ctx context.Context, k store.Key) error {
	return s.writer.write(ctx, 1, func(c *conn) error {
		return c.exec(`INSERT INTO keys (`+keyColumns+`) VALUES (?, ?, ?, ?, ?, ?, ?)
			ON CONFLICT (digest) DO UPDATE SET
				tenant = excluded.tenant, plan = excluded.plan, name = excluded.name,
				created = excluded.created, expires = excluded.expires, revoked = excluded.revoked`,
			k.Digest[:], k.Tenant, k.Plan, k.Name, k.Created.UnixMilli(), nullMilli(k.Expires), nullMilli(k.Revoked))
	})
}

func fromMilli(ms int64) time.Time { return time.UnixMilli(ms).UTC() }

// A time that isn't set is NULL: it reads as what it is in the sqlite3 shell.
func nullMilli(t time.Time) sql.NullInt64 {
	return sql.NullInt64{Int64: t.UnixMilli(), Valid: !t.IsZero()}
}

func fromNullMilli(n sql.NullInt64) time.Time {
	if !n.Valid {
		return time.Time{}
	}
	return fromMilli(n.Int64)
}

var _ store.Keys = (*Store)(nil)
