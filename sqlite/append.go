package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"

	"github.com/backstory-proxy/backstory/store"
)

// appendQuery tells all that an append must know of its session.
const appendQuery = `
	SELECT coalesce(s.id, 0), coalesce(s.seq, 0), coalesce(s.appended, 0), coalesce(s.touched, 0), coalesce(s.expires, 0),
		coalesce((SELECT max(touched) FROM sessions WHERE tenant = ?1), 0),
		EXISTS (SELECT 1 FROM deletions WHERE tenant = ?1 AND digest = ?2 AND epoch > ?3),
		(SELECT id FROM exchanges WHERE session = s.id AND name = ?4)
	FROM (SELECT 1) LEFT JOIN sessions s ON s.tenant = ?1 AND s.digest = ?2`

// sessionState is a session as an append finds it.
type sessionState struct {
	id       int64 // 0 where it is yet to be added
	seq      int64 // of the newest exchange
	appended int64 // tokens, ever
	touched  int64 // the place in the listing that it gets
	tenant   int64
}

var errFull = fmt.Errorf("sqlite: a session can't have more than %d exchanges", int64(seqMask))

// Append saves an exchange.
func (s *Store) Append(ctx context.Context, a store.Append) (int64, error) {
	if a.Session == "" {
		return 0, errors.New("sqlite: append to a session without a name")
	}
	var seq int64
	var deleted bool
	err := s.writer.write(ctx, 1, func(c *conn) (err error) {
		seq, err = s.append(c, &a)
		if deleted = errors.Is(err, store.ErrDeleted); deleted && a.Usage.Tokens > 0 {
			return nil // an error would undo what was counted
		}
		return err
	})
	switch {
	case err != nil:
		return 0, err
	case deleted:
		return 0, store.ErrDeleted
	}
	return seq, nil
}

func (s *Store) append(c *conn, a *store.Append) (int64, error) {
	d, same, err := s.sessionState(c, a.Scope, a.Session, a.Mark, a.Exchange.ID)
	switch {
	case errors.Is(err, store.ErrDeleted) && !same.Valid:
		if failed := addUsage(c, d.tenant, a.Scope, a.Usage); failed != nil {
			return 0, failed
		}
		return 0, err
	case err != nil:
		return 0, err
	case same.Valid:
		return same.Int64 & seqMask, nil
	case d.seq == seqMask:
		return 0, errFull
	case d.seq > a.Known() && !a.Anyway:
		newer, err := exchangesAfter(c, d.id, max(a.Mark.Seq, 0))
		if err != nil {
			return 0, err
		}
		return 0, &store.Conflict{Newer: newer, Seq: d.seq}
	}
	if err := addUsage(c, d.tenant, a.Scope, a.Usage); err != nil {
		return 0, err
	}
	replaces := a.Replaces
	if d.seq < a.Known() { // some were lost: another one may have that Seq by now
		replaces = 0
	}
	if err := s.addSession(c, &d, a.Session); err != nil {
		return 0, err
	}
	if replaces != 0 {
		if err := removeExchange(c, d.id, replaces); err != nil {
			return 0, err
		}
	}
	expires := s.expiry(a.TTL)
	kept, err := s.insertExchange(c, d, &a.Exchange, expires)
	if err != nil {
		return 0, err
	}
	c.after(appended(a.Scope, a.Session, kept, replaces, expires))
	return kept.Seq, nil
}

// sessionState finds out what an append must know, where the session wasn't
// deleted since the mark; same is the row of the exchange with the name. A
// session whose time is up is removed.
func (s *Store) sessionState(c *conn, scope store.Scope, session string, mark store.Mark, name string) (d sessionState, same sql.NullInt64, err error) {
	if d.tenant, err = s.addTenant(c, scope); err != nil {
		return d, same, err
	}
	var latest, expires int64
	var deleted bool
	err = c.row(appendQuery, d.tenant, sessionDigest(session), mark.Epoch, name).
		Scan(&d.id, &d.seq, &d.appended, &d.touched, &expires, &latest, &deleted, &same)
	if err != nil {
		return d, same, err
	}
	expired := expires != 0 && expires <= s.now().UnixMilli()
	if deleted {
		return d, same, store.ErrDeleted
	}
	if expired {
		if err := removeSession(c, d.id); err != nil {
			return d, same, err
		}
		c.after(forget(scope, session))
		d, same = sessionState{tenant: d.tenant}, sql.NullInt64{}
	}
	// The session that is first in the listing stays where it is in the index.
	if d.touched == 0 || d.touched < latest {
		d.touched = latest + 1
	}
	return d, same, nil
}

