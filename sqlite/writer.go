package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/backstory-proxy/backstory/store"
)

const (
	// tidyEvery is how often the log is folded into the database. SQLite does
	// it by itself too, but never to the end while there are readers.
	tidyEvery = 30 * time.Second
	// tidyPages is how many free pages are given back to the file system then.
	tidyPages = 4096
)

// writer is the one goroutine that writes. It takes all saves that wait into one
// transaction; a job that fails is undone alone. In between it runs steps: see
// queue.
type writer struct {
	db    *sql.DB
	conn  *conn
	cache *cache // told of every commit before those who wait for it
	disk  *disk  // whether the file can be written

	version version // of what others have written
	seen    int64

	queue   queue
	stopped chan struct{}
	dirty   bool // whether something was written since the last tidy
	tick    *time.Ticker
	erasing atomic.Bool // see eraseSoon
}

// newWriter opens the connection and brings the file up to date. The caller
// starts loop.
func newWriter(ctx context.Context, path string, o Options) (_ *writer, err error) {
	db, err := sql.Open("sqlite", dsn(path, o.Synchronous, "secure_delete(1)"))
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	c, err := db.Conn(ctx)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	w := &writer{
		db:      db,
		conn:    &conn{c: c, statements: make(map[string]*sql.Stmt)},
		disk:    newDisk(path, o.Unwritable),
		queue:   queue{wake: make(chan struct{}, 1)},
		stopped: make(chan struct{}),
		dirty:   true, // a process that died may have left a log
		tick:    time.NewTicker(tidyEvery),
	}
	if err := w.prepare(ctx, path, o); err != nil {
		return nil, errors.Join(err, c.Close(), db.Close())
	}
	return w, nil
}

// prepare brings the file up to date and begins to watch it.
func (w *writer) prepare(ctx context.Context, path string, o Options) (err error) {
	if err := migrate(w.conn); err != nil {
		return err
	}
	if w.version, err = newVersion(w.conn.c); err != nil {
		return err
	}
	if w.seen, err = w.version.read(); err != nil {
		return err
	}
	watch, err := newWatch(ctx, path, o.Synchronous)
	if err != nil {
		return err
	}
	w.cache = newCache(watch, o.CacheSize)
	return w.disk.watch()
}

// close waits for the jobs in the queue and closes the connection.
func (w *writer) close() error {
	w.queue.close()
	<-w.stopped
	return errors.Join(w.cache.close(), w.version.close(), w.conn.close(), w.db.Close())
}

func (w *writer) loop() {
	defer close(w.stopped)
	check := time.NewTicker(checkEvery)
	defer check.Stop()
	defer w.tick.Stop()
	for {
		group, closed := w.queue.take()
		if len(group) > 0 {
			w.commit(group)
			w.queue.did(group)
			select {
			case <-w.tick.C:
				w.tidy()
			case <-check.C:
				w.check()
			default:
			}
			continue
		}
		if closed {
			return
		}
		select {
		case <-w.queue.wake:
		case <-w.tick.C:
			w.tidy()
		case <-check.C:
			w.check()
		}
	}
}

// commit runs the jobs in one transaction and tells each how it ended. If the
// transaction as a whole fails, each gets one of its own, so that the cause
// strikes only the job that it comes from.
func (w *writer) commit(group []*job) {
	w.dirty = true
	err := w.transact(group)
	if why := fault(err, group); why != nil {
		// What was paid for gets the room that is kept for it, where room is the want.
		if w.disk.fail(why); errors.Is(w.disk.state(), store.ErrFull) && w.disk.release() {
			err = w.again(group, err)
		}
	}
	if err != nil {
		for _, j := range group {
			if len(group) > 1 {
				err = w.transact([]*job{j})
			}
			if err != nil {
				j.err = err
			}
		}
	}
	if why := fault(nil, group); why != nil {
		w.disk.fail(why)
	}
	for _, j := range group {
		if isFault(j.err) {
			j.err = w.disk.state()
		}
		close(j.done)
	}
}

// again runs what the disk kept from being written: all of the jobs where err says
// that nothing was kept, else those alone that it struck. The others stand.
func (w *writer) again(group []*job, err error) error {
	if err != nil {
		return w.transact(group)
	}
	for _, j := range group {
		if !isFault(j.err) {
			continue
		}
		if err := w.transact([]*job{j}); err != nil {
			j.err = err
		}
	}
	return nil
}

// transact runs the jobs in one transaction and sets their errors; its own says
// that nothing of them was kept.
func (w *writer) transact(group []*job) error {
	return w.change(func() error {
		if err := w.conn.exec(`BEGIN IMMEDIATE`); err != nil {
			return err
		}
		keep, err := w.run(group)
		if keep && err == nil {
			err = w.conn.exec(`COMMIT`)
		}
		if keep && err == nil { // what went into a file that nobody will find is not kept
			if err = w.disk.lost(); err != nil {
				w.conn.forgetEffects(0)
				return err
			}
		}
		if !keep || err != nil {
			w.conn.forgetEffects(0)
			// Where SQLite has rolled back by itself this fails, and need not succeed.
			_ = w.conn.exec(`ROLLBACK`)
		}
		return err
	})
}

// run runs the jobs, and tells whether there is anything to keep.
func (w *writer) run(group []*job) (keep bool, err error) {
	if len(group) == 1 {
		// A savepoint, which no one else needs, would cost as much as a statement
		// and a copy of each page.
		j := group[0]
		j.err = j.try(w.conn)
		return j.err == nil, nil
	}
	for _, j := range group {
		if err := w.isolate(j); err != nil {
			return false, err
		}
	}
	return true, nil
}

// change does what may change the file, and tells the cache.
func (w *writer) change(write func() error) error {
	w.conn.forgetEffects(0)
	w.cache.begin()
	err := write()
	// In this order: a commit of somebody else before the stamp was read, which
	// would be taken for part of this change, is sure to show in the version.
	now, failed := w.cache.read()
	version, unknown := w.version.read()
	alone := version == w.seen
	w.seen = version
	w.cache.end(w.conn.effects, now, alone && err == nil && failed == nil && unknown == nil)
	return err
}

// isolate runs one job in a savepoint. The error it returns is one of the
// transaction.
func (w *writer) isolate(j *job) error {
	if err := w.conn.exec(`SAVEPOINT job`); err != nil {
		return err
	}
	before := len(w.conn.effects)
	if j.err = j.try(w.conn); j.err != nil {
		w.conn.forgetEffects(before)
		if err := w.conn.exec(`ROLLBACK TO job`); err != nil {
			return err
		}
	}
	return w.conn.exec(`RELEASE job`)
}

// tidy folds the log into the database and gives free pages back. It doesn't
// wait for readers; where they are in the way it succeeds another time, so that
// its errors are of no consequence.
func (w *writer) tidy() {
	if w.erasing.Swap(false) {
		w.tick.Reset(tidyEvery)
	}
	if !w.dirty {
		return
	}
	busy := true
	_ = w.conn.exec(`PRAGMA busy_timeout = 50`)
	_ = w.change(func() error {
		_ = w.conn.exec(fmt.Sprintf(`PRAGMA incremental_vacuum(%d)`, tidyPages))
		var pages, folded int
		_ = w.conn.row(`PRAGMA wal_checkpoint(TRUNCATE)`).Scan(&busy, &pages, &folded)
		return nil
	})
	_ = w.conn.exec(fmt.Sprintf(`PRAGMA busy_timeout = %d`, busyTimeout.Milliseconds()))
	var free int
	_ = w.conn.row(`PRAGMA freelist_count`).Scan(&free)
	w.dirty = free > 0 || busy
}
