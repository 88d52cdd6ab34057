package redis

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/backstory-proxy/backstory/store"
)

func TestSessionsWhoseTimeIsUpFreeTheirStorage(t *testing.T) {
	clock := &hands{now: time.Now()}
	s := openAt(t, sharedServer(t).url(), Options{Prefix: newPrefix(), Now: clock.read, unindexed: true})
	keys := func() (n int) {
		t.Helper()
		all, err := s.client.Keys(t.Context(), s.layout.prefix+"*").Result()
		if err != nil {
			t.Fatal(err)
		}
		return len(all)
	}
	keep := func(session string, ttl time.Duration) {
		t.Helper()
		if _, err := s.Append(t.Context(), store.Append{Scope: of("a"), Session: session, Exchange: sample("e"), TTL: ttl, Anyway: true}); err != nil {
			t.Fatal(err)
		}
	}
	keep("kept", 0)
	before := keys()
	for i := range 8 {
		keep(fmt.Sprint("s", i), time.Millisecond)
	}
	for deadline := time.Now().Add(20 * time.Second); keys() != before+1; { // the list of those that end
		if time.Now().After(deadline) {
			t.Fatalf("%d keys, want %d", keys(), before+1)
		}
	}
	clock.advance(2 * settled)
	keep("last", time.Hour)
	names, err := s.client.ZRange(t.Context(), s.layout.tenant(sessionsKey, of("a")), 0, -1).Result()
	if err != nil || fmt.Sprint(names) != "[kept last]" {
		t.Errorf("listed are %v, %v", names, err)
	}
	if ends, err := s.client.ZRange(t.Context(), s.layout.tenant(expiringKey, of("a")), 0, -1).Result(); err != nil || fmt.Sprint(ends) != "[last]" {
		t.Errorf("ending are %v, %v", ends, err)
	}
}

// The names of sessions whose time is up go by themselves, too.
func TestTheNamesOfSessionsWhoseTimeIsUpGo(t *testing.T) {
	clock := &hands{now: time.Now()}
	s := openAt(t, sharedServer(t).url(), Options{Prefix: newPrefix(), Now: clock.read, unindexed: true})
	for i := range 250 {
		a := store.Append{Scope: of("a"), Session: fmt.Sprint("s", i), Exchange: sample("e"), TTL: time.Millisecond, Anyway: true}
		if _, err := s.Append(t.Context(), a); err != nil {
			t.Fatal(err)
		}
	}
	clock.advance(2 * settled)
	if err := s.unlistEnded(t.Context()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "nothing is left", func(context.Context) (bool, error) { return len(dump(t, s)) == 0, nil })
}
