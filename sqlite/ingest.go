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
		batch := chunks[:min(ingestBatch, len(chunks))]
		err := s.writer.write(ctx, len(batch), func(c *conn) error { return s.addChunks(c, scope, id, batch) })
		if chunks = chunks[len(batch):]; err != nil || len(chunks) == 0 {
			return err
		}
	}
}

func (s *Store) addChunks(c *conn, scope store.Scope, id string, chunks []store.Chunk) error {
	t, err := s.addTenant(c, scope)
	if err != nil {
		return err
	}
	var file int64
	var status store.FileStatus
	var model string
	err = c.row(`UPDATE files SET chunks = chunks + ? WHERE tenant = ? AND name = ? AND hidden = 0 RETURNING id, status, model`,
		len(chunks), t, id).Scan(&file, &status, &model)
	if errors.Is(err, store.ErrNotFound) {
		return store.ErrDeleted
	}
	if err != nil {
		return err
	}
	if status != store.FileUploaded {
		return fmt.Errorf("sqlite: add chunks to a file that is %s", status)
	}
	var end int64
	if err := c.row(`UPDATE tenants SET chunks = chunks + ? WHERE id = ? RETURNING chunks`, len(chunks), t).Scan(&end); err != nil {
		return err
	}
	if end > 1<<32 {
		return errors.New("sqlite: the tenant has had too many chunks; start a new file for it")
	}
	for i := range chunks {
		k := &chunks[i]
		chunk := t<<32 + end - int64(len(chunks)-i)
		err := c.exec(`INSERT INTO chunks (id, file, n, page, tokens, section, text, terms) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
			chunk, file, k.N, k.Page, k.Tokens, k.Section, k.Text, k.Terms)
		if err != nil {
			return err
		}
		if len(k.Vector) == 0 {
			continue
		}
		digest := k.Digest()
		err = c.exec(`INSERT INTO vectors (id, file, model, vector, digest) VALUES (?, ?, ?, ?, ?)`,
			chunk, file, model, encodeVector(k.Vector), digest[:])
		if err != nil {
			return err
		}
	}
	return nil
}

// FinishFile sets the status of a file.
func (s *Store) FinishFile(ctx context.Context, scope store.Scope, id string, status store.FileStatus, reason string) error {
	var file int64
	purged := true
	err := s.writer.write(ctx, purgeBatch, func(c *conn) error {
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
	if err != nil || purged {
		return err
	}
	return s.finishPurge(ctx, func(c *conn) (bool, error) { return purgeFile(c, file) })
}
