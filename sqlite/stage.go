package sqlite

import (
	"context"
	"errors"

	"github.com/backstory-proxy/backstory/store"
)

// Exchanges that are no more than these are imported in one step: about what a step
// has time for.
const (
	fewExchanges = 32
	fewBytes     = 256 << 10
)

func isLong(list []store.Exchange) bool {
	var bytes int64
	for n := range list {
		if bytes += list[n].Bytes(); n >= fewExchanges || bytes > fewBytes {
			return true
		}
	}
	return false
}

// stage is a session that is being written and has no name yet. The file has it
// among those that are to be removed: if this process dies, the next one does it.
type stage struct {
	sessionState // id, and its end
	messages     int
	seqs         []int64
}

// importStaged imports into a session that isn't there. Where it is, or is there
// when all is written, staged is false and nothing is imported.
func (s *Store) importStaged(ctx context.Context, i *store.Import) (seqs []int64, staged bool, err error) {
	g := &stage{seqs: make([]int64, 0, len(i.Exchanges))}
	defer func() { s.staging.Delete(g.id) }()
	err = s.writer.add(ctx, func(c *conn) error { return s.beginStage(c, i, g) })
	if err != nil || g.id == 0 {
		return nil, false, err
	}
	for err == nil && len(g.seqs) < len(i.Exchanges) {
		next := *g // a job may be run more than once
		err = s.writer.add(ctx, func(c *conn) (err error) {
			next, err = s.addToStage(c, i, *g)
			return err
		})
		if err == nil {
			*g = next
		}
	}
	if err == nil {
		err = s.writer.step(ctx, func(c *conn) (err error) {
			staged, err = s.nameStage(c, i, g)
			return err
		})
	}
	if err != nil || !staged {
		id := g.id
		s.background(func(ctx context.Context) error {
			return s.purge(ctx, func(c *conn) (bool, error) { return purgeStage(c, id) })
		})
		return nil, false, err
	}
	return g.seqs, true, nil
}

// beginStage takes the number of a session that isn't there.
func (s *Store) beginStage(c *conn, i *store.Import, g *stage) error {
	s.staging.Delete(g.id) // of a run that was undone
	g.sessionState = sessionState{}
	d, _, err := s.sessionState(c, i.Scope, i.Session, i.Mark, "")
	if err != nil || d.id != 0 {
		return err
	}
	g.sessionState = d
	if err := s.addSession(c, &g.sessionState, i.Session); err != nil {
		return err
	}
	s.staging.Store(g.id, nil) // before the sweep can see it
	return removeSession(c, g.id)
}

// addToStage writes as many exchanges as a step has time for.
func (s *Store) addToStage(c *conn, i *store.Import, g stage) (stage, error) {
	for first := len(g.seqs); len(g.seqs) < len(i.Exchanges) && (len(g.seqs) == first || !c.spent()); {
		e := &i.Exchanges[len(g.seqs)]
		var same int64
		err := c.row(`SELECT id FROM exchanges WHERE session = ? AND name = ?`, g.id, e.ID).Scan(&same)
		if err == nil {
			g.seqs = append(g.seqs, same&seqMask)
			continue
		}
		if !errors.Is(err, store.ErrNotFound) {
			return g, err
		}
		if g.seq == seqMask {
			return g, errFull
		}
		if _, _, err := insertRows(c, g.sessionState, e); err != nil {
			return g, err
		}
		g.seq++
		g.appended += int64(e.Tokens())
		g.messages += len(e.Messages)
		g.seqs = append(g.seqs, g.seq)
	}
	return g, nil
}

// nameStage makes the stage the session that it was written for, unless there is one
// by now.
func (s *Store) nameStage(c *conn, i *store.Import, g *stage) (named bool, err error) {
	d, _, err := s.sessionState(c, i.Scope, i.Session, i.Mark, "")
	if err != nil || d.id != 0 {
		return false, err
	}
	// Another process, which doesn't know of it, may have begun to remove it.
	n, err := c.count(`DELETE FROM purges WHERE session = ?`, g.id)
	if err != nil || n == 0 {
		return false, err
	}
	var written int64
	err = c.row(`SELECT count(*) FROM exchanges WHERE id BETWEEN ? AND ?`, g.id<<32, g.id<<32|seqMask).Scan(&written)
	if err != nil {
		return false, err
	}
	if written != g.seq {
		return false, errors.New("sqlite: another process has removed a part of what was being imported")
	}
	now := s.now().UnixMilli()
	err = c.exec(`INSERT INTO sessions (id, tenant, digest, name, created, updated, touched, seq, messages, tokens, appended) VALUES (?, ?, ?, ?, ?, ?, 0, 0, 0, 0, 0)`,
		g.id, d.tenant, sessionDigest(i.Session), i.Session, now, now)
	if err != nil {
		return false, err
	}
	c.after(forget(i.Scope, i.Session))
	d.id = g.id
	return true, s.grow(c, d, int(g.seq), g.messages, int(g.appended), s.expiry(i.TTL))
}

// purgeStage removes some of a stage that has got no name. It may have got one though
// that was told as an error: the file was taken away just then.
func purgeStage(c *conn, id int64) (done bool, err error) {
	var named bool
	err = c.row(`SELECT EXISTS (SELECT 1 FROM sessions WHERE id = ?)`, id).Scan(&named)
	if err != nil || named {
		return named, err
	}
	return purgeSession(c, id)
}

// unstaged are the sessions that are to be removed, of those that the file has down
// for that.
func (s *Store) unstaged(ctx context.Context) (ids []int64, err error) {
	all, err := s.ids(ctx, `SELECT session FROM purges`)
	for _, id := range all {
		if _, staging := s.staging.Load(id); !staging {
			ids = append(ids, id)
		}
	}
	return ids, err
}
