package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
)

// stamp identifies a state of the file. It differs after each commit, whoever
// has made it; it may differ where nothing has changed, too. The zero stamp is
// of no state.
type stamp struct {
	read    bool
	version int64
}

// watch asks SQLite, on a connection of its own, whether others have written. It
// takes some 4 µs. Only one goroutine may use it at a time.
type watch struct {
	db *sql.DB
	version
}

// newWatch watches the file at path.
func newWatch(ctx context.Context, path string, synchronous Synchronous) (*watch, error) {
	db, err := sql.Open("sqlite", dsn(path, synchronous, "query_only(1)"))
	if err != nil {
		return nil, err
	}
	c, err := db.Conn(ctx)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	w := &watch{db: db}
	if w.version, err = newVersion(c); err != nil {
		return nil, errors.Join(err, c.Close(), db.Close())
	}
	return w, nil
}

func (w *watch) stamp() (stamp, error) {
	v, err := w.version.read()
	return stamp{true, v}, err
}

func (w *watch) close() error {
	return errors.Join(w.version.close(), w.version.c.Close(), w.db.Close())
}

// version reads data_version on a connection: a number that changes when
// others, of this process or of another, have committed since it was last
// read. It goes past database/sql, whose part would be as long again.
type version struct {
	c  *sql.Conn
	st driver.Stmt
}

func newVersion(c *sql.Conn) (version, error) {
	v := version{c: c}
	err := c.Raw(func(raw any) (err error) {
		v.st, err = raw.(driver.Conn).Prepare(`PRAGMA data_version`)
		return err
	})
	return v, err
}

func (v *version) read() (n int64, err error) {
	err = v.c.Raw(func(any) error {
		rows, err := v.st.(driver.StmtQueryContext).QueryContext(context.Background(), nil)
		if err != nil {
			return err
		}
		var value [1]driver.Value
		err = errors.Join(rows.Next(value[:]), rows.Close())
		n, _ = value[0].(int64)
		return err
	})
	return n, err
}

func (v *version) close() error {
	return v.c.Raw(func(any) error { return v.st.Close() })
}
