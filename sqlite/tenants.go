package sqlite

import (
	"context"
	"errors"

	"github.com/backstory-proxy/backstory/store"
)

// Tenants lists all tenants. A name in the table says only that there was
// something once: the ids of what was deleted stay the tenant's.
func (s *Store) Tenants(ctx context.Context) ([]string, error) {
	rows, err := s.query(ctx, `
		SELECT name FROM tenants t WHERE EXISTS (SELECT 1 FROM sessions WHERE tenant = t.id)
			OR EXISTS (SELECT 1 FROM files WHERE tenant = t.id AND hidden = 0)
			OR EXISTS (SELECT 1 FROM usage WHERE tenant = t.id)
		UNION SELECT tenant FROM keys ORDER BY 1`)
	if err != nil {
		return nil, err
	}
	var names []string
	err = each(ctx, rows, func() (bool, error) {
		var name string
		err := rows.Scan(&name)
		names = append(names, name)
		return true, err
	})
	return names, err
}

// ForgetTenant removes a tenant's keys and its usage.
func (s *Store) ForgetTenant(ctx context.Context, tenant string) (keys int, err error) {
	err = s.writer.step(ctx, func(c *conn) error {
		n, err := c.count(`DELETE FROM keys WHERE tenant = ?`, tenant)
		if err != nil {
			return err
		}
		keys = int(n)
		if err := noteDeletion(c, false); err != nil {
			return err
		}
		var id int64
		err = c.row(`SELECT id FROM tenants WHERE name = ?`, tenant).Scan(&id)
		if errors.Is(err, store.ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		c.after(forget(store.Scope{Tenant: tenant}, ""))
		return c.exec(`DELETE FROM usage WHERE tenant = ?`, id)
	})
	s.eraseSoon()
	return keys, err
}

var _ store.Tenants = (*Store)(nil)
