package storetest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/backstory-proxy/backstory/store"
)

// brief is a time to live that a test waits for the end of.
func (f *fixture) brief() time.Duration {
	if f.backend.ServerClock {
		return 100 * time.Millisecond
	}
	return time.Hour
}

// expire waits until the time of a session with the brief TTL is up.
func (f *fixture) expire(tenant, session string) {
	f.Helper()
	f.clock.advance(f.brief())
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); <-tick.C {
		_, err := f.Session(context.Background(), of(tenant), session)
		if errors.Is(err, store.ErrNotFound) {
			return
		}
		f.ok(err)
		if !f.backend.ServerClock {
			break
		}
	}
	f.Fatalf("session %s is still there", session)
}

// keep appends an exchange at the session's end, with a time to live.
func (f *fixture) keep(tenant, session string, e store.Exchange, ttl time.Duration) {
	f.Helper()
	f.clock.advance(time.Millisecond)
	_, err := f.Append(context.Background(), store.Append{
		Scope: of(tenant), Session: session, Exchange: e, TTL: ttl, Mark: f.gather(tenant, session, 0, 0).Mark,
	})
	f.ok(err)
}

func testExpiry(t *testing.T, b Backend) {
	ctx := context.Background()
	b.each(t, map[string]func(*fixture){
		"a session that isn't updated for its time to live is gone": func(f *fixture) {
			f.save("a", "kept", turn("k1"))
			f.keep("a", "s", turn("e1"), f.brief())
			f.all("a", "s")
			f.expire("a", "s")
			if g := f.all("a", "s"); len(g.Tail) != 0 || g.Tokens != 0 || g.Mark.Seq != 0 {
				f.Errorf("got %s, %d tokens, %+v", ids(g.Tail), g.Tokens, g.Mark)
			}
			if _, err := f.Exchanges(ctx, of("a"), "s", 0, 10, store.Ascending); !errors.Is(err, store.ErrNotFound) {
				f.Errorf("Exchanges: %v", err)
			}
			if _, err := f.ListSessions(ctx, of("a"), "s", 10); !errors.Is(err, store.ErrNotFound) {
				f.Errorf("ListSessions after it: %v", err)
			}
			list, err := f.ListSessions(ctx, of("a"), "", 10)
			if err != nil || len(list) != 1 || list[0].ID != "kept" || list[0].TTL != 0 {
				f.Errorf("got %+v, %v", list, err)
			}
			if ids(f.all("a", "kept").Tail) != "k1" {
				f.Error("another session went with it")
			}
		},
		"it can be begun anew": func(f *fixture) {
			f.keep("a", "s", turn("e1"), f.brief())
			f.expire("a", "s")
			f.keep("a", "s", turn("e1"), time.Hour)
			f.save("a", "s", turn("e2"))
			g := f.all("a", "s")
			d, err := f.Session(ctx, of("a"), "s")
			if ids(g.Tail) != "e1 e2" || g.Tokens != 40 || err != nil || d.Messages != 4 || d.Tokens != 40 {
				f.Errorf("got %s, %d tokens; %+v, %v", ids(g.Tail), g.Tokens, d, err)
			}
		},
		"each append sets the time to live anew": func(f *fixture) {
			f.keep("a", "longer", turn("e1"), f.brief())
			f.keep("a", "longer", turn("e2"), 1000*time.Hour)
			f.keep("a", "kept", turn("e1"), f.brief())
			f.save("a", "kept", turn("e2"))
			f.keep("a", "s", turn("e1"), 1000*time.Hour)
			f.keep("a", "s", turn("e2"), f.brief())
			f.expire("a", "s")
			for session, ttl := range map[string]time.Duration{"longer": 1000 * time.Hour, "kept": 0} {
				d, err := f.Session(ctx, of("a"), session)
				if err != nil || d.TTL != ttl || len(f.all("a", session).Tail) != 2 {
					f.Errorf("%s: got %+v, %v", session, d, err)
				}
			}
		},
		"a request that began before it was gone begins it anew": func(f *fixture) {
			f.keep("a", "s", turn("e1"), f.brief())
			f.keep("a", "s", turn("e2"), f.brief())
			mark := f.all("a", "s").Mark
			f.expire("a", "s")
			for _, id := range []string{"e3", "e4"} {
				_, err := f.Append(ctx, store.Append{Scope: of("a"), Session: "s", Exchange: turn(id), Mark: mark, Anyway: true, TTL: time.Hour})
				f.ok(err)
			}
			if got := ids(f.all("a", "s").Tail); got != "e3 e4" {
				f.Errorf("got %s", got)
			}
		},
		"a deletion voids appends all the same": func(f *fixture) {
			f.keep("a", "s", turn("e1"), time.Hour)
			mark := f.all("a", "s").Mark
			f.ok(f.DeleteSession(ctx, of("a"), "s"))
			_, err := f.Append(ctx, store.Append{Scope: of("a"), Session: "s", Exchange: turn("e2"), Mark: mark, TTL: time.Hour})
			if !errors.Is(err, store.ErrDeleted) {
				f.Errorf("got %v", err)
			}
		},
		"what is gone can't be deleted": func(f *fixture) {
			f.keep("a", "s", turn("e1"), f.brief())
			f.expire("a", "s")
			if err := f.DeleteSession(ctx, of("a"), "s"); !errors.Is(err, store.ErrNotFound) {
				f.Errorf("got %v", err)
			}
		},
		"the time to live outlives a restart": func(f *fixture) {
			f.keep("a", "long", turn("e1"), 1000*time.Hour)
			f.keep("a", "s", turn("e1"), f.brief())
			f.reopen()
			f.expire("a", "s")
			if got := ids(f.all("a", "long").Tail) + ids(f.all("a", "s").Tail); got != "e1" {
				f.Errorf("got %s", got)
			}
		},
	})
}

func testExpiryOfImports(t *testing.T, b Backend) {
	ctx := context.Background()
	b.each(t, map[string]func(*fixture){
		"each import sets the time to live anew": func(f *fixture) {
			f.keep("a", "longer", turn("e1"), f.brief())
			_, err := f.Import(ctx, store.Import{Scope: of("a"), Session: "longer", Exchanges: []store.Exchange{turn("i1")}, TTL: 1000 * time.Hour})
			f.ok(err)
			f.keep("a", "s", turn("e1"), 1000*time.Hour)
			_, err = f.Import(ctx, store.Import{Scope: of("a"), Session: "s", Exchanges: []store.Exchange{turn("i1")}, TTL: f.brief()})
			f.ok(err)
			f.expire("a", "s")
			d, err := f.Session(ctx, of("a"), "longer")
			if err != nil || d.TTL != 1000*time.Hour || ids(f.all("a", "longer").Tail) != "e1 i1" {
				f.Errorf("got %+v, %v", d, err)
			}
		},
	})
}
