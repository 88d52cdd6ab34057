package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"time"
)

// conn is the writer's connection, with its statements prepared once. A write
// that has begun is not broken off, so that nothing here takes a context.
type conn struct {
	c          *sql.Conn
	statements map[string]*sql.Stmt
	// effects are what the transaction under way does to the cache.
	effects []effect
	began   time.Time // the job under way
}

// spent reports whether a step has taken its time, and leaves the rest to the
// next one.
func (c *conn) spent() bool { return time.Since(c.began) >= stepTime }

// after has the cache told of an effect once the transaction is committed.
func (c *conn) after(e effect) { c.effects = append(c.effects, e) }

// forgetEffects drops those after the first n.
func (c *conn) forgetEffects(n int) {
	clear(c.effects[n:]) // what they hold can be freed
	c.effects = c.effects[:n]
}

func (c *conn) prepare(query string) (*sql.Stmt, error) {
	if st := c.statements[query]; st != nil {
		return st, nil
	}
	st, err := c.c.PrepareContext(context.Background(), query)
	if err != nil {
		return nil, failure(context.Background(), err)
	}
	c.statements[query] = st
	return st, nil
}

func (c *conn) exec(query string, args ...any) error {
	_, err := c.count(query, args...)
	return err
}

// count is exec that tells how many rows were written.
func (c *conn) count(query string, args ...any) (int64, error) {
	result, err := c.result(query, args...)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// insert is exec that tells the id of the row added.
func (c *conn) insert(query string, args ...any) (int64, error) {
	result, err := c.result(query, args...)
	if err != nil {
		return 0, err
	}
	return result.LastInsertId()
}

func (c *conn) result(query string, args ...any) (sql.Result, error) {
	st, err := c.prepare(query)
	if err != nil {
		return nil, err
	}
	result, err := st.ExecContext(context.Background(), args...)
	return result, failure(context.Background(), err)
}

// script runs several statements.
func (c *conn) script(text string) error {
	_, err := c.c.ExecContext(context.Background(), text)
	return failure(context.Background(), err)
}

func (c *conn) query(query string, args ...any) (*sql.Rows, error) {
	st, err := c.prepare(query)
	if err != nil {
		return nil, err
	}
	rows, err := st.QueryContext(context.Background(), args...)
	return rows, failure(context.Background(), err)
}

func (c *conn) row(query string, args ...any) row {
	rows, err := c.query(query, args...)
	return row{ctx: context.Background(), rows: rows, err: err}
}

func (c *conn) close() error {
	var errs []error
	for _, st := range c.statements {
		errs = append(errs, st.Close())
	}
	return errors.Join(append(errs, c.c.Close())...)
}