func exchangesAfter(c *conn, session, seq int64) ([]store.Exchange, error) {
	rows, err := c.query(`SELECT `+exchangeColumns+` FROM exchanges e`+joinBodies+`WHERE e.id > ? AND e.id <= ? ORDER BY e.id`,
		session<<32|seq, session<<32|seqMask)
	if err != nil {
		return nil, err
	}
	return readExchanges(context.Background(), rows, math.MaxInt64)
}

// readExchanges reads until the exchanges have so many bytes.
func readExchanges(ctx context.Context, rows *sql.Rows, room int64) (list []store.Exchange, err error) {
	err = each(ctx, rows, func() (bool, error) {
		var r exchangeRow
		if err := rows.Scan(r.columns()...); err != nil {
			return false, err
		}
		e, err := r.exchange()
		list = append(list, e)
		room -= e.Bytes()
		return room > 0, err
	})
	return list, err
}

// addSession adds the session that d describes, if it isn't there.
func (s *Store) addSession(c *conn, d *sessionState, name string) error {
	if d.id != 0 {
		return nil
	}
	now := s.now().UnixMilli()
	return c.row(`INSERT INTO sessions (tenant, digest, name, created, updated, touched, seq, messages, tokens, appended)
		VALUES (?, ?, ?, ?, ?, 0, 0, 0, 0, 0) RETURNING id`,
		d.tenant, sessionDigest(name), name, now, now).Scan(&d.id)
}

func removeExchange(c *conn, session, seq int64) error {
	var messages, tokens, body int64
	err := c.row(`DELETE FROM exchanges WHERE id = ? AND session = ? RETURNING count, tokens, body`, session<<32+seq, session).
		Scan(&messages, &tokens, &body)
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := c.exec(`DELETE FROM bodies WHERE id = ?`, body); err != nil {
		return err
	}
	return c.exec(`UPDATE sessions SET messages = messages - ?, tokens = tokens - ? WHERE id = ?`, messages, tokens, session)
}

// insertExchange adds an exchange to the session that d describes, and returns
// it as it will be read.
func (s *Store) insertExchange(c *conn, d sessionState, e *store.Exchange, expires sql.NullInt64) (store.Exchange, error) {
	array, meta, err := insertRows(c, d, e)
	if err != nil {
		return store.Exchange{}, err
	}
	if err := s.grow(c, d, 1, len(e.Messages), e.Tokens(), expires); err != nil {
		return store.Exchange{}, err
	}
	messages, err := store.DecodeMessages(array, meta)
	return keepsake(e, d.seq+1, d.appended, messages), err
}

// insertRows writes an exchange behind what the session has.
func insertRows(c *conn, d sessionState, e *store.Exchange) (array, meta []byte, err error) {
	array, meta = store.EncodeMessages(e.Messages)
	body, err := c.insert(`INSERT INTO bodies (messages) VALUES (?)`, array)
	if err != nil {
		return nil, nil, err
	}
	return array, meta, c.exec(`INSERT INTO exchanges (id, session, name, parent, position, created, model, finish, hidden, carried, passages, count, tokens, meta, body)
		VALUES (?, ?, ?, nullif(?, ''), ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		d.id<<32|(d.seq+1), d.id, e.ID, e.Parent, d.appended, e.Created.UnixMilli(), e.Model, e.Finish, e.Hidden, e.Carried[:],
		store.EncodeRefs(e.Passages, e.Recalled), len(e.Messages), e.Tokens(), meta, body)
}

// grow says in the session's own row how much was added to it.
func (s *Store) grow(c *conn, d sessionState, exchanges, messages, tokens int, expires sql.NullInt64) error {
	return c.exec(`UPDATE sessions SET seq = seq + ?2, updated = ?3, touched = ?4,
			messages = messages + ?5, tokens = tokens + ?6, appended = appended + ?6, expires = ?7
		WHERE id = ?1`,
		d.id, exchanges, s.now().UnixMilli(), d.touched, messages, tokens, expires)
}
