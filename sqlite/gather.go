package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"slices"

	"github.com/backstory-proxy/backstory/store"
)

// extra is how many exchanges come with a tail that is long enough.
const extra = 2

// gatherQuery is one statement, so that all of its answer is of one moment. It
// is read newest first and only as far as need be: its cost doesn't grow with
// the session.
const gatherQuery = `
	SELECT t.deletions,
		EXISTS (SELECT 1 FROM files WHERE tenant = ?1 AND status = 'processed' AND hidden = 0),
		s.seq, s.appended, ` + exchangeColumns + `
	FROM tenants t
	LEFT JOIN sessions s ON s.tenant = ?1 AND s.digest = ?2
	LEFT JOIN exchanges e ON ` + inSession + `
	WHERE t.id = ?1
	ORDER BY e.id DESC`

// Gather counts the request and reads the end of its session.
func (s *Store) Gather(ctx context.Context, req store.GatherRequest) (store.Gathered, error) {
	rate, err := s.Take(ctx, req.Tenant, req.Limit)
	if err != nil {
		return store.Gathered{}, err
	}
	g := store.Gathered{Rate: rate}
	if !rate.Allowed {
		return g, nil
	}
	tenant, err := s.tenant(ctx, req.Tenant)
	if errors.Is(err, store.ErrNotFound) {
		return g, nil
	}
	if err != nil {
		return store.Gathered{}, err
	}
	var digest []byte // NULL is found nowhere
	if req.Session != "" {
		digest = sessionDigest(req.Session)
	}
	rows, err := s.query(ctx, gatherQuery, tenant, digest)
	if err != nil {
		return store.Gathered{}, err
	}
	var seq, appended sql.NullInt64
	tokens, messages, more := 0, 0, extra
	err = each(ctx, rows, func() (bool, error) {
		var r exchangeRow
		if err := rows.Scan(append([]any{&g.Mark.Epoch, &g.Files, &seq, &appended}, r.columns()...)...); err != nil {
			return false, err
		}
		if !r.id.Valid {
			return false, nil
		}
		if tokens >= req.Tokens && messages >= req.Messages {
			more--
		}
		e, err := r.exchange()
		if err != nil {
			return false, err
		}
		g.Tail = append(g.Tail, e)
		tokens += e.Tokens()
		messages += len(e.Messages)
		return more > 0, nil
	})
	if err != nil {
		return store.Gathered{}, err
	}
	slices.Reverse(g.Tail)
	g.Mark.Seq, g.Tokens = seq.Int64, appended.Int64
	return g, nil
}
