// Package sqlite is the embedded store: one SQLite file, no server, no cgo.
//
// All writes go through one goroutine, which gathers those that wait into one
// transaction, so that they share the cost of making it durable; see writer.
// Reads have connections of their own and see the last committed state. Work
// that would hold the writer for long (indexing or removing a large file) is
// cut into steps, so that appends get in between.
//
// Request rates are counted in the process's memory: a file has one proxy.
package sqlite

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/backstory-proxy/backstory/store"
)

// errClosed is what a store answers once Close was called.
var errClosed = errors.New("sqlite: the store is closed")

// Synchronous says what a write waits for before it counts as done.
type Synchronous string

const (
	// Full waits until the write is on the disk: it survives a power cut.
	Full Synchronous = "full"
	// Normal waits until the operating system has it: it survives a crash of
	// the process, but a power cut can take the last seconds away.
	Normal Synchronous = "normal"
)

// Options adjust a Store. The zero value is right for most.
type Options struct {
	// Synchronous is what writes wait for. Default: Full.
	Synchronous Synchronous
	// Readers is how many reads, and how many searches, run at once. Default: 8.
	Readers int
	// CacheSize is how many bytes of the tails of sessions are kept in memory;
	// none where it is negative. Default: 64 MiB.
	CacheSize int
	// Unwritable, where set, is told when the file can no longer be written, and
	// why, and with nil when it can be again. It must not block.
	Unwritable func(why error)
	// Now tells the time. Default: time.Now.
	Now func() time.Time
}

// Store is a store.Store in one SQLite file.
type Store struct {
	now       func() time.Time
	rates     *rates
	writer    *writer
	readers   *pool
	searchers *pool
	lock      *fileLock
	elsewhere bool // it was open in another process

	tenants sync.Map // name to id of tenants known to be in the file
	staging sync.Map // ids of sessions that are being imported

	deleted chan struct{} // holds one token when something was deleted: see erase

	// stop ends the work in the background: tasks, which end by themselves
	// too, and sweeping, which does not.
	ctx      context.Context
	stop     context.CancelFunc
	tasks    sync.WaitGroup
	sweeping sync.WaitGroup

	closing sync.RWMutex
	closed  bool
}

// Ping tells whether the file can be read, and, as far as is known, written.
func (s *Store) Ping(ctx context.Context) error {
	var one int
	if err := s.row(ctx, `SELECT 1 FROM sqlite_schema LIMIT 1`).Scan(&one); err != nil {
		return err
	}
	return s.writer.disk.state()
}

// OpenElsewhere reports whether another process had the file open when this one
// opened it. Nothing is lost by that; but each counts request rates by itself.
func (s *Store) OpenElsewhere() bool { return s.elsewhere }

// Close waits for writes under way and closes the file. Removals under way stop
// at their next step, and go on when the file is opened again.
func (s *Store) Close() error {
	s.closing.Lock()
	closed := s.closed
	s.closed = true
	s.closing.Unlock()
	if closed {
		return nil
	}
	s.stop()
	s.tasks.Wait()
	s.sweeping.Wait()
	// The writer goes last: whoever closes the last connection folds the
	// write-ahead log into the database.
	err := errors.Join(s.readers.close(), s.searchers.close(), s.writer.close(), s.lock.release())
	if err != nil {
		return fmt.Errorf("sqlite: close: %w", err)
	}
	return nil
}

// background runs task, which must end soon after its context does, and returns
// a channel that receives its result.
func (s *Store) background(task func(context.Context) error) <-chan error {
	result := make(chan error, 1)
	s.closing.RLock()
	defer s.closing.RUnlock()
	if s.closed {
		result <- errClosed
		return result
	}
	s.tasks.Go(func() { result <- task(s.ctx) })
	return result
}

var _ store.Store = (*Store)(nil)
