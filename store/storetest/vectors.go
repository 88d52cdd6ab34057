package storetest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/backstory-proxy/backstory/store"
)

// meaning is a vector that tells which number it was made of.
func meaning(e store.Exchange, seq int64, n int) store.ExchangeVector {
	return store.ExchangeVector{Seq: seq, ID: e.ID, Model: fmt.Sprint("m", n%2), Vector: store.SmallVector{
		Scale: float32(n) / 7, Values: []int8{int8(n), -128, 127, 0},
	}}
}

// vectors shows the vectors of a session, by Seq, with their models.
func (f *fixture) vectors(tenant, session string, seqs ...int64) string {
	f.Helper()
	list, err := f.Vectors(context.Background(), of(tenant), session, seqs)
	f.ok(err)
	slices.SortFunc(list, func(a, b store.ExchangeVector) int { return cmp.Compare(a.Seq, b.Seq) })
	var all []string
	for _, v := range list {
		want := meaning(store.Exchange{}, v.Seq, int(v.Vector.Values[0]))
		if v.Model != want.Model || fmt.Sprint(v.Vector) != fmt.Sprint(want.Vector) {
			f.Errorf("got %+v, want %+v", v, want)
		}
		all = append(all, fmt.Sprint(slices.Index(seqs, v.Seq), ":", v.Vector.Values[0]))
	}
	return strings.Join(all, " ")
}

