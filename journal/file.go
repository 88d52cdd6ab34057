package journal

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"time"

	_ "modernc.org/sqlite" // the driver
)

// applicationID marks a file as ours: "Bsjl".
const applicationID = 0x42736a6c

// schema is what a new file is given. Entries are of a store, by the digest of
// its location, and of a process, by the number of the lock that it holds.
//
// Records of version 2 stand under a location of their own. A process of an older
// version, which takes over what dead ones have left, doesn't see them: it would set
// aside for good what it can't read.
const schema = `
CREATE TABLE entries (
	id INTEGER PRIMARY KEY AUTOINCREMENT,
	location TEXT NOT NULL,
	slot INTEGER NOT NULL,
	tenant TEXT NOT NULL,
	session BLOB NOT NULL, -- as the client named it
	added INTEGER NOT NULL, -- ms
	aside INTEGER NOT NULL DEFAULT 0, -- 1: it can't be saved, and waits for no one
	record BLOB NOT NULL
) STRICT;
CREATE INDEX waiting ON entries (location, slot, tenant, session, id) WHERE aside = 0;
PRAGMA user_version = 1;`

// busyTimeout is how long a statement waits for another process. It is what
// bounds a write: SQLite's wait doesn't end with a context.
const busyTimeout = 2 * time.Second

// file is the journal on the disk.
type file struct {
	db       *sql.DB
	path     string
	location string // of the locks, and of entries of version 1
	entries  string // the location of the other entries
	slot     int
	lock     *lock
	adds     adds
}

// row is an entry in the file.
type row struct {
	id     int64
	added  time.Time
	record []byte
}

func openFile(ctx context.Context, path, location string) (_ *file, err error) {
	// An absolute path can't be mistaken for one of SQLite's special names.
	if path, err = filepath.Abs(path); err != nil {
		return nil, err
	}
	if err := prepare(path); err != nil {
		return nil, err
	}
	sum := sha256.Sum256([]byte(location))
	f := &file{path: path, location: hex.EncodeToString(sum[:8])}
	f.entries = f.location + "-2"
	// One connection: what is written here is rare.
	if f.db, err = openDB(path, busyTimeout, "journal_mode(WAL)", "synchronous(FULL)", "secure_delete(1)"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.close())
		}
	}()
	if err := f.migrate(ctx); err != nil {
		return nil, err
	}
	for f.slot = range maxSlots {
		if f.lock, err = acquire(ctx, f.lockPath(f.slot)); f.lock != nil || err != nil {
			return f, err
		}
	}
	return nil, fmt.Errorf("%d processes use it already; name another file", maxSlots)
}

// prepare creates the file and the folders above it, for the owner alone. One
// that is there it leaves alone: to close a descriptor of it would end the locks
// that SQLite holds on it in this process (POSIX, fcntl).
func prepare(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return f.Close()
}

func openDB(path string, busy time.Duration, pragmas ...string) (*sql.DB, error) {
	pragmas = append([]string{fmt.Sprintf("busy_timeout(%d)", busy.Milliseconds())}, pragmas...)
	u := url.URL{Scheme: "file", Path: filepath.ToSlash(path), RawQuery: url.Values{"_pragma": pragmas}.Encode()}
	db, err := sql.Open("sqlite", u.String())
	if err == nil {
		db.SetMaxOpenConns(1)
	}
	return db, err
}

// migrate gives a new file its schema, and refuses one that isn't ours.
func (f *file) migrate(ctx context.Context) error {
	c, err := f.db.Conn(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	if _, err := c.ExecContext(ctx, `BEGIN IMMEDIATE`); err != nil {
		return err
	}
	defer c.ExecContext(context.WithoutCancel(ctx), `ROLLBACK`) // no more than an error once it is committed
	var tables, application, version int
	for query, to := range map[string]*int{
		`SELECT count(*) FROM sqlite_schema`: &tables, `PRAGMA application_id`: &application, `PRAGMA user_version`: &version,
	} {
		if err := c.QueryRowContext(ctx, query).Scan(to); err != nil {
			return err
		}
	}
	switch {
	case tables > 0 && application != applicationID:
		return errors.New("it is the database of something else; name another file")
	case version > 1:
		return fmt.Errorf("its schema is version %d, and this program knows 1; run a newer one", version)
	case version == 1:
		return nil
	}
	_, err = c.ExecContext(ctx, fmt.Sprintf("%s\nPRAGMA application_id = %d;\nCOMMIT;", schema, applicationID))
	return err
}

func (f *file) close() error {
	var err error
	if f.lock != nil {
		err = f.lock.release()
	}
	return errors.Join(err, f.db.Close())
}

// next is the entry of a session that has waited longest, of those that follow
// the one with the id after.
func (f *file) next(ctx context.Context, n name, after int64) (r row, ok bool, err error) {
	var added int64
	err = f.db.QueryRowContext(ctx, `SELECT id, added, record FROM entries
		WHERE location IN (?, ?) AND slot = ? AND tenant = ? AND session = ? AND id > ? AND aside = 0 ORDER BY id LIMIT 1`,
		f.location, f.entries, f.slot, n.scope.Tenant, []byte(n.session), after).Scan(&r.id, &added, &r.record)
	if errors.Is(err, sql.ErrNoRows) {
		return r, false, nil
	}
	r.added = time.UnixMilli(added)
	return r, err == nil, err
}

// remove removes an entry, and reports whether it was there.
func (f *file) remove(ctx context.Context, id int64) (bool, error) {
	return f.change(ctx, `DELETE FROM entries WHERE id = ?`, id)
}

// setAside lets an entry wait no longer, and reports whether it did.
func (f *file) setAside(ctx context.Context, id int64) (bool, error) {
	return f.change(ctx, `UPDATE entries SET aside = 1 WHERE id = ? AND aside = 0`, id)
}

func (f *file) change(ctx context.Context, query string, id int64) (bool, error) {
	result, err := f.db.ExecContext(ctx, query, id)
	if err != nil {
		return false, err
	}
	n, err := result.RowsAffected()
	return n > 0, err
}

// tidy folds the log into the file and cuts it: what was removed still stands in
// there. It is no loss if others are in the way; it succeeds another time.
func (f *file) tidy(ctx context.Context) {
	_, _ = f.db.ExecContext(ctx, `PRAGMA wal_checkpoint(TRUNCATE)`)
}

// drop removes what waits here of a session, or of a tenant where the session is
// empty, and what was set aside anywhere. What waits with other processes they
// count: the store voids it. It returns the session of each entry that waited.
func (f *file) drop(ctx context.Context, n name) (dropped []name, err error) {
	rows, err := f.db.QueryContext(ctx, `DELETE FROM entries
		WHERE location IN (?5, ?1) AND tenant = ?2 AND (?3 = x'' OR session = ?3) AND (slot = ?4 OR aside = 1)
		RETURNING session, aside = 0`, f.entries, n.scope.Tenant, []byte(n.session), f.slot, f.location)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	removed := false
	for ; rows.Next(); removed = true {
		var session []byte
		var waited bool
		if err := rows.Scan(&session, &waited); err != nil {
			return dropped, err
		}
		if waited {
			dropped = append(dropped, name{n.scope, string(session)})
		}
	}
	if err := rows.Err(); err != nil {
		return dropped, err
	}
	if removed {
		f.tidy(ctx)
	}
	return dropped, nil
}
