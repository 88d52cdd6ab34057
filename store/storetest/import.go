package storetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/backstory-proxy/backstory/store"
)

func testImport(t *testing.T, b Backend) {
	ctx := context.Background()
	put := func(f *fixture, session string, list ...store.Exchange) []int64 {
		f.Helper()
		seqs, err := f.Import(ctx, store.Import{
			Scope: of("a"), Session: session, Exchanges: list, Mark: f.gather("a", session, 0, 0).Mark,
		})
		f.ok(err)
		if len(seqs) != len(list) {
			f.Fatalf("%d Seqs of %d exchanges", len(seqs), len(list))
		}
		return seqs
	}
	b.each(t, map[string]func(*fixture){
		"exchanges stand at the end, in their order and as they were": func(f *fixture) {
			f.save("a", "s", turn("e1"))
			said := time.Date(2024, 2, 29, 1, 2, 3, 456e6, time.UTC)
			odd := exchange("i2", 7, 8, 9)
			odd.Hidden, odd.Carried, odd.Finish, odd.Model = true, store.Digest{9}, "", ""
			odd.Messages[1].Created = said
			f.clock.advance(time.Hour)
			seqs := put(f, "s", turn("i1"), odd, exchange("i3"))
			g := f.all("a", "s")
			if ids(g.Tail) != "e1 i1 i2 i3" || g.Tokens != 64 || g.Mark.Seq != seqs[2] {
				f.Fatalf("got %s, %d tokens, %+v", ids(g.Tail), g.Tokens, g.Mark)
			}
			for i, want := range []int64{20, 40, 64} {
				if e := g.Tail[i+1]; e.Seq != seqs[i] || e.Offset != want {
					f.Errorf("%s has Seq %d and Offset %d, want %d and %d", e.ID, e.Seq, e.Offset, seqs[i], want)
				}
			}
			for _, e := range []store.Exchange{g.Tail[2], f.page("a", "s", seqs[0])[0]} {
				if !e.Hidden || e.Carried != odd.Carried || !e.Created.Equal(odd.Created) || e.Tokens() != 24 ||
					!e.Messages[1].Created.Equal(said) || !e.Messages[0].Created.IsZero() {
					f.Errorf("got %+v", e)
				}
			}
			d, err := f.Session(ctx, of("a"), "s")
			if err != nil || d.Messages != 7 || d.Tokens != 64 || !d.Updated.Equal(f.clock.now()) {
				f.Errorf("got %+v, %v", d, err)
			}
			if seq := f.save("a", "s", turn("e2")); seq <= seqs[2] {
				f.Errorf("Seq %d after %v", seq, seqs)
			}
		},
		"a session that isn't there is made, and comes first in the list": func(f *fixture) {
			f.save("a", "other", turn("e1"))
			f.clock.advance(time.Second)
			put(f, "s", turn("i1"))
			list, err := f.ListSessions(ctx, of("a"), "", 10)
			if err != nil || len(list) != 2 || list[0].ID != "s" || !list[0].Created.Equal(f.clock.now()) {
				f.Errorf("got %+v, %v", list, err)
			}
		},
		"nothing makes no session": func(f *fixture) {
			put(f, "s")
			if _, err := f.Session(ctx, of("a"), "s"); !errors.Is(err, store.ErrNotFound) {
				f.Errorf("got %v", err)
			}
		},
		"what the session has by ID is skipped": func(f *fixture) {
			first := put(f, "s", turn("i1"), turn("i2"))
			again := put(f, "s", turn("i1"), turn("i2"))
			mixed := put(f, "s", turn("i0"), exchange("i2", 99), turn("i3"), turn("i3"))
			g := f.all("a", "s")
			if ids(g.Tail) != "i1 i2 i0 i3" || g.Tokens != 80 {
				f.Errorf("got %s, %d tokens", ids(g.Tail), g.Tokens)
			}
			if fmt.Sprint(again) != fmt.Sprint(first) || mixed[1] != first[1] || mixed[2] != mixed[3] || mixed[2] != g.Mark.Seq {
				f.Errorf("Seqs %v, then %v and %v", first, again, mixed)
			}
			if d, err := f.Session(ctx, of("a"), "s"); err != nil || d.Messages != 8 || d.Tokens != 80 {
				f.Errorf("got %+v, %v", d, err)
			}
		},
		"it is void where the session was deleted since the mark": func(f *fixture) {
			f.save("a", "s", turn("e1"))
			mark := f.gather("a", "s", 0, 0).Mark
			f.ok(f.DeleteSession(ctx, of("a"), "s"))
			_, err := f.Import(ctx, store.Import{Scope: of("a"), Session: "s", Exchanges: []store.Exchange{turn("i1")}, Mark: mark})
			if !errors.Is(err, store.ErrDeleted) {
				f.Errorf("got %v", err)
			}
			put(f, "s", turn("i1"))
			if got := ids(f.all("a", "s").Tail); got != "i1" {
				f.Errorf("got %s", got)
			}
		},
		"a session without a name is refused": func(f *fixture) {
			if _, err := f.Import(ctx, store.Import{Scope: of("a"), Exchanges: []store.Exchange{turn("i1")}}); err == nil {
				f.Error("it was accepted")
			}
		},
		"imports and appends at once never come between each other's exchanges": testConcurrentImports,
		"ten thousand messages come whole, and outlive a restart": func(f *fixture) {
			var list []store.Exchange
			for i := range 5000 {
				list = append(list, turn(fmt.Sprint("i", i)))
			}
			f.save("a", "s", turn("e1"))
			put(f, "s", list...)
			f.reopen()
			g := f.all("a", "s")
			if len(g.Tail) != 5001 || g.Tokens != 100_020 || g.Tail[5000].ID != "i4999" || g.Tail[5000].Offset != 100_000 {
				f.Errorf("%d exchanges, %d tokens", len(g.Tail), g.Tokens)
			}
			// The recent mean tells how much to read.
			if n := len(f.gather("a", "s", 200, 0).Tail); n < 10 || n > 20 {
				f.Errorf("200 tokens came as %d exchanges of 20", n)
			}
		},
	})
}

