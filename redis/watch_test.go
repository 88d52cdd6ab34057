package redis

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/backstory-proxy/backstory/store"
)

// told collects what a store tells of its servers.
type told struct {
	mu     sync.Mutex
	events []Event
}

func (e *told) take(event Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.events = append(e.events, event)
}

func (e *told) list() (what []What) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, event := range e.events {
		what = append(what, event.What)
	}
	return what
}

func (s *server) freeze(t *testing.T) { signal(t, s, syscall.SIGSTOP) }
func (s *server) thaw(t *testing.T)   { signal(t, s, syscall.SIGCONT) }

func signal(t *testing.T, s *server, which syscall.Signal) {
	t.Helper()
	if err := s.process.Process.Signal(which); err != nil {
		t.Fatal(err)
	}
}

// A server that hangs costs those who wait for it as long as an answer may take,
// and those who come later nothing.
func TestAServerThatHangsIsAskedNothingUntilItAnswers(t *testing.T) {
	server := start(t)
	const patience = 300 * time.Millisecond
	var events told
	s := openAt(t, server.url(), Options{Prefix: newPrefix(), NoFiles: true, Timeout: patience, DialTimeout: patience, Notify: events.take})
	ctx := context.Background()
	gather := func() error {
		_, err := s.Gather(ctx, store.GatherRequest{Scope: of("a"), Limit: 1 << 20, Session: "s"})
		return err
	}
	add(t, s, "s", "e")
	for round := range 2 {
		server.freeze(t)
		begun := time.Now()
		var first sync.WaitGroup
		for range 50 { // more than there are connections
			first.Go(func() {
				if gather() == nil {
					t.Error("it was answered by a server that stands still")
				}
			})
		}
		first.Wait()
		if took := time.Since(begun); took > 5*patience {
			t.Errorf("the first waited %v", took)
		}
		before := s.client.PoolStats()
		begun = time.Now()
		for range 1000 {
			if err := gather(); !errors.Is(err, errHangs) {
				t.Fatal(err)
			}
		}
		if after := s.client.PoolStats(); after.Timeouts != before.Timeouts {
			t.Error("some waited for a connection")
		}
		if took := time.Since(begun); took > 1000*patience/10 { // each would wait for all of it
			t.Errorf("a thousand later ones took %v", took)
		}
		server.thaw(t)
		eventually(t, "it is used again", func(context.Context) (bool, error) { return gather() == nil, nil })
		if got, want := fmt.Sprint(events.list()), fmt.Sprint([][]What{{Hangs, Answers}, {Hangs, Answers, Hangs, Answers}}[round]); got != want {
			t.Errorf("told were %s, want %s", got, want)
		}
	}
	add(t, s, "s", "e2")
}

// What one connection waits for in vain says nothing of the server.
func TestAConnectionThatIsDeadIsNoServerThatHangs(t *testing.T) {
	var swallow atomic.Bool
	ctx := t.Context()
	p := startProxy(t, sharedServer(t).addr(), func(command value, forward func() (value, error)) (value, error) {
		if command.name() == "HMGET" && swallow.CompareAndSwap(true, false) {
			<-ctx.Done() // as behind a firewall that has forgotten the connection
		}
		return forward()
	})
	var events told
	s := openAt(t, p.url(), Options{Prefix: newPrefix(), NoFiles: true, Timeout: 200 * time.Millisecond, Notify: events.take})
	add(t, s, "s", "e")
	swallow.Store(true)
	if _, err := s.Session(ctx, of("a"), "s"); err != nil {
		t.Errorf("it wasn't asked again on another connection: %v", err)
	}
	if got := events.list(); len(got) != 0 {
		t.Errorf("told was %v", got)
	}
	// A request that has little time left says nothing, either.
	swallow.Store(true)
	short, cancel := context.WithTimeout(ctx, 30*time.Millisecond)
	defer cancel()
	if _, err := s.Session(short, of("a"), "s"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	if s.client.Ping(ctx).Err() != nil || len(events.list()) != 0 {
		t.Errorf("told was %v", events.list())
	}
}

// How long an answer takes that is on its way is bounded by its size, not by the
// time to the next byte.
func TestALargeAnswerMayTakeLongerThanSilence(t *testing.T) {
	const patience = 200 * time.Millisecond
	p := startProxy(t, sharedServer(t).addr(), nil)
	s := openAt(t, p.url(), Options{Prefix: newPrefix(), NoFiles: true, Timeout: patience})
	ctx := context.Background()
	for i := range 500 {
		add(t, s, "s", fmt.Sprint("e", i))
	}
	slowly := func() (int, time.Duration) { return 64 << 10, patience / 8 }
	p.drip.Store(&slowly)
	list, err := s.Exchanges(ctx, of("a"), "s", 0, 500, store.Ascending) // 1 MB: 15 steps of 25 ms
	if err != nil || len(list) != 500 {
		t.Errorf("got %d, %v", len(list), err)
	}
}

// A server of a Cluster that hangs takes down what it has, and nothing else.
func TestAServerOfAClusterThatHangs(t *testing.T) {
	t.Parallel()
	members := startPrimaries(t, 3, time.Minute)
	awaitCluster(t, members)
	const patience = 300 * time.Millisecond
	s := openAt(t, "redis+cluster://"+members[0].addr(), Options{Prefix: newPrefix(), NoFiles: true, Timeout: patience, DialTimeout: patience})
	answered := func() (n int) {
		for i := range 90 {
			if _, err := s.Gather(context.Background(), store.GatherRequest{Scope: of(fmt.Sprint("t", i)), Limit: 1 << 20}); err == nil {
				n++
			}
		}
		return n
	}
	if n := answered(); n != 90 {
		t.Fatalf("%d of 90 were answered by all", n)
	}
	members[2].freeze(t)
	begun := time.Now()
	if n := answered(); n < 45 || n > 75 {
		t.Errorf("%d of 90 were answered by two of three", n)
	}
	// About thirty would wait that long each. As it is, go-redis tries again with
	// pauses, for there may be a failover.
	if took := time.Since(begun); took > 30*patience {
		t.Errorf("it took %v", took)
	}
	members[2].thaw(t)
	eventually(t, "all are answered", func(context.Context) (bool, error) { return answered() == 90, nil })
}
