package journal

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	sqlite "modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// maxSlots is how many processes can use one file for one store.
const maxSlots = 64

// lock says that a process, or a part of it, is alive. It is SQLite's own lock
// on an empty database, since that works everywhere; the operating system lets
// go of it when the process dies.
type lock struct {
	db *sql.DB
	c  *sql.Conn
}

func (f *file) lockPath(slot int) string {
	return fmt.Sprintf("%s-%s-%d.lock", f.path, f.location, slot)
}

// acquire takes the lock in the file at path; nil where another has it.
func acquire(ctx context.Context, path string) (_ *lock, err error) {
	if err := prepare(path); err != nil {
		return nil, err
	}
	l := new(lock)
	if l.db, err = openDB(path, 0); err != nil {
		return nil, err
	}
	if l.c, err = l.db.Conn(ctx); err == nil {
		_, err = l.c.ExecContext(ctx, `BEGIN EXCLUSIVE`)
	}
	if err == nil {
		return l, nil
	}
	closed := l.release()
	if isBusy(err) {
		return nil, closed
	}
	return nil, errors.Join(err, closed)
}

// isBusy reports whether an error is that another process keeps the file locked.
func isBusy(err error) bool {
	var e *sqlite.Error
	return errors.As(err, &e) && e.Code()&0xff == sqlite3.SQLITE_BUSY
}

func (l *lock) release() error {
	var err error
	if l.c != nil {
		err = l.c.Close()
	}
	return errors.Join(err, l.db.Close())
}

// own tells of the entries that wait in our slot, from an earlier process.
func (f *file) own(ctx context.Context, count func(name) int) error {
	rows, err := f.db.QueryContext(ctx, `SELECT tenant, session FROM entries WHERE location IN (?, ?) AND slot = ? AND aside = 0`, f.location, f.entries, f.slot)
	if err != nil {
		return err
	}
	_, err = eachName(rows, count)
	return err
}

// take makes the waiting entries of dead processes ours. Each one is counted
// before anyone can see it here; where it can't be taken, that is undone.
func (f *file) take(ctx context.Context, count, undo func(name) int) error {
	rows, err := f.db.QueryContext(ctx, `SELECT DISTINCT slot FROM entries WHERE location IN (?, ?) AND slot <> ? AND aside = 0`, f.location, f.entries, f.slot)
	if err != nil {
		return err
	}
	defer rows.Close()
	var slots []int
	for rows.Next() {
		var slot int
		if err := rows.Scan(&slot); err != nil {
			return err
		}
		slots = append(slots, slot)
	}
	if err := rows.Err(); err != nil {
		return err
	}
	for _, slot := range slots {
		l, err := acquire(ctx, f.lockPath(slot))
		if err != nil {
			return err
		}
		if l == nil {
			continue // it lives
		}
		if err := errors.Join(f.takeSlot(ctx, slot, count, undo), l.release()); err != nil {
			return err
		}
	}
	return nil
}

func (f *file) takeSlot(ctx context.Context, slot int, count, undo func(name) int) (err error) {
	tx, err := f.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	var taken []name
	defer func() {
		if err != nil {
			_ = tx.Rollback() // err is the error to report
			for _, n := range taken {
				undo(n)
			}
		}
	}()
	rows, err := tx.QueryContext(ctx, `UPDATE entries SET slot = ? WHERE location IN (?, ?) AND slot = ? AND aside = 0 RETURNING tenant, session`,
		f.slot, f.location, f.entries, slot)
	if err != nil {
		return err
	}
	if taken, err = eachName(rows, count); err != nil {
		return err
	}
	return tx.Commit()
}

// eachName reads the names of sessions, and closes rows.
func eachName(rows *sql.Rows, do func(name) int) (list []name, err error) {
	defer rows.Close()
	for rows.Next() {
		var n name
		var session []byte
		if err := rows.Scan(&n.scope.Tenant, &session); err != nil {
			return list, err
		}
		n.session = string(session)
		do(n)
		list = append(list, n)
	}
	return list, rows.Err()
}
