package sqlite

import (
	"context"
	"database/sql"
	"time"
)

// A session whose time is up is there for nobody: every query that reads
// sessions says so with alive. The sweep removes it, or else the append that
// begins it anew.

const (
	// sweepEvery is how often sessions are looked for whose time is up, and
	// sweepBatch how many a step of that takes on.
	sweepEvery = time.Minute
	sweepBatch = 128
)

// alive selects, of sessions called s, those whose time isn't up at the moment
// that a parameter gives.
func alive(parameter string) string {
	return `(s.expires IS NULL OR s.expires > ` + parameter + `)`
}

// expiry is when a session ends that is appended to now.
func (s *Store) expiry(ttl time.Duration) sql.NullInt64 {
	return sql.NullInt64{Int64: s.now().Add(ttl).UnixMilli(), Valid: ttl > 0}
}

// lifetime is a session's time to live, by when it was updated and when it ends.
func lifetime(updated int64, expires sql.NullInt64) time.Duration {
	if !expires.Valid {
		return 0
	}
	return time.Duration(expires.Int64-updated) * time.Millisecond
}

// removeSession takes a session out of everyone's sight. Its exchanges are
// purged later.
func removeSession(c *conn, id int64) error {
	if err := c.exec(`DELETE FROM sessions WHERE id = ?`, id); err != nil {
		return err
	}
	return c.exec(`INSERT INTO purges (session) VALUES (?)`, id)
}

// sweep removes, every now and then, the sessions whose time is up.
func (s *Store) sweep() {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		select {
		case <-s.ctx.Done():
			return
		case <-tick.C:
		}
		// An error here is one that requests see too; the next round tries again.
		_ = s.sweepOnce(s.ctx)
	}
}

func (s *Store) sweepOnce(ctx context.Context) error {
	ended, err := s.ids(ctx, `SELECT id FROM sessions WHERE expires <= ? LIMIT 1`, s.now().UnixMilli())
	if err != nil {
		return err
	}
	for found := int64(len(ended)) * sweepBatch; found == sweepBatch; {
		err := s.writer.step(ctx, func(c *conn) (err error) {
			// The same ones both times, in one transaction.
			const first = ` FROM sessions WHERE expires <= ? ORDER BY id LIMIT ?`
			now := s.now().UnixMilli()
			if err := c.exec(`INSERT INTO purges (session) SELECT id`+first, now, sweepBatch); err != nil {
				return err
			}
			found, err = c.count(`DELETE FROM sessions WHERE id IN (SELECT id`+first+`)`, now, sweepBatch)
			return err
		})
		if err != nil {
			return err
		}
	}
	// Those too that an append has found.
	ids, err := s.unstaged(ctx)
	if err != nil {
		return err
	}
	for _, id := range ids {
		if err := s.purge(ctx, func(c *conn) (bool, error) { return purgeSession(c, id) }); err != nil {
			return err
		}
	}
	return nil
}
