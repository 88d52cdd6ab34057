package sqlite

import (
	"context"
	"errors"

	"github.com/backstory-proxy/backstory/store"
)

// Import saves exchanges. Those of a new session are written in steps, as a session
// that nobody sees, which then gets its name: other saves wait for no more than a
// step. Those of a session that is there, and few, are one step.
func (s *Store) Import(ctx context.Context, i store.Import) (seqs []int64, err error) {
	if i.Session == "" {
		return nil, errors.New("sqlite: import into a session without a name")
	}
	if isLong(i.Exchanges) {
		seqs, staged, err := s.importStaged(ctx, &i)
		if staged || err != nil {
			return seqs, err
		}
	}
	err = s.writer.add(ctx, func(c *conn) (err error) {
		seqs, err = s.importAll(c, &i)
		return err
	})
	return seqs, err
}

func (s *Store) importAll(c *conn, i *store.Import) ([]int64, error) {
	d, _, err := s.sessionState(c, i.Scope, i.Session, i.Mark, "")
	if err != nil || len(i.Exchanges) == 0 {
		return nil, err
	}
	if err := s.addSession(c, &d, i.Session); err != nil {
		return nil, err
	}
	seqs := make([]int64, len(i.Exchanges))
	end := d // as it moves on
	messages := 0
	for n := range i.Exchanges {
		e := &i.Exchanges[n]
		var same int64
		err := c.row(`SELECT id FROM exchanges WHERE session = ? AND name = ?`, d.id, e.ID).Scan(&same)
		if err == nil {
			seqs[n] = same & seqMask
			continue
		}
		if !errors.Is(err, store.ErrNotFound) {
			return nil, err
		}
		if end.seq == seqMask {
			return nil, errFull
		}
		if _, _, err := insertRows(c, end, e); err != nil {
			return nil, err
		}
		end.seq++
		end.appended += int64(e.Tokens())
		messages += len(e.Messages)
		seqs[n] = end.seq
	}
	if end.seq == d.seq {
		return seqs, nil // all of it was there
	}
	c.after(forget(i.Scope, i.Session))
	return seqs, s.grow(c, d, int(end.seq-d.seq), messages, int(end.appended-d.appended), s.expiry(i.TTL))
}
