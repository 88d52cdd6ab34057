package storetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/backstory-proxy/backstory/store"
)

func testAppend(t *testing.T, b Backend) {
	ctx := context.Background()
	b.each(t, map[string]func(*fixture){
		"appending the same ID again changes nothing": func(f *fixture) {
			f.save("a", "s", turn("e1"))
			mark := f.all("a", "s").Mark
			first := f.save("a", "s", turn("e2"))
			f.save("a", "s", turn("e3"))
			again := exchange("e2", 100)
			seq, err := f.Append(ctx, store.Append{
				Scope: of("a"), Session: "s", Exchange: again, Mark: mark, Replaces: mark.Seq,
			})
			if err != nil || seq != first {
				f.Fatalf("got %d, %v; want %d", seq, err, first)
			}
			g := f.all("a", "s")
			if ids(g.Tail) != "e1 e2 e3" || g.Tokens != 60 || len(g.Tail[1].Messages) != 2 {
				f.Fatalf("got %s, %d tokens", ids(g.Tail), g.Tokens)
			}
		},
		"the same ID in another session is another exchange": func(f *fixture) {
			f.save("a", "s", turn("e1"))
			f.save("a", "t", turn("e1"))
			f.save("b", "s", turn("e1"))
			for _, at := range [][2]string{{"a", "s"}, {"a", "t"}, {"b", "s"}} {
				if got := ids(f.all(at[0], at[1]).Tail); got != "e1" {
					f.Errorf("%v: got %q", at, got)
				}
			}
		},
		"an append goes to the end anyway, if it is told to": func(f *fixture) {
			f.save("a", "s", turn("e1"))
			mark := f.all("a", "s").Mark
			f.save("a", "s", turn("e2"))
			_, err := f.Append(ctx, store.Append{Scope: of("a"), Session: "s", Exchange: turn("e3"), Mark: mark, Anyway: true})
			f.ok(err)
			if got := ids(f.all("a", "s").Tail); got != "e1 e2 e3" {
				f.Fatalf("got %s", got)
			}
		},
		"an exchange replaces another": func(f *fixture) {
			f.save("a", "s", turn("e1"))
			old := f.save("a", "s", exchange("e2", 7, 8, 9))
			f.save("a", "s", turn("e3"))
			g := f.all("a", "s")
			seq, err := f.Append(ctx, store.Append{Scope: of("a"), Session: "s", Exchange: exchange("e4", 5), Mark: g.Mark, Replaces: old})
			f.ok(err)
			if seq <= g.Mark.Seq {
				f.Errorf("Seq %d after %d", seq, g.Mark.Seq)
			}
			g = f.all("a", "s")
			if ids(g.Tail) != "e1 e3 e4" || g.Tokens != 69 || g.Tail[2].Offset != 64 {
				f.Errorf("got %s, %d tokens ever, the new one at %d", ids(g.Tail), g.Tokens, g.Tail[2].Offset)
			}
			d, err := f.Session(ctx, of("a"), "s")
			if err != nil || d.Messages != 5 || d.Tokens != 45 {
				f.Errorf("got %+v, %v; want 5 messages of 45 tokens", d, err)
			}
		},
		"to replace what isn't there is no error": func(f *fixture) {
			other := f.save("a", "other", turn("o1"))
			f.save("a", "other", turn("o2"))
			f.save("a", "s", turn("e1"))
			for i, seq := range []int64{99, -1, 1 << 40, -(1 << 32) + other} {
				_, err := f.Append(ctx, store.Append{
					Scope: of("a"), Session: "s", Exchange: turn(fmt.Sprint("n", i)), Mark: f.all("a", "s").Mark, Replaces: seq,
				})
				f.ok(err)
			}
			if got := ids(f.all("a", "s").Tail) + " / " + ids(f.all("a", "other").Tail); got != "e1 n0 n1 n2 n3 / o1 o2" {
				f.Fatalf("got %s", got)
			}
		},
		"an append is seen by every gather that begins after it": func(f *fixture) {
			var all sync.WaitGroup
			for worker := range 8 {
				all.Go(func() {
					session := fmt.Sprint("s", worker%4)
					for i := range 10 {
						id := fmt.Sprintf("w%d-%d", worker, i)
						if _, err := f.Append(ctx, store.Append{Scope: of("a"), Session: session, Exchange: turn(id), Anyway: true}); err != nil {
							f.Error(err)
							return
						}
						found := false
						g, err := f.Gather(ctx, store.GatherRequest{Scope: of("a"), Limit: generous, Session: session, Tokens: generous, Messages: generous})
						for _, e := range g.Tail {
							found = found || e.ID == id
						}
						if !found || err != nil {
							f.Errorf("%s isn't there: %v", id, err)
						}
					}
				})
			}
			all.Wait()
		},
		"a session without a name is refused": func(f *fixture) {
			if _, err := f.Append(ctx, store.Append{Scope: of("a"), Exchange: turn("e1"), Anyway: true}); err == nil {
				f.Fatal("it was accepted")
			}
		},
		"appends outlive a restart": func(f *fixture) {
			for i := range 5 {
				f.save("a", "s", turn(fmt.Sprint("e", i)))
			}
			before := f.all("a", "s")
			f.reopen()
			after := f.all("a", "s")
			if ids(after.Tail) != ids(before.Tail) || after.Mark != before.Mark || after.Tokens != before.Tokens {
				f.Fatalf("got %s, %+v, %d; want %s, %+v, %d", ids(after.Tail), after.Mark, after.Tokens, ids(before.Tail), before.Mark, before.Tokens)
			}
			if seq := f.save("a", "s", turn("e5")); seq <= before.Mark.Seq {
				f.Fatalf("Seq %d after %d", seq, before.Mark.Seq)
			}
		},
	})
}

