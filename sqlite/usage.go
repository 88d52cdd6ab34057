package sqlite

import (
	"context"
	"errors"

	"github.com/backstory-proxy/backstory/store"
)

// AddUsage adds to what the tenant has used.
func (s *Store) AddUsage(ctx context.Context, scope store.Scope, u store.Used) error {
	if u.Tokens < 1 {
		return ctx.Err()
	}
	return s.writer.write(ctx, 1, func(c *conn) error {
		id, err := s.addTenant(c, scope)
		if err != nil {
			return err
		}
		return addUsage(c, id, scope, u)
	})
}

// addUsage is AddUsage inside a write, for a tenant's id and its name.
func addUsage(c *conn, id int64, scope store.Scope, u store.Used) error {
	if u.Tokens < 1 {
		return nil
	}
	err := c.exec(`INSERT INTO usage (tenant, month, tokens) VALUES (?, ?, ?)
		ON CONFLICT DO UPDATE SET tokens = tokens + excluded.tokens`, id, int64(u.Month), u.Tokens)
	if err == nil {
		c.after(used(scope, u))
	}
	return err
}

// Usage returns the tokens that the tenant used in a month.
func (s *Store) Usage(ctx context.Context, scope store.Scope, month store.Month) (tokens int64, err error) {
	id, err := s.tenant(ctx, scope)
	if err == nil {
		err = s.row(ctx, `SELECT tokens FROM usage WHERE tenant = ? AND month = ?`, id, int64(month)).Scan(&tokens)
	}
	if errors.Is(err, store.ErrNotFound) {
		return 0, nil
	}
	return tokens, err
}

// ListUsage returns what the tenant used, month by month.
func (s *Store) ListUsage(ctx context.Context, scope store.Scope) ([]store.Used, error) {
	id, err := s.tenant(ctx, scope)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	rows, err := s.query(ctx, `SELECT month, tokens FROM usage WHERE tenant = ? AND month >= ? ORDER BY month`,
		id, int64(store.MonthOf(s.now())-store.UsageMonths))
	if err != nil {
		return nil, err
	}
	var list []store.Used
	err = each(ctx, rows, func() (bool, error) {
		var u store.Used
		err := rows.Scan(&u.Month, &u.Tokens)
		list = append(list, u)
		return true, err
	})
	return list, err
}

// RestoreUsage raises what the tenant used.
func (s *Store) RestoreUsage(ctx context.Context, scope store.Scope, list []store.Used) error {
	return s.writer.write(ctx, len(list), func(c *conn) error {
		id, err := s.addTenant(c, scope)
		if err != nil {
			return err
		}
		c.after(forget(scope, ""))
		for _, u := range list {
			err := c.exec(`INSERT INTO usage (tenant, month, tokens) VALUES (?, ?, ?)
				ON CONFLICT DO UPDATE SET tokens = max(tokens, excluded.tokens)`, id, int64(u.Month), u.Tokens)
			if err != nil {
				return err
			}
		}
		return nil
	})
}

var _ store.Usage = (*Store)(nil)
