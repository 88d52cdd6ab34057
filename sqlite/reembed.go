package sqlite

import (
	"context"
	"errors"
	"fmt"

	"github.com/backstory-proxy/backstory/store"
)

// What it takes not to embed a text twice, and to embed it anew: see
// store.Reembedder. FileChunks is in export.go.

const knownQuery = `SELECT vector FROM vectors
	WHERE digest = ?2 AND model = ?3 AND length(vector) = ?4 AND id ` + tenantRange + ` AND file NOT IN ` + dark + ` LIMIT 1`

// KnownVectors finds vectors by what they were made of.
func (s *Store) KnownVectors(ctx context.Context, scope store.Scope, model string, dimensions int, digests []store.ChunkDigest) ([][]float32, error) {
	t, err := s.tenant(ctx, scope)
	if errors.Is(err, store.ErrNotFound) {
		return make([][]float32, len(digests)), ctx.Err()
	}
	if err != nil {
		return nil, err
	}
	vectors := make([][]float32, len(digests))
	for i := range digests {
		var vector []byte
		err := s.row(ctx, knownQuery, t, digests[i][:], model, 4*dimensions).Scan(&vector)
		if errors.Is(err, store.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if vectors[i], err = decodeVector(vector); err != nil {
			return nil, err
		}
	}
	return vectors, nil
}

// SetVectors gives chunks other vectors, in steps.
func (s *Store) SetVectors(ctx context.Context, scope store.Scope, id, model string, chunks []store.Chunk) error {
	for {
		set := 0
		err := s.writer.add(ctx, func(c *conn) (err error) {
			set, err = s.setVectors(c, scope, id, model, chunks)
			return err
		})
		if chunks = chunks[min(set, len(chunks)):]; err != nil || len(chunks) == 0 {
			return err
		}
	}
}

// setVectors sets the vectors of as many chunks as a step has time for, and
// returns how many.
func (s *Store) setVectors(c *conn, scope store.Scope, id, model string, chunks []store.Chunk) (set int, err error) {
	t, err := s.addTenant(c, scope)
	if err != nil {
		return 0, err
	}
	var file int64
	var status store.FileStatus
	err = c.row(`SELECT id, status FROM files WHERE tenant = ? AND name = ? AND hidden = 0`, t, id).Scan(&file, &status)
	if errors.Is(err, store.ErrNotFound) {
		return 0, store.ErrDeleted
	}
	if err != nil {
		return 0, err
	}
	if status != store.FileProcessed {
		return 0, fmt.Errorf("sqlite: set vectors of a file that is %s", status)
	}
	for ; set < len(chunks) && (set == 0 || !c.spent()); set++ {
		k := &chunks[set]
		if err := c.exec(`DELETE FROM vectors WHERE id = (SELECT id FROM chunks WHERE file = ? AND n = ?)`, file, k.N); err != nil {
			return 0, err
		}
		if len(k.Vector) == 0 {
			continue
		}
		digest := k.Digest()
		err := c.exec(`INSERT INTO vectors (id, file, model, vector, digest) SELECT id, file, ?, ?, ? FROM chunks WHERE file = ? AND n = ?`,
			model, encodeVector(k.Vector), digest[:], file, k.N)
		if err != nil {
			return 0, err
		}
	}
	return set, nil
}

// SetModel records the model of a file's vectors.
func (s *Store) SetModel(ctx context.Context, scope store.Scope, id, model string) error {
	return s.writer.write(ctx, 1, func(c *conn) error {
		t, err := s.addTenant(c, scope)
		if err != nil {
			return err
		}
		n, err := c.count(`UPDATE files SET model = ? WHERE tenant = ? AND name = ? AND hidden = 0`, model, t, id)
		if err == nil && n == 0 {
			return store.ErrDeleted
		}
		return err
	})
}
