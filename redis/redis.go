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
	// DialTimeout bounds the making of a connection. Default: 1 s.
	DialTimeout time.Duration
	// Timeout is how long a server may be silent that was asked something.
	// One that is for longer is held to hang: what needs it fails at once,
	// until it answers again. Default: 1 s.
	Timeout time.Duration
	// SearchTimeout is what the server is told to give to a search. The time
	// during which the search waits its turn doesn't count. One that takes
	// longer is an error, or a part of the hits, as the server's option
	// search-on-timeout says. Default: 1 s.
	SearchTimeout time.Duration
	// PoolSize is how many connections there may be to each server; as many
	// for searches, and again for waiting for replicas. Default: 10 for each
	// core.
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
	// Patient has Open return a store whose servers can't be reached, or aren't
	// ready to work. Its calls fail with store.ErrNotReady until they are. What
	// a server answers that no wait puts right, such as that the password is
	// wrong, is an error of Open all the same.
	Patient bool
	// Notify, where set, is told what the operator wants to know of the
	// servers. It must not block.
	Notify func(Event)
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
	// searches and waits have connections of their own: a search may take
	// long, and WAIT does where a replica is gone. What needs neither goes on.
	searches, waits goredis.UniversalClient
	replicas        *replicas

	layout layout
	opts   Options
	now    func() time.Time
	// nonce and serial make names that no other process makes.
	nonce  string
	serial atomic.Uint64

	// ending has the tenants whose sessions have a time to live, as far as this
	// process has saved any: see unlistEnded.
	ending sync.Map

	// stop ends the work in the background, which tasks counts.
	ctx   context.Context
	stop  context.CancelFunc
	tasks sync.WaitGroup

	closing sync.RWMutex // read-locked by every call under way
	closed  bool

	away atomic.Pointer[error] // why the servers can't be used yet; nil: they can
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
	if why := s.away.Load(); why != nil {
		s.closing.RUnlock()
		return *why
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
	if err := s.closeClients(); err != nil {
		return fmt.Errorf("redis: close: %w", err)
	}
	return nil
}

var _ store.Store = (*Store)(nil)