func testVectors(t *testing.T, b Backend) {
	ctx := context.Background()
	put := func(f *fixture, tenant, session string, list ...store.ExchangeVector) {
		f.Helper()
		f.ok(f.PutVectors(ctx, of(tenant), session, list))
	}
	// fill saves three exchanges and gives them vectors of their numbers.
	fill := func(f *fixture, tenant, session string) (seqs []int64) {
		f.Helper()
		var list []store.ExchangeVector
		for i := range 3 {
			e := turn(fmt.Sprint("e", i))
			seqs = append(seqs, f.save(tenant, session, e))
			list = append(list, meaning(e, seqs[i], i+1))
		}
		put(f, tenant, session, list...)
		return seqs
	}
	b.each(t, map[string]func(*fixture){
		"what was kept is read, of the exchanges asked for": func(f *fixture) {
			seqs := fill(f, "a", "s")
			if got := f.vectors("a", "s", seqs...); got != "0:1 1:2 2:3" {
				f.Errorf("got %q", got)
			}
			if got := f.vectors("a", "s", seqs[2], seqs[0], seqs[2]+1, 0, -1, 1<<40); got != "1:1 0:3" {
				f.Errorf("got %q", got)
			}
			if got := f.vectors("a", "s"); got != "" {
				f.Errorf("got %q", got)
			}
			put(f, "a", "s")
		},
		"a later vector stands in place of an earlier one": func(f *fixture) {
			seqs := fill(f, "a", "s")
			put(f, "a", "s", meaning(turn("e1"), seqs[1], 6))
			if got := f.vectors("a", "s", seqs...); got != "0:1 1:6 2:3" {
				f.Errorf("got %q", got)
			}
		},
		"sessions and tenants have their own": func(f *fixture) {
			seqs := fill(f, "a", "s")
			for _, at := range [][2]string{{"a", "t"}, {"b", "s"}} {
				f.save(at[0], at[1], turn("e0"))
			}
			for _, at := range [][2]string{{"a", "t"}, {"b", "s"}, {"a", "gone"}, {"nobody", "s"}, {"", ""}} {
				if got := f.vectors(at[0], at[1], seqs...); got != "" {
					f.Errorf("%q has %q", at, got)
				}
			}
		},
		"of exchanges that aren't there nothing is kept": func(f *fixture) {
			seq := f.save("a", "s", turn("e1"))
			put(f, "a", "s", meaning(turn("e2"), seq, 1), meaning(turn("e1"), seq+1, 2), meaning(turn("e1"), 0, 3), meaning(turn("e1"), -1, 4),
				meaning(turn("e1"), seq+1<<32, 5))
			put(f, "a", "gone", meaning(turn("e1"), seq, 1))
			put(f, "b", "s", meaning(turn("e1"), seq, 1))
			f.save("a", "s", turn("e2"))
			f.save("a", "gone", turn("e1"))
			f.save("b", "s", turn("e1"))
			for _, at := range [][2]string{{"a", "s"}, {"a", "gone"}, {"b", "s"}} {
				if got := f.vectors(at[0], at[1], -1, 0, 1, 2, 3); got != "" {
					f.Errorf("%q has %q", at, got)
				}
			}
		},
		"an exchange that is replaced takes its vector with it": func(f *fixture) {
			seqs := fill(f, "a", "s")
			seq, err := f.Append(ctx, store.Append{
				Scope: of("a"), Session: "s", Exchange: turn("e9"), Mark: f.gather("a", "s", 0, 0).Mark, Replaces: seqs[1],
			})
			f.ok(err)
			if got := f.vectors("a", "s", append(seqs, seq)...); got != "0:1 2:3" {
				f.Errorf("got %q", got)
			}
			put(f, "a", "s", meaning(turn("e1"), seqs[1], 2), meaning(turn("e9"), seq, 4))
			if got := f.vectors("a", "s", append(seqs, seq)...); got != "0:1 2:3 3:4" {
				f.Errorf("after it was replaced: got %q", got)
			}
		},
		"a session that is deleted takes its vectors with it": func(f *fixture) {
			seqs := fill(f, "a", "s")
			others := fill(f, "a", "t")
			f.ok(f.DeleteSession(ctx, of("a"), "s"))
			if got := f.vectors("a", "s", seqs...); got != "" {
				f.Errorf("got %q", got)
			}
			// A request that began before it was deleted ends now.
			put(f, "a", "s", meaning(turn("e0"), seqs[0], 1))
			if _, err := f.Session(ctx, of("a"), "s"); !errors.Is(err, store.ErrNotFound) {
				f.Errorf("the session is back: %v", err)
			}
			again := f.save("a", "s", turn("x"))
			put(f, "a", "s", meaning(turn("e0"), again, 1))
			if got := f.vectors("a", "s", append(seqs, again)...); got != "" {
				f.Errorf("a new session of that name has %q", got)
			}
			if got := f.vectors("a", "t", others...); got != "0:1 1:2 2:3" {
				f.Errorf("another session has %q", got)
			}
		},
		"a session whose time is up takes its vectors with it": func(f *fixture) {
			keep := func(e store.Exchange, ttl time.Duration, n int) int64 {
				f.Helper()
				f.keep("a", "s", e, ttl)
				seq := f.all("a", "s").Mark.Seq
				put(f, "a", "s", meaning(e, seq, n))
				return seq
			}
			seq := keep(turn("e0"), f.brief(), 1)
			f.expire("a", "s")
			put(f, "a", "s", meaning(turn("e0"), seq, 1))
			if got := f.vectors("a", "s", seq); got != "" {
				f.Errorf("got %q", got)
			}
			again := keep(turn("e1"), time.Hour, 2)
			put(f, "a", "s", meaning(turn("e0"), seq, 1))
			if got := f.vectors("a", "s", again); got != "0:2" {
				f.Errorf("begun anew it has %q", got)
			}
		},
		"vectors live as long as their session, when that changes": func(f *fixture) {
			var seqs []int64
			for _, session := range []string{"longer", "kept", "brief"} {
				f.keep("a", session, turn("e0"), f.brief())
				seq := f.all("a", session).Mark.Seq
				put(f, "a", session, meaning(turn("e0"), seq, 1))
				seqs = append(seqs, seq)
			}
			f.keep("a", "longer", turn("e1"), 1000*time.Hour)
			f.keep("a", "kept", turn("e1"), 0)
			f.expire("a", "brief")
			for i, session := range []string{"longer", "kept"} {
				if got := f.vectors("a", session, seqs[i]); got != "0:1" {
					f.Errorf("%s has %q", session, got)
				}
			}
		},
		"they outlive a restart": func(f *fixture) {
			seqs := fill(f, "a", "s")
			f.reopen()
			if got := f.vectors("a", "s", seqs...); got != "0:1 1:2 2:3" {
				f.Errorf("got %q", got)
			}
		},
	})
}
