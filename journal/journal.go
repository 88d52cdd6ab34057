// Package journal keeps exchanges that a store could not take, and gives them
// to it when it is back: nothing that was paid for is lost.
//
// An exchange enters in Add, and is on the disk when that returns. It leaves
// when the store has it, or says that its session was deleted. Exchanges of one
// session are given to the store in the order in which they came, and one after
// the other; sessions don't wait for one another. An exchange may be given to
// the store twice, where the store had saved it and couldn't say so, or the
// process died in between: the store knows it by its ID.
//
// What the store was to check when the exchange came, it checks when it gets it:
// whether the session was deleted since the request began, by the mark that the
// request saw; and what others have saved of the same conversation since, by
// memory.Draft.Save, for which the digests of that conversation are kept too.
//
// One SQLite file serves any number of processes and stores. Each process
// replays what it wrote itself, and what dead ones have left.
package journal

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/backstory-proxy/backstory/memory"
	"github.com/backstory-proxy/backstory/store"
)

// Entry is an exchange that waits for the store.
type Entry struct {
	Scope   store.Scope
	Session string
	Draft   memory.Draft
	// Saved says that the store has it, and hasn't confirmed it: who reads the
	// session sees it as it is.
	Saved bool
	// Mark, Usage and TTL are as in store.Append.
	Mark  store.Mark
	Usage store.Used
	TTL   time.Duration
}

// Save saves the exchange in the store.
func (e *Entry) Save(ctx context.Context, to memory.Appender) error {
	_, err := e.Draft.Save(ctx, to, store.Append{Scope: e.Scope, Session: e.Session, Mark: e.Mark, TTL: e.TTL, Usage: e.Usage})
	return err
}

// Store is what the journal asks of a store.
type Store interface {
	memory.Appender
	Ping(ctx context.Context) error
}

// Options adjust a Journal.
type Options struct {
	// Location tells stores apart that share the file.
	Location string
	// First and Longest are the pauses between attempts while the store is
	// down: the first one, and what they grow to. Defaults: 500 ms, 15 s.
	First, Longest time.Duration
	// Now tells the time. Default: time.Now.
	Now func() time.Time
	// Notify, where set, is told what becomes of exchanges. It must not block.
	Notify func(Event)
}

// Event is something that happened to an exchange.
type Event struct {
	What What
	// Depth is how many exchanges wait after it: each change of it is told once.
	Depth int
	// Err is why an exchange was set aside, or stays.
	Err error
}

// What happened to an exchange.
type What int

const (
	// Journaled exchanges wait for the store.
	Journaled What = iota
	// Replayed exchanges are in the store.
	Replayed
	// Void exchanges were of a session that has been deleted.
	Void
	// SetAside exchanges can't be saved. They stay in the file, and are not
	// tried again.
	SetAside
	// Newer exchanges were written by a newer version. They wait for it.
	Newer
)

// String names it as metrics do.
func (w What) String() string {
	return [...]string{"journaled", "replayed", "void", "set_aside", "newer"}[w]
}

// Journal holds exchanges until the store takes them. It is safe for concurrent
// use.
type Journal struct {
	file  *file
	store Store
	opts  Options

	mu     sync.Mutex
	queues map[name]*queue
	depth  atomic.Int64
	saved  atomic.Int64 // exchanges that the store has taken, from us or others

	added, back chan struct{} // to the loop: something came; the store is back
	stopping    context.Context
	stop        context.CancelFunc
	stopped     chan struct{}
}

type name struct {
	scope   store.Scope
	session string
}

// queue is a session's part of the journal.
type queue struct {
	name
	n         int           // entries that wait; guarded by Journal.mu
	replaying chan struct{} // holds one element while the session is replayed

	// What follows is guarded by replaying.

	// visible is the last entry that stays though it is settled: the store has
	// it and hasn't confirmed it, or the file can't be written, or it is of a newer
	// version. Who reads the
	// session need not wait for it.
	visible int64
	// Of the exchange that failed last:
	head  int64
	seen  int64     // Journal.saved at its last failure
	since time.Time // when the store was first seen to take others
}