func testConflict(t *testing.T, b Backend) {
	ctx := context.Background()
	b.each(t, map[string]func(*fixture){
		"an append tells exactly what is newer, and saves nothing": func(f *fixture) {
			f.save("a", "s", turn("e1"))
			mark := f.all("a", "s").Mark
			hidden := turn("e2")
			hidden.Hidden = true
			f.save("a", "s", hidden)
			last := f.save("a", "s", exchange("e3", 1, 2))
			c := f.conflict(store.Append{Scope: of("a"), Session: "s", Exchange: turn("e4"), Mark: mark})
			if c.Seq != last || ids(c.Newer) != "e2 e3" || !c.Newer[0].Hidden || c.Newer[1].Offset != 40 || c.Newer[1].Tokens() != 3 {
				f.Errorf("got %d, %+v", c.Seq, c.Newer)
			}
			if got := ids(f.all("a", "s").Tail); got != "e1 e2 e3" {
				f.Errorf("the session holds %s", got)
			}
		},
		"who has seen it appends behind it": func(f *fixture) {
			f.save("a", "s", turn("e1"))
			a := store.Append{Scope: of("a"), Session: "s", Exchange: turn("e3"), Mark: f.all("a", "s").Mark}
			f.save("a", "s", turn("e2"))
			a.Seen = f.conflict(a).Seq
			a.Exchange = exchange("e3", 5)
			seq, err := f.Append(ctx, a)
			f.ok(err)
			g := f.all("a", "s")
			if ids(g.Tail) != "e1 e2 e3" || g.Tokens != 45 || g.Tail[2].Seq != seq || g.Tail[2].Offset != 40 {
				f.Fatalf("got %s, %d tokens", ids(g.Tail), g.Tokens)
			}
		},
		"a second conflict tells all that is newer as it is then": func(f *fixture) {
			f.save("a", "s", turn("e1"))
			a := store.Append{Scope: of("a"), Session: "s", Exchange: turn("e5"), Mark: f.all("a", "s").Mark}
			replaced := f.save("a", "s", turn("e2"))
			a.Seen = f.conflict(a).Seq
			_, err := f.Append(ctx, store.Append{Scope: of("a"), Session: "s", Exchange: turn("e3"), Mark: f.all("a", "s").Mark, Replaces: replaced})
			f.ok(err)
			f.save("a", "s", turn("e4"))
			if c := f.conflict(a); ids(c.Newer) != "e3 e4" {
				f.Errorf("got %s", ids(c.Newer))
			}
		},
		"it may replace what is newer": func(f *fixture) {
			f.save("a", "s", turn("e1"))
			a := store.Append{Scope: of("a"), Session: "s", Exchange: turn("e3"), Mark: f.all("a", "s").Mark}
			f.save("a", "s", turn("e2"))
			c := f.conflict(a)
			a.Seen, a.Replaces = c.Seq, c.Newer[0].Seq
			_, err := f.Append(ctx, a)
			f.ok(err)
			if got := ids(f.all("a", "s").Tail); got != "e1 e3" {
				f.Fatalf("got %s", got)
			}
		},
		"a store that has lost what was seen replaces nothing": func(f *fixture) {
			f.save("a", "s", turn("e1"))
			g := f.all("a", "s")
			_, err := f.Append(ctx, store.Append{
				Scope: of("a"), Session: "s", Exchange: turn("e3"), Mark: g.Mark, Seen: g.Mark.Seq + 1, Replaces: g.Mark.Seq,
			})
			f.ok(err)
			if got := ids(f.all("a", "s").Tail); got != "e1 e3" {
				f.Fatalf("got %s", got)
			}
		},
		"an exchange that is there already is no conflict": func(f *fixture) {
			f.save("a", "s", turn("e1"))
			mark := f.all("a", "s").Mark
			f.save("a", "s", turn("e2"))
			f.save("a", "s", turn("e3"))
			_, err := f.Append(ctx, store.Append{Scope: of("a"), Session: "s", Exchange: turn("e2"), Mark: mark})
			f.ok(err)
		},
		"a session deleted after a conflict voids the append": func(f *fixture) {
			f.save("a", "s", turn("e1"))
			a := store.Append{Scope: of("a"), Session: "s", Exchange: turn("e3"), Mark: f.all("a", "s").Mark}
			f.save("a", "s", turn("e2"))
			a.Seen = f.conflict(a).Seq
			f.ok(f.DeleteSession(ctx, of("a"), "s"))
			if _, err := f.Append(ctx, a); !errors.Is(err, store.ErrDeleted) {
				f.Errorf("got %v", err)
			}
		},
		"appends at once: nothing is lost, and nothing comes between": testConcurrentAppends,
	})
}

