package redis

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/backstory-proxy/backstory/store"
)

// Where the replicas are gone, few wait for them to find that out, and nobody
// else for those.
func TestWithoutReplicasTheServiceGoesOn(t *testing.T) {
	t.Parallel()
	primary := start(t)
	replica := start(t, "--replicaof", "127.0.0.1", strconv.Itoa(primary.port))
	var waits atomic.Int64
	p := startProxy(t, primary.addr(), func(command value, forward func() (value, error)) (value, error) {
		if command.name() == "WAIT" {
			waits.Add(1)
		}
		return forward()
	})
	const pool = 4
	s := openAt(t, p.url(), Options{Prefix: newPrefix(), NoFiles: true, PoolSize: pool, WaitReplicas: 1, WaitTimeout: 500 * time.Millisecond})
	ctx := context.Background()
	save := func(session, id string) error {
		_, err := s.Append(ctx, store.Append{Scope: of("a"), Session: session, Exchange: sample(id), Anyway: true})
		return err
	}
	eventually(t, "the replica confirms", func(context.Context) (bool, error) { return save("s", "first") == nil, nil })
	replica.stop()
	eventually(t, "the primary has noticed", func(ctx context.Context) (bool, error) {
		n, err := primary.client(t).Do(ctx, "WAIT", 1, 1).Int()
		return n == 0, err
	})
	waits.Store(0)
	var all sync.WaitGroup
	for i := range 20 * pool {
		all.Go(func() {
			if err := save(fmt.Sprint("s", i), "e"); !errors.Is(err, store.ErrUnconfirmed) {
				t.Errorf("saved, with nobody to confirm it: %v", err)
			}
		})
		all.Go(func() { // beside them
			if _, err := s.Gather(ctx, store.GatherRequest{Scope: of("a"), Limit: 1 << 20, Session: "s"}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if n := waits.Load(); n > pool {
		t.Errorf("%d of %d waited for replicas", n, 20*pool)
	}
	for i := range 20 * pool {
		if list, err := s.Exchanges(ctx, of("a"), fmt.Sprint("s", i), 0, 9, store.Ascending); err != nil || len(list) != 1 {
			t.Errorf("session %d has %d exchanges, %v", i, len(list), err)
		}
	}
	// What isn't saved isn't unconfirmed.
	var conflict *store.Conflict
	if _, err := s.Append(ctx, store.Append{Scope: of("a"), Session: "s", Exchange: sample("late")}); !errors.As(err, &conflict) {
		t.Errorf("an append behind another: %v", err)
	}
	if err := s.DeleteSession(ctx, of("a"), "s"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Append(ctx, store.Append{Scope: of("a"), Session: "s", Exchange: sample("late")}); !errors.Is(err, store.ErrDeleted) {
		t.Errorf("an append to a deleted session: %v", err)
	}
	start(t, "--replicaof", "127.0.0.1", strconv.Itoa(primary.port))
	eventually(t, "a replica confirms again, also what was unconfirmed", func(context.Context) (bool, error) {
		err := save("s0", "e")
		return err == nil, err
	})
	if err := save("s1", "e2"); err != nil {
		t.Error(err)
	}
}
