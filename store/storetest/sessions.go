package storetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/backstory-proxy/backstory/store"
)

func testSessions(t *testing.T, b Backend) {
	ctx := context.Background()
	list := func(f *fixture, tenant, after string, limit int) string {
		f.Helper()
		sessions, err := f.ListSessions(ctx, of(tenant), after, limit)
		f.ok(err)
		var all []string
		for _, d := range sessions {
			all = append(all, d.ID)
		}
		return strings.Join(all, " ")
	}
	exchanges := func(f *fixture, after int64, limit int, order store.Order) string {
		f.Helper()
		list, err := f.Exchanges(ctx, of("a"), "s", after, limit, order)
		f.ok(err)
		return ids(list)
	}
	b.each(t, map[string]func(*fixture){
		"a session is described": func(f *fixture) {
			start := f.clock.now()
			f.save("a", "s", exchange("e1", 1, 2, 3))
			created := f.clock.now()
			f.clock.advance(time.Hour)
			f.save("a", "s", exchange("e2", 4))
			want := store.Session{ID: "s", Created: created, Updated: f.clock.now(), Messages: 4, Tokens: 10}
			for _, d := range f.sessions(ctx, "a", "s") {
				if d.ID != want.ID || !d.Created.Equal(want.Created) || !d.Updated.Equal(want.Updated) || d.Messages != 4 || d.Tokens != 10 {
					f.Errorf("began at %v; got %+v, want %+v", start, d, want)
				}
			}
		},
		"an unknown session is not found": func(f *fixture) {
			f.save("a", "s", turn("e1"))
			for _, at := range [][2]string{{"a", "t"}, {"b", "s"}, {"a", ""}, {"", "s"}} {
				if _, err := f.Session(ctx, of(at[0]), at[1]); !errors.Is(err, store.ErrNotFound) {
					f.Errorf("%q: Session returned %v", at, err)
				}
				if _, err := f.Exchanges(ctx, of(at[0]), at[1], 0, 10, store.Ascending); !errors.Is(err, store.ErrNotFound) {
					f.Errorf("%q: Exchanges returned %v", at, err)
				}
			}
		},
		"sessions are listed most recently updated first, in pages": func(f *fixture) {
			for i := range 7 {
				f.save("a", fmt.Sprint("s", i), turn("e1"))
				f.save("b", fmt.Sprint("b", i), turn("e1"))
			}
			f.save("a", "s2", turn("e2"))
			f.save("a", "s6", turn("e2"))
			f.save("a", "s6", turn("e3"))
			for _, c := range []struct {
				after string
				limit int
				want  string
			}{
				{"", 100, "s6 s2 s5 s4 s3 s1 s0"}, {"", 3, "s6 s2 s5"}, {"s5", 3, "s4 s3 s1"}, {"s1", 3, "s0"}, {"s0", 3, ""}, {"", 0, ""},
			} {
				if got := list(f, "a", c.after, c.limit); got != c.want {
					f.Errorf("%d after %q: got %q, want %q", c.limit, c.after, got, c.want)
				}
			}
			f.ok(f.DeleteSession(ctx, of("a"), "s6"))
			f.ok(f.DeleteSession(ctx, of("a"), "s3"))
			f.save("a", "s1", turn("e2"))
			if got := list(f, "a", "", 100); got != "s1 s2 s5 s4 s0" {
				f.Errorf("after deletions: got %q", got)
			}
			if got := list(f, "nobody", "", 100); got != "" {
				f.Errorf("an unknown tenant has %q", got)
			}
		},
		"a page after a session that isn't there is not found": func(f *fixture) {
			f.save("b", "s", turn("e1"))
			for _, tenant := range []string{"a", "b"} {
				if _, err := f.ListSessions(ctx, of(tenant), "gone", 10); !errors.Is(err, store.ErrNotFound) {
					f.Errorf("tenant %s: got %v", tenant, err)
				}
			}
		},
		"exchanges are listed in both orders, in pages": func(f *fixture) {
			seq := make([]int64, 6)
			for i := range seq {
				e := turn(fmt.Sprint("e", i))
				e.Hidden = i == 3
				seq[i] = f.save("a", "s", e)
			}
			f.save("a", "t", turn("other"))
			const up, down = store.Ascending, store.Descending
			for _, c := range []struct {
				after int64
				limit int
				order store.Order
				want  string
			}{
				{0, 100, up, "e0 e1 e2 e3 e4 e5"}, {0, 100, down, "e5 e4 e3 e2 e1 e0"},
				{0, 2, up, "e0 e1"}, {seq[1], 3, up, "e2 e3 e4"}, {seq[5], 3, up, ""},
				{0, 2, down, "e5 e4"}, {seq[4], 3, down, "e3 e2 e1"}, {seq[0], 3, down, ""},
				{0, 0, up, ""}, {0, 0, down, ""},
			} {
				if got := exchanges(f, c.after, c.limit, c.order); got != c.want {
					f.Errorf("%d after %d, descending %v: got %q, want %q", c.limit, c.after, c.order, got, c.want)
				}
			}
		},
		"exchanges come whole": func(f *fixture) {
			e := exchange("e1", 3, 4)
			e.Passages = []store.ChunkRef{{FileID: "file-1", N: 2}}
			e.Recalled = []store.MessageRef{{Seq: 1, N: 1}}
			f.save("a", "s", e)
			got, err := f.Exchanges(ctx, of("a"), "s", 0, 1, store.Ascending)
			f.ok(err)
			want := f.all("a", "s").Tail
			if fmt.Sprint(got) != fmt.Sprint(want) {
				f.Errorf("got %v, want %v", got, want)
			}
		},
		"exchanges are found by their Seqs": func(f *fixture) {
			var seqs []int64
			for i := range 40 {
				a := store.Append{Scope: of("a"), Session: "s", Exchange: turn(fmt.Sprint("e", i)), Mark: f.gather("a", "s", 0, 0).Mark}
				if i == 3 || i == 20 {
					a.Replaces = seqs[i-1]
				}
				seq, err := f.Append(ctx, a)
				f.ok(err)
				seqs = append(seqs, seq)
			}
			f.save("a", "t", turn("other"))
			last := seqs[39]
			for _, c := range []struct {
				seqs []int64
				want string
			}{
				{nil, ""}, {[]int64{seqs[0]}, "e0"}, {[]int64{last}, "e39"}, {[]int64{last + 1}, ""}, {[]int64{0, -1, 1 << 40}, ""},
				{[]int64{seqs[2]}, ""}, {[]int64{seqs[3]}, "e3"}, {[]int64{seqs[21], seqs[19], seqs[2], seqs[4], seqs[4]}, "e4 e21"},
				{seqs, "e0 e1 e3 e4 e5 e6 e7 e8 e9 e10 e11 e12 e13 e14 e15 e16 e17 e18 e20 e21 e22 e23 e24 e25 e26 e27 e28 e29 e30 e31 e32 e33 e34 e35 e36 e37 e38 e39"},
			} {
				got, err := f.ExchangesAt(ctx, of("a"), "s", c.seqs)
				f.ok(err)
				if ids(got) != c.want {
					f.Errorf("at %v: got %q, want %q", c.seqs, ids(got), c.want)
				}
			}
			whole, err := f.ExchangesAt(ctx, of("a"), "s", seqs[39:])
			f.ok(err)
			if tail := f.all("a", "s").Tail; fmt.Sprint(whole) != fmt.Sprint(tail[len(tail)-1:]) {
				f.Errorf("got %v", whole)
			}
			for _, at := range [][2]string{{"a", "gone"}, {"b", "s"}, {"", ""}} {
				if got, err := f.ExchangesAt(ctx, of(at[0]), at[1], seqs); err != nil || len(got) != 0 {
					f.Errorf("%q: got %v, %v", at, got, err)
				}
			}
		},
		"sessions outlive a restart": func(f *fixture) {
			for _, session := range []string{"s", "t", "u", "s"} {
				f.save("a", session, turn(fmt.Sprint("e", f.clock.now())))
			}
			before := f.sessions(ctx, "a", "s")
			f.reopen()
			if got := list(f, "a", "", 10); got != "s u t" {
				f.Errorf("got %q", got)
			}
			if after := f.sessions(ctx, "a", "s"); fmt.Sprint(after) != fmt.Sprint(before) {
				f.Errorf("got %v, want %v", after, before)
			}
		},
	})
}