// Open opens the journal in the file at path, creates it where it isn't there,
// and begins to replay what it holds.
func Open(ctx context.Context, path string, s Store, o Options) (*Journal, error) {
	if o.First == 0 {
		o.First = 500 * time.Millisecond
	}
	if o.Longest == 0 {
		o.Longest = 15 * time.Second
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Notify == nil {
		o.Notify = func(Event) {}
	}
	f, err := openFile(ctx, path, o.Location)
	if err != nil {
		return nil, fmt.Errorf("journal: open %s: %w", path, err)
	}
	j := &Journal{
		file: f, store: s, opts: o, queues: map[name]*queue{},
		added: make(chan struct{}, 1), back: make(chan struct{}, 1), stopped: make(chan struct{}),
	}
	j.stopping, j.stop = context.WithCancel(context.Background())
	// Ahead of the first request: it must see what an earlier process left.
	if err := errors.Join(f.own(ctx, j.more), f.take(ctx, j.more, j.less)); err != nil {
		j.stop()
		return nil, errors.Join(fmt.Errorf("journal: open %s: %w", path, err), f.close())
	}
	go j.loop()
	return j, nil
}

// Close ends the replay and closes the file. What waits stays in it.
func (j *Journal) Close() error {
	j.stop()
	<-j.stopped
	return j.file.close()
}

// Depth is how many exchanges wait for the store.
func (j *Journal) Depth() int { return int(j.depth.Load()) }

// Holds reports whether exchanges of the session wait: new ones go behind them,
// by Add, and who wants to read the session has them replayed first.
func (j *Journal) Holds(scope store.Scope, session string) bool {
	if j.depth.Load() == 0 {
		return false
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.queues[name{scope, session}] != nil
}

// Saved tells the journal that the store has taken an exchange from others: what
// it refuses then isn't refused because it is down.
func (j *Journal) Saved() { j.saved.Add(1) }

// Add puts an exchange at the end of the journal. When it returns, the exchange
// is on the disk.
func (j *Journal) Add(ctx context.Context, e Entry) error {
	record, err := encode(&e)
	if err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	n := name{e.Scope, e.Session}
	// From now on, what others save of the session goes behind it.
	depth := j.more(n)
	if err := j.file.add(ctx, n, j.opts.Now(), record); err != nil {
		j.less(n)
		return fmt.Errorf("journal: %w", err)
	}
	j.opts.Notify(Event{What: Journaled, Depth: depth})
	poke(j.added)
	return nil
}

// Drop forgets the exchanges of a session that was deleted, or of a whole tenant
// where session is empty: those too that were set aside. Once begun it goes on
// to its end, so that what is counted is what is in the file.
func (j *Journal) Drop(ctx context.Context, scope store.Scope, session string) error {
	dropped, err := j.file.drop(context.WithoutCancel(ctx), name{scope, session})
	for _, n := range dropped {
		j.opts.Notify(Event{What: Void, Depth: j.less(n)})
	}
	if err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	return nil
}

// more counts an entry of a session in, and returns the depth with it.
func (j *Journal) more(n name) int {
	j.mu.Lock()
	defer j.mu.Unlock()
	q := j.queues[n]
	if q == nil {
		q = &queue{name: n, replaying: make(chan struct{}, 1)}
		j.queues[n] = q
	}
	q.n++
	return int(j.depth.Add(1))
}

// less counts an entry of a session out, and returns the depth without it.
func (j *Journal) less(n name) int {
	j.mu.Lock()
	defer j.mu.Unlock()
	q := j.queues[n]
	if q == nil {
		return j.Depth()
	}
	if q.n--; q.n == 0 {
		delete(j.queues, n)
	}
	return int(j.depth.Add(-1))
}

// poke tells the loop, unless it has yet to hear of the last time.
func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
