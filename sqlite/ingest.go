package sqlite

import (
	"context"
	"errors"
	"fmt"

	"github.com/backstory-proxy/backstory/store"
)

// AddChunks adds chunks to a file that is uploaded, in steps: until the file is
// processed, no search sees them.
func (s *Store) AddChunks(ctx context.Context, scope store.Scope, id string, chunks []store.Chunk) error {
	for {
		added := 0
		err := s.writer.add(ctx, func(c *conn) (err error) {
			added, err = s.addChunks(c, scope, id, chunks)
			return err
		})
		if chunks = chunks[min(added, len(chunks)):]; err != nil || len(chunks) == 0 {
			return err
		}
	}
}

// addChunks adds as many chunks as a step has time for, and returns how many.
func (s *Store) addChunks(c *conn, scope store.Scope, id string, chunks []store.Chunk) (added int, err error) {
	t, err := s.addTenant(c, scope)
	if err != nil {
		return 0, err
	}
	var file int64
	var status store.FileStatus
	var model string
	err = c.row(`SELECT id, status, model FROM files WHERE tenant = ? AND name = ? AND hidden = 0`, t, id).Scan(&file, &status, &model)
	if errors.Is(err, store.ErrNotFound) {
		return 0, store.ErrDeleted
	}
	if err != nil {
		return 0, err
	}
	if status != store.FileUploaded {
		return 0, fmt.Errorf("sqlite: add chunks to a file that is %s", status)
	}
	var number int64
	if err := c.row(`SELECT chunks FROM tenants WHERE id = ?`, t).Scan(&number); err != nil {
		return 0, err
	}
	for ; added < len(chunks) && (added == 0 || !c.spent()); added++ {
		if number+int64(added) >= 1<<32 {
			return 0, errors.New("sqlite: the tenant has had too many chunks; start a new file for it")
		}
		if err := addChunk(c, t<<32+number+int64(added), file, model, &chunks[added]); err != nil {
			return 0, err
		}
	}
	if err := c.exec(`UPDATE tenants SET chunks = chunks + ? WHERE id = ?`, added, t); err != nil {
		return 0, err
	}
	return added, c.exec(`UPDATE files SET chunks = chunks + ? WHERE id = ?`, added, file)
}

func addChunk(c *conn, id, file int64, model string, k *store.Chunk) error {
	err := c.exec(`INSERT INTO chunks (id, file, n, page, tokens, section, text, terms) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
		id, file, k.N, k.Page, k.Tokens, k.Section, k.Text, k.Terms)
	if err != nil || len(k.Vector) == 0 {
		return err
	}
	digest := k.Digest()
	return c.exec(`INSERT INTO vectors (id, file, model, vector, digest) VALUES (?, ?, ?, ?, ?)`,
		id, file, model, encodeVector(k.Vector), digest[:])
}

// FinishFile sets the status of a file.
func (s *Store) FinishFile(ctx context.Context, scope store.Scope, id string, status store.FileStatus, reason string) error {
	var file int64
	purged := true
	err := s.writer.step(ctx, func(c *conn) error {
		t, err := s.addTenant(c, scope)
		if err != nil {
			return err
		}
		var before store.FileStatus
		err = c.row(`SELECT id, status FROM files WHERE tenant = ? AND name = ? AND hidden = 0`, t, id).Scan(&file, &before)
		if errors.Is(err, store.ErrNotFound) {
			return store.ErrDeleted
		}
		if err != nil {
			return err
		}
		if before == store.FileError && status != store.FileError {
			return errors.New("sqlite: finish a file that has failed: its chunks are gone")
		}
		c.after(forget(scope, ""))
		err = c.exec(`UPDATE files SET status = ?, reason = ?, dark = ? WHERE id = ?`,
			status, reason, status != store.FileProcessed, file)
		if err != nil || status != store.FileError {
			return err
		}
		purged, err = purgeFile(c, file)
		return err
	})
	if err == nil && purged && status == store.FileError {
		s.eraseSoon()
	}
	if err != nil || purged {
		return err
	}
	return s.finishPurge(ctx, func(c *conn) (bool, error) { return purgeFile(c, file) })
}
