package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"slices"

	"github.com/backstory-proxy/backstory/store"
)

// gatherQuery is one statement, so that all of its answer is of one moment. It
// is read newest first and only as far as need be: its cost doesn't grow with
// the session.
var gatherQuery = `
	SELECT t.deletions,
		EXISTS (SELECT 1 FROM files WHERE tenant = ?1 AND status = 'processed' AND hidden = 0),
		coalesce((SELECT tokens FROM usage WHERE tenant = ?1 AND month = ?3), 0),
		s.seq, s.appended, s.expires, ` + exchangeColumns + `
	FROM tenants t
	LEFT JOIN sessions s ON s.tenant = ?1 AND s.digest = ?2 AND ` + alive(`?4`) + `
	LEFT JOIN exchanges e ON ` + inSession + joinBodies + `
	WHERE t.id = ?1
	ORDER BY e.id DESC`

// Gather counts the request and finds the end of its session: in memory, or
// else in the file.
func (s *Store) Gather(ctx context.Context, req store.GatherRequest) (store.Gathered, error) {
	if err := req.Scope.Whole(); err != nil {
		return store.Gathered{}, err
	}
	rate := store.Rate{Allowed: true}
	if !req.Counted {
		var err error
		if rate, err = s.Take(ctx, req.Scope.Tenant, req.Limit); err != nil {
			return store.Gathered{}, err
		}
	}
	if !rate.Allowed {
		return store.Gathered{Rate: rate}, nil
	}
	if err := s.writer.disk.state(); err != nil && req.Saves {
		return store.Gathered{Rate: rate}, err
	}
	facts, t, found, stamp, err := s.writer.cache.look(&req, s.now())
	if err != nil {
		return store.Gathered{}, err
	}
	if !found {
		if facts, t, err = s.readTail(ctx, &req); err != nil {
			return store.Gathered{}, err
		}
		s.writer.cache.keep(&req, facts, t, stamp)
	}
	return store.Gathered{
		Rate: rate, Tail: copyExchanges(t.exchanges), Tokens: t.tokens,
		Mark: store.Mark{Seq: t.seq, Epoch: facts.epoch}, Files: facts.files, Used: facts.used, Cached: found,
	}, nil
}

// readTail reads from the file what a request asks for.
func (s *Store) readTail(ctx context.Context, req *store.GatherRequest) (facts tenantFacts, t tail, err error) {
	t.whole = true
	facts.month = req.Month
	tenant, err := s.tenant(ctx, req.Scope)
	if errors.Is(err, store.ErrNotFound) {
		return facts, t, nil
	}
	if err != nil {
		return facts, t, err
	}
	var digest []byte // NULL is found nowhere
	if req.Session != "" {
		digest = sessionDigest(req.Session)
	}
	rows, err := s.query(ctx, gatherQuery, tenant, digest, int(req.Month), s.now().UnixMilli())
	if err != nil {
		return facts, t, err
	}
	var seq, appended sql.NullInt64
	reach := newReach(req)
	err = each(ctx, rows, func() (bool, error) {
		var r exchangeRow
		if err := rows.Scan(append([]any{&facts.epoch, &facts.files, &facts.used, &seq, &appended, &t.expires}, r.columns()...)...); err != nil {
			return false, err
		}
		if !r.id.Valid {
			return false, nil
		}
		e, err := r.exchange()
		if err != nil {
			return false, err
		}
		t.exchanges = append(t.exchanges, e)
		t.whole = reach.take(&e)
		return t.whole, nil
	})
	slices.Reverse(t.exchanges)
	t.seq, t.tokens = seq.Int64, appended.Int64
	return facts, t, err
}
