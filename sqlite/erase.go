package sqlite

import (
	"context"
	"time"
)

// What is deleted is gone from the disk, too. The writer has SQLite overwrite
// what it frees (secure_delete). The full-text index is merged, which takes out
// the words of chunks that are deleted. And the write-ahead log, which holds the
// pages as they were, is soon folded into the database and emptied.

const (
	// eraseAfter is how long deletions gather for which the log is emptied, and
	// the index merged. The one takes the writer some tens of milliseconds and two
	// syncs: a caller who deletes a thousand sessions one by one must not have it
	// done for each.
	eraseAfter = time.Second
	// erasePause is how many times as long as a merge took the next one waits: it
	// writes the whole index anew, whatever little was deleted. (The index could
	// take out words as chunks are deleted, but 1,000 chunks then take 6 s of the
	// writer's time in place of 40 ms.)
	erasePause = 9
	// mergePages is how many pages of 4 KB a step of a merge writes. It takes some
	// tens of milliseconds, which is what an append may have to wait.
	mergePages = 256
)

// eraseSoon has the writer tidy within eraseAfter, not at its usual time.
func (w *writer) eraseSoon() {
	if w.erasing.CompareAndSwap(false, true) {
		w.tick.Reset(eraseAfter)
	}
}

// eraseWords merges the full-text index, every now and then, when chunks were
// deleted.
func (s *Store) eraseWords() {
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
		if err := s.mergeWords(s.ctx); err != nil {
			s.wordsDeleted() // it is one that requests see too; the next round tries again
		}
		pause = max(eraseAfter, erasePause*time.Since(start))
	}
}

// wordsDeleted has the index merged soon.
func (s *Store) wordsDeleted() {
	select {
	case s.deleted <- struct{}{}:
	default: // it has yet to take the last one
	}
}

// mergeWords merges all segments of the index into one, step by step, if chunks
// were deleted since it was last merged.
func (s *Store) mergeWords(ctx context.Context) error {
	var deleted, merged int64
	if err := s.row(ctx, `SELECT deleted, merged FROM erasures`).Scan(&deleted, &merged); err != nil || deleted == merged {
		return err
	}
	// A negative number begins a merge of all, and others go on with it.
	for pages, done := -mergePages, false; !done; pages = mergePages {
		err := s.writer.write(ctx, groupCost, func(c *conn) error {
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
			return c.exec(`UPDATE erasures SET merged = ?`, deleted)
		})
		if err != nil {
			return err
		}
	}
	s.writer.eraseSoon()
	return nil
}
