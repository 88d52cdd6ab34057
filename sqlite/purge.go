package sqlite

import (
	"context"
	"time"

	"github.com/backstory-proxy/backstory/store"
)

const (
	// purgeBatch is how many rows a step of a removal takes away, and chunkBatch
	// how many chunks, which cost more: they are taken out of the indexes.
	purgeBatch = 128
	chunkBatch = 32
	// partSize is how an original is cut up, and partBatch how many parts a
	// step writes or removes.
	partSize  = 1 << 20
	partBatch = 1
	// voidFor is how long a deletion is remembered: longer than a journaled
	// append may wait for its store.
	voidFor = 30 * 24 * time.Hour
)

// interrupted is why an upload failed that a dead process had begun.
const interrupted = "interrupted; upload it again"

// resume fails the uploads of a process that is no more, and has the rest of
// what was being removed removed in the background.
func (s *Store) resume(ctx context.Context) error {
	err := s.writer.write(ctx, 1, func(c *conn) error {
		return c.exec(`UPDATE files SET status = ?, reason = ? WHERE status = ? AND hidden = 0`,
			store.FileError, interrupted, store.FileUploaded)
	})
	if err != nil {
		return err
	}
	files, err := s.ids(ctx, `SELECT id FROM files WHERE dark = 1`)
	if err != nil {
		return err
	}
	sessions, err := s.ids(ctx, `SELECT session FROM purges`)
	if err != nil {
		return err
	}
	s.background(func(ctx context.Context) error {
		for _, id := range files {
			if err := s.purge(ctx, func(c *conn) (bool, error) { return purgeFile(c, id) }); err != nil {
				return err
			}
		}
		for _, id := range sessions {
			if err := s.purge(ctx, func(c *conn) (bool, error) { return purgeSession(c, id) }); err != nil {
				return err
			}
		}
		return nil
	})
	return nil
}

func (s *Store) ids(ctx context.Context, query string, args ...any) ([]int64, error) {
	rows, err := s.query(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	var ids []int64
	err = each(ctx, rows, func() (bool, error) {
		var id int64
		err := rows.Scan(&id)
		ids = append(ids, id)
		return true, err
	})
	return ids, err
}

// finishPurge removes in the background what is deleted already as far as
// anyone can see, and waits for it while ctx lasts.
func (s *Store) finishPurge(ctx context.Context, step func(*conn) (done bool, err error)) error {
	result := s.background(func(ctx context.Context) error { return s.purge(ctx, step) })
	select {
	case err := <-result:
		if s.ctx.Err() != nil {
			return nil // the store is closing; it goes on when it is opened again
		}
		return err
	case <-ctx.Done():
		return nil
	}
}

// purge removes step by step, so that others can write in between.
func (s *Store) purge(ctx context.Context, step func(*conn) (done bool, err error)) error {
	for done := false; !done; {
		err := s.writer.step(ctx, func(c *conn) (err error) {
			done, err = step(c)
			return err
		})
		if err != nil {
			return err
		}
	}
	s.eraseSoon()
	return nil
}

// purgeSession removes some exchanges of a session that is deleted.
func purgeSession(c *conn, id int64) (done bool, err error) {
	// The same ones both times: the first of the session.
	const first = `FROM exchanges WHERE id BETWEEN ? AND ? ORDER BY id LIMIT ?)`
	low, high := id<<32, id<<32|seqMask
	if err := c.exec(`DELETE FROM bodies WHERE id IN (SELECT body `+first, low, high, purgeBatch); err != nil {
		return false, err
	}
	n, err := c.count(`DELETE FROM exchanges WHERE id IN (SELECT id `+first, low, high, purgeBatch)
	if err != nil || n == purgeBatch {
		return false, err
	}
	if err := c.exec(`DELETE FROM purges WHERE session = ?`, id); err != nil {
		return false, err
	}
	return true, noteDeletion(c, false)
}

// purgeFile removes some of what a file has left: its chunks where it has
// failed, all of it where it is hidden.
func purgeFile(c *conn, id int64) (done bool, err error) {
	n, err := c.count(`DELETE FROM chunks WHERE id IN (SELECT id FROM chunks WHERE file = ? LIMIT ?)`, id, chunkBatch)
	if err != nil || n == chunkBatch {
		return false, err
	}
	var hidden bool
	if err := c.row(`UPDATE files SET dark = hidden WHERE id = ? RETURNING hidden`, id).Scan(&hidden); err != nil {
		return false, err
	}
	if !hidden {
		return true, noteDeletion(c, true)
	}
	n, err = c.count(`DELETE FROM originals WHERE rowid IN (SELECT rowid FROM originals WHERE file = ? LIMIT ?)`, id, partBatch)
	if err != nil || n == partBatch {
		return false, err
	}
	if err := c.exec(`DELETE FROM files WHERE id = ?`, id); err != nil {
		return false, err
	}
	return true, noteDeletion(c, true)
}