// conflict is that of an append which must have one.
func (f *fixture) conflict(a store.Append) *store.Conflict {
	f.Helper()
	_, err := f.Append(context.Background(), a)
	var c *store.Conflict
	if !errors.As(err, &c) {
		f.Fatalf("got %v, want a conflict", err)
	}
	return c
}

// testConcurrentAppends has many requests save into one session at once. Each
// one must have been shown exactly what stands between its mark and itself in
// the end.
func testConcurrentAppends(f *fixture) {
	const requests = 50
	ctx := context.Background()
	f.save("a", "s", turn("first"))
	var mu sync.Mutex
	shown := make(map[string]string) // by ID: what the last conflict told
	marks := make(map[string]int64)
	var all sync.WaitGroup
	for i := range requests {
		all.Go(func() {
			id := fmt.Sprint("r", i)
			g, err := f.Gather(ctx, store.GatherRequest{Scope: of("a"), Limit: generous, Session: "s"})
			if err != nil {
				f.Error(err)
				return
			}
			mu.Lock()
			marks[id] = g.Mark.Seq
			mu.Unlock()
			a := store.Append{Scope: of("a"), Session: "s", Exchange: turn(id), Mark: g.Mark}
			_, err = f.Append(ctx, a)
			// One succeeds whenever others don't.
			for c := (*store.Conflict)(nil); errors.As(err, &c); {
				mu.Lock()
				shown[id] = ids(c.Newer)
				mu.Unlock()
				a.Seen = c.Seq
				_, err = f.Append(ctx, a)
			}
			if err != nil {
				f.Error(err)
			}
		})
	}
	all.Wait()
	tail := f.all("a", "s").Tail
	if len(tail) != requests+1 {
		f.Fatalf("%d exchanges, want %d", len(tail), requests+1)
	}
	for i, e := range tail {
		if e.Offset != int64(20*i) || i > 0 && e.Seq <= tail[i-1].Seq {
			f.Errorf("%s has Seq %d and Offset %d at place %d", e.ID, e.Seq, e.Offset, i)
		}
		if i == 0 {
			continue
		}
		from := 0
		for tail[from].Seq <= marks[e.ID] {
			from++
		}
		if want := ids(tail[from:i]); shown[e.ID] != want {
			f.Errorf("%s was shown %q, want %q", e.ID, shown[e.ID], want)
		}
	}
}