// sessions is what Session and ListSessions each say of a session.
func (f *fixture) sessions(ctx context.Context, tenant, session string) []store.Session {
	f.Helper()
	one, err := f.Session(ctx, of(tenant), session)
	f.ok(err)
	list, err := f.ListSessions(ctx, of(tenant), "", 100)
	f.ok(err)
	for _, d := range list {
		if d.ID == session {
			return []store.Session{one, d}
		}
	}
	f.Fatalf("%q isn't listed", session)
	return nil
}

// names are ids that have broken stores.
var names = []string{
	"s", "S", "s ", " s", "a", "a:s", "{a}", "a}:{s", "0", "-1", "null", "*", "s*", "?", "%", "_", ".", "..", "/", "\\",
	"'", `"`, "''; DROP TABLE sessions; --", "\x00", "s\x00", "s\x00t", "\xff\xfe", "\xff", "\ufffd",
	"caf\u00e9", "cafe\u0301", "日本語", "🦊", "\u200b", "\u202e", "\n", "\r\n", strings.Repeat("long", 2560), strings.Repeat("long", 2560) + "!",
}

func testNames(t *testing.T, b Backend) {
	ctx := context.Background()
	b.each(t, map[string]func(*fixture){
		"a session's name is any string": func(f *fixture) {
			for i, name := range names {
				f.save("a", name, turn(fmt.Sprint("e", i)))
			}
			for i, name := range names {
				if got, want := ids(f.all("a", name).Tail), fmt.Sprint("e", i); got != want {
					f.Errorf("%.40q: got %q, want %q", name, got, want)
				}
				if d, err := f.Session(ctx, of("a"), name); err != nil || d.ID != name || d.Messages != 2 {
					f.Errorf("%.40q: got %+v, %v", name, d, err)
				}
			}
			after := ""
			for i := len(names) - 1; i >= 0; i-- {
				page, err := f.ListSessions(ctx, of("a"), after, 1)
				f.ok(err)
				if len(page) != 1 || page[0].ID != names[i] {
					f.Fatalf("after %.40q: got %.60v, want %.40q", after, page, names[i])
				}
				after = names[i]
			}
			for _, name := range names {
				f.ok(f.DeleteSession(ctx, of("a"), name))
			}
			if left, err := f.ListSessions(ctx, of("a"), "", 1); err != nil || len(left) != 0 {
				f.Errorf("%d are left, %v", len(left), err)
			}
		},
		"tenant and session are never taken together": func(f *fixture) {
			pairs := [][2]string{{"a", "b:c"}, {"a:b", "c"}, {"a", "\x00b"}, {"a\x00", "b"}, {"ab", "c"}, {"a", "bc"}, {"", "s"}, {"s", "s"}}
			for i, p := range pairs {
				f.save(p[0], p[1], turn(fmt.Sprint("e", i)))
			}
			for i, p := range pairs {
				if got, want := ids(f.all(p[0], p[1]).Tail), fmt.Sprint("e", i); got != want {
					f.Errorf("%q: got %q, want %q", p, got, want)
				}
			}
		},
		"an exchange's ID is any string": func(f *fixture) {
			for range 2 {
				for _, name := range names {
					f.save("a", "s", turn(name))
				}
			}
			tail := f.all("a", "s").Tail
			if len(tail) != len(names) {
				f.Fatalf("%d exchanges, want %d", len(tail), len(names))
			}
			for i, name := range names {
				if tail[i].ID != name {
					f.Errorf("got %.40q, want %.40q", tail[i].ID, name)
				}
			}
		},
	})
}
