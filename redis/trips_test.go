package redis

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/backstory-proxy/backstory/store"
)

// sample is an exchange of two messages, 1.9 KB.
func sample(id string) store.Exchange {
	text := fmt.Sprintf("%0900d", 0)
	return store.Exchange{ID: id, Model: "openai/gpt-5-mini", Finish: "stop", Created: time.Unix(1e9, 0), Messages: []store.Message{
		{JSON: []byte(`{"role":"user","content":"` + text + `"}`), Tokens: 200, Digest: store.Digest{1}},
		{JSON: []byte(`{"role":"assistant","content":"` + text + `"}`), Tokens: 200, Digest: store.Digest{2}},
	}}
}

func add(t testing.TB, s *Store, session, id string) {
	t.Helper()
	if _, err := s.Append(context.Background(), store.Append{Scope: of("a"), Session: session, Exchange: sample(id), Anyway: true}); err != nil {
		t.Fatal(err)
	}
}

func TestRoundTrips(t *testing.T) {
	swept := make(chan bool, 1)
	p := startProxy(t, sharedServer(t).addr(), func(command value, forward func() (value, error)) (value, error) {
		if command.name() == "ZRANGE" {
			swept <- true
		}
		return forward()
	})
	s := openAt(t, p.url(), Options{Prefix: newPrefix(), PoolSize: 1, unindexed: true})
	<-swept // once a store is opened, it looks for what others left undone
	ctx := context.Background()
	trips := func(want int64, what string, f func()) {
		t.Helper()
		before := p.turns.Load()
		f()
		if got := p.turns.Load() - before; got != want {
			t.Errorf("%s: %d round trips, want %d", what, got, want)
		}
	}
	gather := func(session string, tokens, want int) func() {
		return func() {
			t.Helper()
			g, err := s.Gather(ctx, store.GatherRequest{Scope: of("a"), Limit: 1000, Session: session, Tokens: tokens})
			if err != nil || len(g.Tail) != want {
				t.Errorf("got %d exchanges, %v; want %d", len(g.Tail), err, want)
			}
		}
	}
	trips(1, "gather of a new session", gather("s", 4000, 0))
	for i := range 40 {
		trips(1, "append", func() { add(t, s, "s", fmt.Sprint("e", i)) })
	}
	month := store.MonthOf(time.Now())
	trips(1, "append with usage", func() {
		_, err := s.Append(ctx, store.Append{Scope: of("used"), Session: "s", Exchange: sample("e"), Usage: store.Used{Month: month, Tokens: 5}, Anyway: true})
		if err != nil {
			t.Error(err)
		}
	})
	trips(1, "use alone", func() { _ = s.AddUsage(ctx, of("used"), store.Used{Month: month, Tokens: 2}) })
	trips(1, "gather with usage", func() {
		g, err := s.Gather(ctx, store.GatherRequest{Scope: of("used"), Limit: 1000, Session: "s", Month: month})
		if err != nil || g.Used != 7 {
			t.Errorf("got %d, %v", g.Used, err)
		}
	})
	trips(1, "gather without a session", gather("", 4000, 0))
	trips(1, "gather of 20 messages", gather("s", 3200, 10))
	trips(1, "gather of all", gather("s", 1e9, 40))
	trips(1, "take", func() { _, _ = s.Take(ctx, "a", 1000) })
	trips(2, "append that is rebased", func() {
		a := store.Append{Scope: of("a"), Session: "s", Exchange: sample("late"), Mark: store.Mark{Seq: 39}}
		var c *store.Conflict
		if _, err := s.Append(ctx, a); !errors.As(err, &c) {
			t.Fatal(err)
		}
		a.Seen = c.Seq
		if _, err := s.Append(ctx, a); err != nil {
			t.Error(err)
		}
	})
	save := func(session string, tokens int, id string, replaces int64) {
		e := store.Exchange{ID: id, Messages: []store.Message{{JSON: []byte("{}"), Tokens: tokens}}}
		if _, err := s.Append(ctx, store.Append{Scope: of("a"), Session: session, Exchange: e, Replaces: replaces, Anyway: true}); err != nil {
			t.Fatal(err)
		}
	}
	// Short exchanges after a long one: the mean promises more tokens than come.
	save("uneven", 4000, "long", 0)
	for i := range 39 {
		save("uneven", 1, fmt.Sprint("short", i), 0)
	}
	trips(1, "gather of a session whose exchanges became short", gather("uneven", 35, 37))
	// What was replaced counts in the offsets, and isn't there to be read.
	for i := range 300 {
		save("replaced", 1, fmt.Sprint("first", i), 0)
	}
	save("replaced", 4000, "long", 0)
	for i := range 20 {
		save("replaced", 1, fmt.Sprint("second", i), 0)
	}
	trips(1, "append that replaces", func() { save("replaced", 1, "last", 301) })
	trips(2, "gather across an exchange that was replaced", gather("replaced", 200, 202))
	if err := sharedServer(t).client(t).ScriptFlush(ctx).Err(); err != nil {
		t.Fatal(err)
	}
	trips(2, "gather after the server forgot its scripts", gather("s", 800, 4))
	trips(1, "and the next", gather("s", 800, 4))
	trips(3, "append after the server forgot that script, and a look", func() {
		_, err := s.Append(ctx, store.Append{Scope: of("used"), Session: "s", Exchange: sample("again"), Usage: store.Used{Month: month, Tokens: 5}, Anyway: true})
		if used, _ := s.client.Get(ctx, s.layout.usage(of("used"), month)).Int(); err != nil || used != 12 {
			t.Errorf("used %d, %v", used, err)
		}
	})
	trips(1, "and the next", func() { add(t, s, "s", "and again") })
}