func testDeletion(t *testing.T, b Backend) {
	ctx := context.Background()
	// late appends for a request that began with the given mark.
	late := func(f *fixture, session string, mark store.Mark) error {
		_, err := f.Append(ctx, store.Append{Scope: of("a"), Session: session, Exchange: turn("late"), Mark: mark})
		return err
	}
	voided := func(f *fixture, err error) {
		f.Helper()
		if !errors.Is(err, store.ErrDeleted) {
			f.Errorf("the late append returned %v, want ErrDeleted", err)
		}
	}
	b.each(t, map[string]func(*fixture){
		"a deleted session is gone": func(f *fixture) {
			f.save("a", "s", turn("e1"))
			f.save("a", "t", turn("e1"))
			f.save("b", "s", turn("e1"))
			f.ok(f.DeleteSession(ctx, of("a"), "s"))
			g := f.all("a", "s")
			if len(g.Tail) != 0 || g.Tokens != 0 || g.Mark.Seq != 0 {
				f.Errorf("got %+v", g)
			}
			if _, err := f.Session(ctx, of("a"), "s"); !errors.Is(err, store.ErrNotFound) {
				f.Errorf("got %v", err)
			}
			if _, err := f.Exchanges(ctx, of("a"), "s", 0, 10, store.Ascending); !errors.Is(err, store.ErrNotFound) {
				f.Errorf("got %v", err)
			}
			if ids(f.all("a", "t").Tail) != "e1" || ids(f.all("b", "s").Tail) != "e1" {
				f.Error("another session went with it")
			}
		},
		"a session that isn't there is not found": func(f *fixture) {
			f.save("b", "s", turn("e1"))
			for _, session := range []string{"s", ""} {
				if err := f.DeleteSession(ctx, of("a"), session); !errors.Is(err, store.ErrNotFound) {
					f.Errorf("%q: got %v", session, err)
				}
			}
		},
		"it voids the appends of requests that began before": func(f *fixture) {
			f.save("a", "s", turn("e1"))
			mark := f.all("a", "s").Mark
			f.ok(f.DeleteSession(ctx, of("a"), "s"))
			voided(f, late(f, "s", mark))
			if got := f.all("a", "s").Tail; len(got) != 0 {
				f.Errorf("got %s", ids(got))
			}
		},
		"it voids them after the session was made anew": func(f *fixture) {
			f.save("a", "s", turn("e1"))
			mark := f.all("a", "s").Mark
			f.ok(f.DeleteSession(ctx, of("a"), "s"))
			f.save("a", "s", turn("e2"))
			f.save("a", "s", turn("e3"))
			voided(f, late(f, "s", mark))
			if g := f.all("a", "s"); ids(g.Tail) != "e2 e3" || g.Tail[0].Offset != 0 || g.Tokens != 40 {
				f.Errorf("got %s, %+v", ids(g.Tail), g)
			}
		},
		"it voids them for a session that wasn't there either time": func(f *fixture) {
			for _, known := range []bool{false, true} { // whether the store knows the tenant
				if known {
					f.save("a", "other", turn("e1"))
				}
				mark := f.all("a", "s").Mark
				if err := f.DeleteSession(ctx, of("a"), "s"); !errors.Is(err, store.ErrNotFound) {
					f.Fatalf("got %v", err)
				}
				voided(f, late(f, "s", mark))
				if err := late(f, "s"+fmt.Sprint(known), f.all("a", "s"+fmt.Sprint(known)).Mark); err != nil {
					f.Errorf("another session's append returned %v", err)
				}
			}
		},
		"it voids no others": func(f *fixture) {
			f.save("a", "s", turn("e1"))
			f.save("a", "t", turn("e1"))
			marks := map[string]store.Mark{"t": f.all("a", "t").Mark, "new": f.all("a", "new").Mark}
			f.ok(f.DeleteSession(ctx, of("a"), "s"))
			marks["s"] = f.all("a", "s").Mark // began after
			for session, mark := range marks {
				if err := late(f, session, mark); err != nil {
					f.Errorf("session %s: %v", session, err)
				}
			}
		},
		"each deletion voids": func(f *fixture) {
			for i := range 3 {
				f.save("a", "s", turn(fmt.Sprint("e", i)))
				mark := f.all("a", "s").Mark
				f.ok(f.DeleteSession(ctx, of("a"), "s"))
				voided(f, late(f, "s", mark))
			}
		},
		"a voided append is no conflict": func(f *fixture) {
			f.save("a", "s", turn("e1"))
			mark := f.all("a", "s").Mark
			f.ok(f.DeleteSession(ctx, of("a"), "s"))
			f.save("a", "s", turn("e2"))
			_, err := f.Append(ctx, store.Append{
				Scope: of("a"), Session: "s", Exchange: turn("late"), Mark: mark,
			})
			voided(f, err)
		},
		"a long session goes too, and its ID can be used again at once": func(f *fixture) {
			const n = 300
			for i := range n {
				_, err := f.Append(ctx, store.Append{Scope: of("a"), Session: "s", Exchange: turn(fmt.Sprint("e", i)), Anyway: true})
				f.ok(err)
			}
			f.ok(f.DeleteSession(ctx, of("a"), "s"))
			f.save("a", "s", turn("e0"))
			if g := f.all("a", "s"); ids(g.Tail) != "e0" || g.Tokens != 20 {
				f.Fatalf("got %s, %d tokens", ids(g.Tail), g.Tokens)
			}
		},
		"what a store has lost was not deleted": func(f *fixture) {
			f.save("a", "s", turn("e1"))
			g := f.all("a", "s")
			seen := store.Mark{Seq: g.Mark.Seq + 3, Epoch: g.Mark.Epoch} // of a primary that is no more
			_, err := f.Append(ctx, store.Append{
				Scope: of("a"), Session: "s", Exchange: turn("e5"), Mark: seen, Replaces: g.Mark.Seq,
			})
			f.ok(err)
			f.ok(late(f, "gone", seen))
			if got, gone := ids(f.all("a", "s").Tail), ids(f.all("a", "gone").Tail); got != "e1 e5" || gone != "late" {
				f.Errorf("got %s and %s", got, gone)
			}
			f.ok(f.DeleteSession(ctx, of("a"), "s"))
			voided(f, late(f, "s", seen))
		},
		"deletions outlive a restart": func(f *fixture) {
			f.save("a", "s", turn("e1"))
			mark, none := f.all("a", "s").Mark, f.all("a", "none").Mark
			f.ok(f.DeleteSession(ctx, of("a"), "s"))
			_ = f.DeleteSession(ctx, of("a"), "none")
			f.reopen()
			voided(f, late(f, "s", mark))
			voided(f, late(f, "none", none))
		},
	})
}
