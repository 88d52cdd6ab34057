package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"math"

	"github.com/backstory-proxy/backstory/store"
)

// Session describes a session.
func (s *Store) Session(ctx context.Context, scope store.Scope, session string) (store.Session, error) {
	id, err := s.tenant(ctx, scope)
	if err != nil {
		return store.Session{}, err
	}
	d := store.Session{ID: session}
	var created, updated int64
	var expires sql.NullInt64
	err = s.row(ctx, `SELECT created, updated, messages, tokens, expires FROM sessions s WHERE tenant = ? AND digest = ? AND `+alive("?"),
		id, sessionDigest(session), s.now().UnixMilli()).Scan(&created, &updated, &d.Messages, &d.Tokens, &expires)
	if err != nil {
		return store.Session{}, err
	}
	d.TTL = lifetime(updated, expires)
	d.Created, d.Updated = fromMilli(created), fromMilli(updated)
	return d, nil
}

// ListSessions returns sessions, the most recently updated first.
func (s *Store) ListSessions(ctx context.Context, scope store.Scope, after string, limit int) ([]store.Session, error) {
	id, err := s.tenant(ctx, scope)
	if errors.Is(err, store.ErrNotFound) && after == "" {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	touched := int64(math.MaxInt64)
	if after != "" {
		err := s.row(ctx, `SELECT touched FROM sessions s WHERE tenant = ? AND digest = ? AND `+alive("?"),
			id, sessionDigest(after), s.now().UnixMilli()).Scan(&touched)
		if err != nil {
			return nil, err
		}
	}
	rows, err := s.query(ctx, `SELECT name, created, updated, messages, tokens, expires FROM sessions s
		WHERE tenant = ? AND touched < ? AND `+alive("?")+` ORDER BY touched DESC LIMIT ?`, id, touched, s.now().UnixMilli(), max(limit, 0))
	if err != nil {
		return nil, err
	}
	var list []store.Session
	err = each(ctx, rows, func() (bool, error) {
		var d store.Session
		var created, updated int64
		var expires sql.NullInt64
		if err := rows.Scan(&d.ID, &created, &updated, &d.Messages, &d.Tokens, &expires); err != nil {
			return false, err
		}
		d.TTL = lifetime(updated, expires)
		d.Created, d.Updated = fromMilli(created), fromMilli(updated)
		list = append(list, d)
		return true, nil
	})
	return list, err
}

// Joined to the session, so that one that is gone differs from one at its end.
var exchangesQuery = `SELECT ` + exchangeColumns + `
	FROM sessions s LEFT JOIN exchanges e ON ` + inSession + ` AND e.id > (s.id << 32) + ?3 AND e.id < (s.id << 32) + ?4` + joinBodies + `
	WHERE s.tenant = ?1 AND s.digest = ?2 AND ` + alive(`?6`) + `
	ORDER BY e.id `

// Exchanges returns exchanges of a session.
func (s *Store) Exchanges(ctx context.Context, scope store.Scope, session string, after int64, limit int, order store.Order) ([]store.Exchange, error) {
	id, err := s.tenant(ctx, scope)
	if err != nil {
		return nil, err
	}
	query, low, high := exchangesQuery+`LIMIT ?5`, after, int64(seqMask+1)
	if order == store.Descending {
		query, low = exchangesQuery+`DESC LIMIT ?5`, 0
		if after != 0 {
			high = after
		}
	}
	// One row at least, for the session itself.
	rows, err := s.query(ctx, query, id, sessionDigest(session), low, high, max(limit, 1), s.now().UnixMilli())
	if err != nil {
		return nil, err
	}
	found, room := false, int64(store.PageBytes)
	var list []store.Exchange
	err = each(ctx, rows, func() (bool, error) {
		found = true
		var r exchangeRow
		if err := rows.Scan(r.columns()...); err != nil {
			return false, err
		}
		if !r.id.Valid || limit <= 0 {
			return false, nil
		}
		e, err := r.exchange()
		list = append(list, e)
		room -= e.Bytes()
		return room > 0, err
	})
	if err == nil && !found {
		err = store.ErrNotFound
	}
	return list, err
}

// ExchangesAt returns the exchanges with the given Seqs.
func (s *Store) ExchangesAt(ctx context.Context, scope store.Scope, session string, seqs []int64) ([]store.Exchange, error) {
	id, err := s.tenant(ctx, scope)
	if errors.Is(err, store.ErrNotFound) || len(seqs) == 0 {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	rows, err := s.query(ctx, exchangesAtQuery, id, sessionDigest(session), seqList(seqs), s.now().UnixMilli())
	if err != nil {
		return nil, err
	}
	return readExchanges(ctx, rows, store.PageBytes)
}

var exchangesAtQuery = `SELECT ` + exchangeColumns + `
	FROM sessions s JOIN exchanges e ON e.id IN (SELECT (s.id << 32) + value FROM json_each(?3))` + joinBodies + `
	WHERE s.tenant = ?1 AND s.digest = ?2 AND ` + alive(`?4`) + `
	ORDER BY e.id`

// DeleteSession removes a session, and voids the appends of requests that began
// before.
func (s *Store) DeleteSession(ctx context.Context, scope store.Scope, session string) error {
	if session == "" {
		return store.ErrNotFound
	}
	var existed, purged bool
	var id int64
	err := s.writer.step(ctx, func(c *conn) error {
		t, err := s.addTenant(c, scope)
		if err != nil {
			return err
		}
		c.after(forget(scope, "")) // its epoch changes
		c.after(forget(scope, session))
		digest := sessionDigest(session)
		if err := s.void(c, t, digest); err != nil {
			return err
		}
		err = c.row(`DELETE FROM sessions WHERE tenant = ? AND digest = ? RETURNING id, expires IS NULL OR expires > ?`,
			t, digest, s.now().UnixMilli()).Scan(&id, &existed)
		if errors.Is(err, store.ErrNotFound) {
			existed = false
			return nil // not an error here: that would undo the above
		}
		if err != nil {
			return err
		}
		if err := c.exec(`INSERT INTO purges (session) VALUES (?)`, id); err != nil {
			return err
		}
		purged, err = purgeSession(c, id)
		return err
	})
	if err == nil {
		s.eraseSoon()
	}
	switch {
	case err != nil:
		return err
	case !existed:
		return store.ErrNotFound
	case purged:
		return nil
	}
	return s.finishPurge(ctx, func(c *conn) (bool, error) { return purgeSession(c, id) })
}

// void records the deletion of a session, existing or not, and forgets those
// that no request can still be older than.
func (s *Store) void(c *conn, tenant int64, digest []byte) error {
	now := s.now()
	if err := c.exec(`DELETE FROM deletions WHERE created < ?`, now.Add(-voidFor).UnixMilli()); err != nil {
		return err
	}
	var epoch int64
	if err := c.row(`UPDATE tenants SET deletions = deletions + 1 WHERE id = ? RETURNING deletions`, tenant).Scan(&epoch); err != nil {
		return err
	}
	return c.exec(`INSERT INTO deletions (tenant, digest, epoch, created) VALUES (?, ?, ?, ?)
		ON CONFLICT DO UPDATE SET epoch = excluded.epoch, created = excluded.created`,
		tenant, digest, epoch, now.UnixMilli())
}

var _ store.Sessions = (*Store)(nil)
