package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"

	"github.com/backstory-proxy/backstory/store"
)

// pool is a number of connections that read, with their statements.
type pool struct {
	db         *sql.DB
	statements sync.Map // query text to *sql.Stmt
}

func newPool(path string, o Options, pragmas ...string) (*pool, error) {
	db, err := sql.Open("sqlite", dsn(path, o.Synchronous, append(pragmas, "query_only(1)")...))
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(o.Readers)
	db.SetMaxIdleConns(o.Readers)
	return &pool{db: db}, nil
}

func (p *pool) close() error {
	if p == nil {
		return nil // it was never opened
	}
	return p.db.Close()
}

// query runs a query on one of the readers, with a statement prepared once.
func (s *Store) query(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	return s.readers.query(ctx, query, args...)
}

func (p *pool) query(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	st, err := p.prepare(ctx, query)
	if err != nil {
		return nil, failure(ctx, err)
	}
	rows, err := st.QueryContext(ctx, args...)
	return rows, failure(ctx, err)
}

func (p *pool) prepare(ctx context.Context, query string) (*sql.Stmt, error) {
	if st, ok := p.statements.Load(query); ok {
		return st.(*sql.Stmt), nil
	}
	st, err := p.db.PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	if earlier, ok := p.statements.LoadOrStore(query, st); ok {
		return earlier.(*sql.Stmt), st.Close()
	}
	return st, nil
}

// row runs a query that finds one row at most.
func (s *Store) row(ctx context.Context, query string, args ...any) row {
	rows, err := s.query(ctx, query, args...)
	return row{ctx: ctx, rows: rows, err: err}
}

// row is the result of a query that finds one row at most.
type row struct {
	ctx  context.Context
	rows *sql.Rows
	err  error
}

// Scan copies the row's columns, or returns ErrNotFound.
func (r row) Scan(dest ...any) error {
	if r.err != nil {
		return r.err
	}
	defer r.rows.Close()
	if !r.rows.Next() {
		if err := r.rows.Err(); err != nil {
			return failure(r.ctx, err)
		}
		return store.ErrNotFound
	}
	if err := r.rows.Scan(dest...); err != nil {
		return failure(r.ctx, err)
	}
	return failure(r.ctx, r.rows.Close())
}

// each calls scan for every row until it says to stop, and closes the rows.
func each(ctx context.Context, rows *sql.Rows, scan func() (more bool, err error)) error {
	defer rows.Close()
	for rows.Next() {
		more, err := scan()
		if err != nil {
			return failure(ctx, err)
		}
		if !more {
			break
		}
	}
	return failure(ctx, errors.Join(rows.Err(), rows.Close()))
}

// failure names the cause of an error: when a context ends in the middle of a
// query, SQLite says "interrupted", and database/sql that the rows are closed.
func failure(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return fmt.Errorf("sqlite: %w", err)
}

// tenant returns the id of a scope's tenant, or ErrNotFound where nothing was ever kept for
// it. Ids don't change, so that they are remembered.
func (s *Store) tenant(ctx context.Context, scope store.Scope) (int64, error) {
	if err := scope.Whole(); err != nil {
		return 0, err
	}
	name := scope.Tenant
	if id, ok := s.tenants.Load(name); ok {
		return id.(int64), nil
	}
	var id int64
	err := s.row(ctx, `SELECT id FROM tenants WHERE name = ?`, name).Scan(&id)
	if err == nil {
		s.tenants.Store(name, id)
	}
	return id, err
}

// addTenant is tenant inside a write; it adds the tenant if need be. What it
// finds isn't remembered: the transaction may yet fail.
func (s *Store) addTenant(c *conn, scope store.Scope) (int64, error) {
	if err := scope.Whole(); err != nil {
		return 0, err
	}
	name := scope.Tenant
	if id, ok := s.tenants.Load(name); ok {
		return id.(int64), nil
	}
	var id int64
	err := c.row(`SELECT id FROM tenants WHERE name = ?`, name).Scan(&id)
	if errors.Is(err, store.ErrNotFound) {
		err = c.row(`INSERT INTO tenants (name) VALUES (?) RETURNING id`, name).Scan(&id)
	}
	return id, err
}
