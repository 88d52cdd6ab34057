package sqlite

import (
	"context"
	"time"
)

// What is deleted is gone from the disk, too. The writer has SQLite overwrite
// what it frees (secure_delete). The full-text index is merged, which takes out
// the words of chunks that are deleted. Pages are wiped of copies that moving rows
// has left in them. And the write-ahead log, which holds the pages as they were,
// is soon folded into the database and emptied.

const (
	// eraseAfter is how long deletions gather for which that is done. To empty the
	// log takes the writer some tens of milliseconds and two syncs: a caller who
	// deletes a thousand sessions one by one must not have it done for each.
	eraseAfter = time.Second
	// erasePause is how many times as long as the index and the pages took the next
	// round waits: it reads the whole file and writes the whole index anew, whatever
	// little was deleted. (The index could take out words as chunks are deleted, but
	// 1,000 chunks then take 6 s of the writer's time in place of 40 ms.)
	erasePause = 9
	// mergePages is how many pages of 4 KB a step of a merge writes. It takes some
	// tens of milliseconds, which is what an append may have to wait.
	mergePages = 256
)

// noteDeletion has what was deleted be erased, once the change is committed.
// chunks says that chunks were among it.
func noteDeletion(c *conn, chunks bool) error {
	return c.exec(`UPDATE erasures SET deleted = deleted + 1, chunks = chunks + ?`, chunks)
}

// eraseSoon has the writer tidy within eraseAfter, not at its usual time.
func (w *writer) eraseSoon() {
	if w.erasing.CompareAndSwap(false, true) {
		w.tick.Reset(eraseAfter)
	}
}

// eraseSoon has all that was deleted be erased soon.
func (s *Store) eraseSoon() {
	s.writer.eraseSoon()
	select {
	case s.deleted <- struct{}{}:
	default: // it has yet to take the last one
	}
}

// erase goes, every now and then, through the index and the pages, when something
// was deleted.
func (s *Store) erase() {
	pause := eraseAfter
	for {
		select {
		case <-s.ctx.Done():
			return
		case <-s.deleted:
		}
		select {
		case <-s.ctx.Done():
			return
		case <-time.After(pause):
		}
		start := time.Now()
		if err := s.eraseOnce(s.ctx); err != nil {
			s.eraseSoon() // it is one that requests see too; the next round tries again
		}
		pause = max(eraseAfter, erasePause*time.Since(start))
	}
}

func (s *Store) eraseOnce(ctx context.Context) error {
	var chunks, words, deleted, wiped int64
	err := s.row(ctx, `SELECT chunks, words, deleted, wiped FROM erasures`).Scan(&chunks, &words, &deleted, &wiped)
	if err != nil || deleted == wiped {
		return err
	}
	if chunks != words {
		if err := s.mergeWords(ctx, chunks); err != nil {
			return err
		}
	}
	if err := s.wipePages(ctx); err != nil {
		return err
	}
	err = s.writer.step(ctx, func(c *conn) error { return c.exec(`UPDATE erasures SET wiped = ?`, deleted) })
	s.writer.eraseSoon()
	return err
}

// mergeWords merges all segments of the index into one, step by step, and notes
// which deletions of chunks it has forgotten then.
func (s *Store) mergeWords(ctx context.Context, chunks int64) error {
	// A negative number begins a merge of all, and others go on with it.
	for pages, done := -mergePages, false; !done; pages = mergePages {
		err := s.writer.step(ctx, func(c *conn) error {
			var before, after int64
			if err := c.row(`SELECT total_changes()`).Scan(&before); err != nil {
				return err
			}
			if err := c.exec(`INSERT INTO words (words, rank) VALUES ('merge', ?)`, pages); err != nil {
				return err
			}
			if err := c.row(`SELECT total_changes()`).Scan(&after); err != nil {
				return err
			}
			if done = after-before < 2; !done { // as FTS5's manual says
				return nil
			}
			return c.exec(`UPDATE erasures SET words = ?`, chunks)
		})
		if err != nil {
			return err
		}
	}
	return nil
}
