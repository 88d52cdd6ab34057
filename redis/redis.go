// Package redis is the store for many proxies on one memory: Redis 8 or Redis
// Stack; a single server, Sentinel or a Cluster, by the URL.
//
// go-redis carries everything. What must be atomic is a script, whose keys share
// one slot: a session's keys have one hash tag, a tenant's another; see layout.
// What crosses the two, the list of a tenant's sessions and the count of its
// tokens, isn't atomic with the sessions: the list is repaired when it is read,
// the count when an append fails. A chat request costs one trip before the
// model, Gather, and one after, Append.
//
// Search is the server's search module: redisearch-go builds its commands, over
// a connection that hands them to the same go-redis client; see conn. What a
// search finds is checked against the records of the files, so that nothing
// comes back of a file that is being indexed or removed.
package redis

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/backstory-proxy/backstory/store"
)

// errClosed is what a store answers once Close was called.
var errClosed = errors.New("redis: the store is closed")

// Algorithm is how vectors are indexed.
type Algorithm string

const (
	// HNSW finds approximately and fast, also in millions of chunks; to add a
	// chunk takes the server milliseconds.
	HNSW Algorithm = "HNSW"
	// Flat compares with every vector of the tenant: exact, and cheap to add to.
	Flat Algorithm = "FLAT"
)

// Options adjust a Store. The zero value is right for most.
type Options struct {
	// Prefix begins every key, so that others may use the server too.
	// Default: "backstory:".
	Prefix string
	// DialTimeout bounds the making of a connection. Default: 5 s.
	DialTimeout time.Duration
	// Timeout bounds each read and write of a connection. Default: 3 s.
	Timeout time.Duration
	// SearchTimeout bounds a search on the server, which answers nobody else
	// meanwhile. One that takes longer is an error, not a part of the hits.
	// Default: 1 s.
	SearchTimeout time.Duration
	// PoolSize is how many connections there may be to each server.
	// Default: 10 for each core.
	PoolSize int
	// WaitReplicas is how many replicas must have an exchange before Append
	// returns. Default: 0, which leaves a window in which a failover loses
	// what was acknowledged.
	WaitReplicas int
	// WaitTimeout bounds the wait for them. Default: 1 s.
	WaitTimeout time.Duration
	// Algorithm indexes the vectors. Default: HNSW.
	Algorithm Algorithm
	// Model and Dimensions are those of the embedder. Where they are set, its
	// index is made when the store is opened; otherwise when the first vectors
	// come.
	Model      string
	Dimensions int
	// NoFiles does without files, and so without the search module: adding
	// one is store.ErrFilesOff.
	NoFiles bool
	// TLS is used for rediss:// in place of what the URL says.
	TLS *tls.Config
	// Now tells the time. Default: time.Now, and for rates the server's clock,
	// which is one for all proxies.
	Now func() time.Time

	// unindexed keeps files without an index, for tests of servers that have
	// no search module.
	unindexed bool
}

// Store is a store.Store on Redis.
type Store struct {
	client goredis.UniversalClient
	layout layout
	opts   Options
	now    func() time.Time
	// nonce and serial make names that no other process makes.
	nonce  string
	serial atomic.Uint64

	// stop ends the work in the background, which tasks counts.
	ctx   context.Context
	stop  context.CancelFunc
	tasks sync.WaitGroup

	closing sync.RWMutex // read-locked by every call under way
	closed  bool
}

// begin admits a call, unless its context has ended or the store is closed.
// Whoever it admits calls end. It doesn't nest.
func (s *Store) begin(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.closing.RLock()
	if s.closed {
		s.closing.RUnlock()
		return errClosed
	}
	return nil
}

// enter is begin for a call that is about a scope.
func (s *Store) enter(ctx context.Context, scope store.Scope) error {
	if err := scope.Whole(); err != nil {
		return err
	}
	return s.begin(ctx)
}

func (s *Store) end() { s.closing.RUnlock() }

// background runs task, whose context ends when the store is closed.
func (s *Store) background(task func(context.Context)) {
	s.tasks.Go(func() { task(s.ctx) })
}

// unique returns a name that no call returns again, in any process.
func (s *Store) unique() string {
	return fmt.Sprintf("%s-%x", s.nonce, s.serial.Add(1))
}

// Ping tells whether the server answers, and takes writes.
func (s *Store) Ping(ctx context.Context) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	defer s.end()
	return failure(ctx, s.run(ctx, readyScript, nil).Err())
}

// Close waits for calls under way and closes the connections. Removals under way
// stop at their next step; any proxy goes on with them.
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
	if err := s.client.Close(); err != nil {
		return fmt.Errorf("redis: close: %w", err)
	}
	return nil
}

var _ store.Store = (*Store)(nil)
