package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// groupCost is how much one transaction takes on, in rows written or so:
	// enough to share the cost of a commit, little enough not to keep those
	// in it waiting.
	groupCost = 512
	// tidyEvery is how often the log is folded into the database. SQLite does
	// it by itself too, but never to the end while there are readers.
	tidyEvery = 30 * time.Second
	// tidyPages is how many free pages are given back to the file system then.
	tidyPages = 4096
)

// writer is the one goroutine that writes. It takes all jobs that wait into one
// transaction; a job that fails is undone alone.
type writer struct {
	db    *sql.DB
	conn  *conn
	cache *cache // told of every commit before those who wait for it

	version version // of what others have written
	seen    int64

	mu     sync.Mutex
	queue  []*job
	closed bool

	wake    chan struct{} // holds one token when there is something to look at
	stopped chan struct{}
	dirty   bool // whether something was written since the last tidy
}

// job is something to write. It may be run more than once, each time from the
// start: the one before was undone.
type job struct {
	run  func(*conn) error
	cost int

	state    atomic.Int32
	err      error
	panicked error
	done     chan struct{}
}

// The states of a job. A waiting one can be given up, a started one can't:
// whoever waits for it learns how it ended.
const (
	waiting = iota
	started
	givenUp
)

// newWriter opens the connection and brings the file up to date. The caller
// starts loop.
func newWriter(ctx context.Context, path string, o Options) (_ *writer, err error) {
	db, err := sql.Open("sqlite", dsn(path, o.Synchronous))
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
		wake:    make(chan struct{}, 1),
		stopped: make(chan struct{}),
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
	return nil
}

// write runs a job in a transaction, and returns when it is committed. It fails
// with ctx's error only where the job wasn't begun.
func (w *writer) write(ctx context.Context, cost int, run func(*conn) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	j := &job{run: run, cost: cost, done: make(chan struct{})}
	w.mu.Lock()
	if w.closed {
		w.mu.Unlock()
		return errClosed
	}
	w.queue = append(w.queue, j)
	w.mu.Unlock()
	w.nudge()

	select {
	case <-j.done:
	case <-ctx.Done():
		if j.state.CompareAndSwap(waiting, givenUp) {
			return ctx.Err()
		}
		<-j.done
	}
	if j.panicked != nil {
		panic(j.panicked)
	}
	return j.err
}

func (w *writer) nudge() {
	select {
	case w.wake <- struct{}{}:
	default: // it has yet to take the last one
	}
}

// close waits for the jobs in the queue and closes the connection.
func (w *writer) close() error {
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	w.nudge()
	<-w.stopped
	return errors.Join(w.cache.close(), w.version.close(), w.conn.close(), w.db.Close())
}

func (w *writer) loop() {
	defer close(w.stopped)
	tick := time.NewTicker(tidyEvery)
	defer tick.Stop()
	for {
		group, closed := w.take()
		switch {
		case len(group) > 0:
			w.commit(group)
			select {
			case <-tick.C:
				w.tidy()
			default:
			}
		case closed:
			return
		default:
			select {
			case <-w.wake:
			case <-tick.C:
				w.tidy()
			}
		}
	}
}

// take starts the jobs at the head of the queue that make up one group.
func (w *writer) take() (group []*job, closed bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	cost, n := 0, 0
	for ; n < len(w.queue) && cost < groupCost; n++ {
		if j := w.queue[n]; j.state.CompareAndSwap(waiting, started) {
			group = append(group, j)
			cost += j.cost
		}
	}
	rest := copy(w.queue, w.queue[n:])
	clear(w.queue[rest:]) // what was taken is done with, and can be freed
	w.queue = w.queue[:rest]
	return group, w.closed
}

// commit runs the jobs in one transaction and tells each how it ended. If the
// transaction as a whole fails, each gets one of its own, so that the cause
// strikes only the job that it comes from.
func (w *writer) commit(group []*job) {
	w.dirty = true
	if err := w.transact(group); err != nil {
		for _, j := range group {
			if len(group) > 1 {
				err = w.transact([]*job{j})
			}
			if err != nil {
				j.err = err
			}
		}
	}
	for _, j := range group {
		close(j.done)
	}
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

// try runs the job. What it panics with belongs to its caller's goroutine, not
// to the writer's.
func (j *job) try(c *conn) (err error) {
	j.panicked = nil
	defer func() {
		if v := recover(); v != nil {
			j.panicked = fmt.Errorf("%v\n\n%s", v, debug.Stack())
			err = j.panicked
		}
	}()
	return j.run(c)
}

// tidy folds the log into the database and gives free pages back. It doesn't
// wait for readers; where they are in the way it succeeds another time, so that
// its errors are of no consequence.
func (w *writer) tidy() {
	if !w.dirty {
		return
	}
	_ = w.conn.exec(`PRAGMA busy_timeout = 50`)
	_ = w.change(func() error {
		_ = w.conn.exec(fmt.Sprintf(`PRAGMA incremental_vacuum(%d)`, tidyPages))
		_ = w.conn.exec(`PRAGMA wal_checkpoint(TRUNCATE)`)
		return nil
	})
	_ = w.conn.exec(fmt.Sprintf(`PRAGMA busy_timeout = %d`, busyTimeout.Milliseconds()))
	var free int
	_ = w.conn.row(`PRAGMA freelist_count`).Scan(&free)
	w.dirty = free > 0
}
