package sqlite

import (
	"context"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/backstory-proxy/backstory/store"
)

func TestSessionsWhoseTimeIsUpFreeTheirStorage(t *testing.T) {
	var ahead atomic.Int64
	now := func() time.Time { return time.Unix(1_800_000_000, 0).Add(time.Duration(ahead.Load())) }
	s := openAt(t, filepath.Join(t.TempDir(), "b.db"), Options{Now: now})
	for i := range 2*sweepBatch + 3 {
		if err := save(s, fmt.Sprint("s", i), store.Append{Exchange: sample("e"), TTL: time.Hour, Anyway: true}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 2*purgeBatch + 3 {
		if err := save(s, "long", store.Append{Exchange: sample(fmt.Sprint("e", i)), TTL: time.Minute, Anyway: true}); err != nil {
			t.Fatal(err)
		}
	}
	if err := save(s, "kept", store.Append{Exchange: sample("e"), Anyway: true}); err != nil {
		t.Fatal(err)
	}
	ahead.Store(int64(time.Hour))
	// One is begun anew before the sweep comes.
	if err := save(s, "s0", store.Append{Exchange: sample("e"), TTL: time.Hour, Anyway: true}); err != nil {
		t.Fatal(err)
	}
	if err := s.sweepOnce(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, table := range []string{"sessions", "exchanges", "bodies"} {
		var n int
		if err := s.row(context.Background(), `SELECT count(*) FROM `+table).Scan(&n); err != nil || n != 2 {
			t.Errorf("%s has %d rows, %v; want 2", table, n, err)
		}
	}
}

func TestASessionBegunAnewAfterTheSweepHoldsNothingOfTheOldOne(t *testing.T) {
	var ahead atomic.Int64
	now := func() time.Time { return time.Unix(1_800_000_000, 0).Add(time.Duration(ahead.Load())) }
	s := openAt(t, filepath.Join(t.TempDir(), "b.db"), Options{Now: now})
	gather := func() store.Gathered {
		t.Helper()
		g, err := s.Gather(t.Context(), store.GatherRequest{Scope: of("a"), Limit: 1000, Session: "s", Tokens: 1000})
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	for _, id := range []string{"e1", "e2"} {
		if err := save(s, "s", store.Append{Exchange: sample(id), TTL: time.Hour, Anyway: true}); err != nil {
			t.Fatal(err)
		}
	}
	mark := gather().Mark // of a request whose reply takes long; and it is in the cache
	ahead.Store(int64(2 * time.Hour))
	if got, err := s.ExchangesAt(t.Context(), of("a"), "s", []int64{1, 2}); err != nil || len(got) != 0 {
		t.Errorf("got %d exchanges, %v", len(got), err)
	}
	if err := s.sweepOnce(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := save(s, "s", store.Append{Exchange: sample("e3"), TTL: time.Hour, Mark: mark}); err != nil {
		t.Fatal(err)
	}
	if g := gather(); len(g.Tail) != 1 || g.Tail[0].ID != "e3" || g.Mark.Seq != 1 {
		t.Errorf("%d exchanges, the first is %s; %+v", len(g.Tail), g.Tail[0].ID, g.Mark)
	}
}
