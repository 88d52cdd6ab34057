package storetest

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/backstory-proxy/backstory/store"
)

func testGather(t *testing.T, b Backend) {
	b.each(t, map[string]func(*fixture){
		"without a session there is no tail": func(f *fixture) {
			f.save("a", "s", turn("e1"))
			if g := f.gather("a", "", 100, 100); len(g.Tail) != 0 || g.Tokens != 0 || g.Mark.Seq != 0 || !g.Rate.Allowed {
				f.Fatalf("got %+v", g)
			}
		},
		"an unknown session is empty": func(f *fixture) {
			if g := f.gather("a", "s", 100, 100); len(g.Tail) != 0 || g.Tokens != 0 || g.Mark.Seq != 0 || g.Files {
				f.Fatalf("got %+v", g)
			}
		},
		"an exchange comes back as it was, byte for byte": func(f *fixture) {
			e := exchange("e1", 3, 0, 70_000)
			e.Messages[0].JSON = []byte("{ \"role\" : \"user\",\n\"content\":\"\\u00e9 \xff\xfe ]},[{ \x00\" }")
			e.Messages[1].JSON = []byte(`{"role":"assistant","content":null,"tool_calls":[{"id":"c1","x":1.0e+00}]}`)
			e.Carried, e.Hidden, e.Finish, e.Model = store.Digest{1, 0, 255}, true, "client_closed", ""
			e.Parent = "e0"
			e.Passages = []store.ChunkRef{{FileID: "file-2", N: 7}, {FileID: "\x00", N: 0}, {FileID: "file-1", N: 70_000}}
			e.Recalled = []store.MessageRef{{Seq: 1 << 40, N: 3, From: 17, To: 70_000}, {Seq: 1}}
			seq := f.save("a", "s", e)
			e.Seq = seq
			for range 2 {
				tail := f.all("a", "s").Tail
				if len(tail) != 1 || !tail[0].Created.Equal(e.Created) {
					f.Fatalf("got %+v, want %+v", tail, e)
				}
				tail[0].Created = e.Created
				if !reflect.DeepEqual(tail[0], e) {
					f.Fatalf("got %+v, want %+v", tail[0], e)
				}
				f.reopen()
			}
		},
		"an exchange without messages is one too": func(f *fixture) {
			f.save("a", "s", exchange("e1"))
			if tail := f.all("a", "s").Tail; len(tail) != 1 || len(tail[0].Messages) != 0 {
				f.Fatalf("got %+v", tail)
			}
		},
		"the caller may change what it gave, and the exchanges that it gets": func(f *fixture) {
			e := turn("e1")
			want := string(e.Messages[0].JSON)
			f.save("a", "s", e)
			clear(e.Messages[0].JSON)
			g := f.all("a", "s")
			if got := string(g.Tail[0].Messages[0].JSON); got != want {
				f.Fatalf("the store kept the caller's slice: %q", got)
			}
			clear(g.Tail[0].Messages)
			clear(g.Tail)
			if got := string(f.all("a", "s").Tail[0].Messages[0].JSON); got != want {
				f.Fatalf("the caller got the store's slice: %q", got)
			}
		},
		"exchanges stand in the order of their appends, with rising Seq": func(f *fixture) {
			var last int64
			for i, at := range []time.Duration{5, 1, 3} { // the time of Created decides nothing
				e := turn(fmt.Sprint("e", i))
				e.Created = e.Created.Add(at * time.Hour)
				seq := f.save("a", "s", e)
				if seq <= last {
					f.Fatalf("Seq %d after %d", seq, last)
				}
				last = seq
			}
			g := f.all("a", "s")
			if got := ids(g.Tail); got != "e0 e1 e2" || g.Mark.Seq != last || g.Tail[2].Seq != last {
				f.Fatalf("got %s, %+v", got, g.Mark)
			}
		},
		"offsets are the tokens ever appended before": func(f *fixture) {
			for i, tokens := range []int{5, 0, 7, 11} {
				f.save("a", "s", exchange(fmt.Sprint("e", i), tokens, 1))
			}
			g := f.all("a", "s")
			for i, want := range []int64{0, 6, 7, 15} {
				if g.Tail[i].Offset != want {
					f.Errorf("exchange %d at %d, want %d", i, g.Tail[i].Offset, want)
				}
			}
			if g.Tokens != 27 {
				f.Errorf("%d tokens, want 27", g.Tokens)
			}
		},
		"the tail is as long as asked for, and two exchanges more": func(f *fixture) {
			for i := range 10 {
				f.save("a", "s", turn(fmt.Sprint("e", i))) // 20 tokens, 2 messages
			}
			for _, c := range []struct{ tokens, messages, want int }{
				{0, 0, 2}, {1, 0, 3}, {20, 0, 3}, {21, 0, 4}, {0, 1, 3}, {0, 2, 3}, {0, 3, 4},
				{100, 4, 7}, {20, 9, 7}, {160, 0, 10}, {161, 0, 10}, {180, 0, 10}, {0, 18, 10}, {generous, 0, 10}, {0, generous, 10}, {1, generous, 10},
			} {
				g := f.gather("a", "s", c.tokens, c.messages)
				if len(g.Tail) != c.want || g.Tail[len(g.Tail)-1].ID != "e9" || g.Tokens != 200 {
					f.Errorf("%d tokens and %d messages: got %s, %d tokens ever; want the last %d", c.tokens, c.messages, ids(g.Tail), g.Tokens, c.want)
				}
			}
		},
		"hidden exchanges come too": func(f *fixture) {
			hidden := turn("e2")
			hidden.Hidden = true
			f.save("a", "s", turn("e1"))
			f.save("a", "s", hidden)
			f.save("a", "s", turn("e3"))
			tail := f.gather("a", "s", 1, 1).Tail
			if ids(tail) != "e1 e2 e3" || tail[0].Hidden || !tail[1].Hidden {
				f.Fatalf("got %+v", tail)
			}
		},
		"tenants see their own sessions only": func(f *fixture) {
			f.save("a", "s", turn("of a"))
			f.save("b", "s", turn("of b"))
			f.save("b", "t", turn("t of b"))
			for _, c := range []struct{ tenant, session, want string }{
				{"a", "s", "of a"}, {"b", "s", "of b"}, {"a", "t", ""}, {"c", "s", ""}, {"", "s", ""},
			} {
				if got := ids(f.all(c.tenant, c.session).Tail); got != c.want {
					f.Errorf("tenant %q, session %q: got %q, want %q", c.tenant, c.session, got, c.want)
				}
			}
		},
	})
}
