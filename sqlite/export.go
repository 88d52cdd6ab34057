package sqlite

import (
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"io/fs"
	"math"
	"os"

	"github.com/backstory-proxy/backstory/store"
)

// InUse reports whether a store has the file at path open, in this process or in
// another; not on systems without flock.
func InUse(path string) (bool, error) {
	if _, err := os.Stat(path + "-lock"); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	lock, alone, err := acquire(path + "-lock")
	if err != nil {
		return false, err
	}
	return !alone, lock.release()
}

// FileChunks returns chunks of a file with their terms and vectors.
func (s *Store) FileChunks(ctx context.Context, scope store.Scope, id string, after, limit int) ([]store.Chunk, error) {
	file, _, err := s.file(ctx, scope, id)
	if err != nil {
		return nil, err
	}
	rows, err := s.query(ctx, `SELECT c.n, c.text, c.terms, c.section, c.page, c.tokens, v.vector
		FROM chunks c LEFT JOIN vectors v ON v.id = c.id
		WHERE c.file = ? AND c.n > ? ORDER BY c.n LIMIT ?`, file, after, max(limit, 0))
	if err != nil {
		return nil, err
	}
	var list []store.Chunk
	err = each(ctx, rows, func() (bool, error) {
		var k store.Chunk
		var vector []byte
		if err := rows.Scan(&k.N, &k.Text, &k.Terms, &k.Section, &k.Page, &k.Tokens, &vector); err != nil {
			return false, err
		}
		k.Vector, err = decodeVector(vector)
		list = append(list, k)
		return true, err
	})
	return list, err
}

func decodeVector(b []byte) ([]float32, error) {
	if len(b)%4 != 0 {
		return nil, errors.New("a vector is corrupt")
	}
	var v []float32
	for ; len(b) > 0; b = b[4:] {
		v = append(v, math.Float32frombits(binary.LittleEndian.Uint32(b)))
	}
	return v, nil
}

// RestoreSessions sets the times and the order of sessions, in steps.
func (s *Store) RestoreSessions(ctx context.Context, scope store.Scope, list []store.Session) error {
	for len(list) > 0 {
		batch := list[:min(purgeBatch, len(list))]
		err := s.writer.step(ctx, func(c *conn) error { return s.restoreSessions(c, scope, batch) })
		if err != nil {
			return err
		}
		list = list[len(batch):]
	}
	return nil
}

func (s *Store) restoreSessions(c *conn, scope store.Scope, list []store.Session) error {
	t, err := s.addTenant(c, scope)
	if err != nil {
		return err
	}
	var latest int64
	if err := c.row(`SELECT coalesce(max(touched), 0) FROM sessions WHERE tenant = ?`, t).Scan(&latest); err != nil {
		return err
	}
	for i, d := range list {
		c.after(forget(scope, d.ID))
		expires := sql.NullInt64{Int64: d.Updated.Add(d.TTL).UnixMilli(), Valid: d.TTL > 0}
		err := c.exec(`UPDATE sessions SET created = ?, updated = ?, expires = ?, touched = ? WHERE tenant = ? AND digest = ?`,
			d.Created.UnixMilli(), d.Updated.UnixMilli(), expires, latest+1+int64(i), t, sessionDigest(d.ID))
		if err != nil {
			return err
		}
	}
	return nil
}

// RemoveFile removes a file. What a removal has left behind is in nobody's way
// here.
func (s *Store) RemoveFile(ctx context.Context, scope store.Scope, id string) error {
	err := s.DeleteFile(ctx, scope, id)
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	return err
}

var _ store.Migrator = (*Store)(nil)