// page is up to 10 exchanges that follow one.
func (f *fixture) page(tenant, session string, after int64) []store.Exchange {
	f.Helper()
	list, err := f.Exchanges(context.Background(), of(tenant), session, after, 10, store.Ascending)
	f.ok(err)
	return list
}

func testConcurrentImports(f *fixture) {
	const workers, rounds, size = 6, 5, 7
	var all sync.WaitGroup
	for w := range workers {
		all.Go(func() {
			for r := range rounds {
				var list []store.Exchange
				for i := range size {
					list = append(list, turn(fmt.Sprintf("w%d-%d-%d", w, r, i)))
				}
				if _, err := f.Import(context.Background(), store.Import{Scope: of("a"), Session: "s", Exchanges: list}); err != nil {
					f.Error(err)
				}
				if _, err := f.Append(context.Background(), store.Append{Scope: of("a"), Session: "s", Exchange: turn(fmt.Sprintf("a%d-%d", w, r)), Anyway: true}); err != nil {
					f.Error(err)
				}
			}
		})
	}
	all.Wait()
	tail := f.all("a", "s").Tail
	if want := workers * rounds * (size + 1); len(tail) != want {
		f.Fatalf("%d exchanges, want %d", len(tail), want)
	}
	for i := range tail {
		name, first := strings.CutSuffix(tail[i].ID, "-0")
		if tail[i].ID[0] != 'w' || !first || strings.Count(name, "-") != 1 {
			continue
		}
		for n := range size {
			if i+n >= len(tail) || tail[i+n].ID != fmt.Sprintf("%s-%d", name, n) {
				f.Errorf("%s is not followed by the rest of its import: %s", tail[i].ID, ids(tail[i:min(i+size, len(tail))]))
				break
			}
		}
	}
}
