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
		if err := save(s, fmt.Sprint("s", i), store.Append{Exchange: sample("e"), TTL: time.Hour}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 2*purgeBatch + 3 {
		if err := save(s, "long", store.Append{Exchange: sample(fmt.Sprint("e", i)), TTL: time.Minute}); err != nil {
			t.Fatal(err)
		}
	}
	if err := save(s, "kept", store.Append{Exchange: sample("e")}); err != nil {
		t.Fatal(err)
	}
	ahead.Store(int64(time.Hour))
	// One is begun anew before the sweep comes.
	if err := save(s, "s0", store.Append{Exchange: sample("e"), TTL: time.Hour}); err != nil {
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
