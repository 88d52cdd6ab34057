package storetest

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/backstory-proxy/backstory/store"
)

// large is an exchange of a token and so many bytes.
func large(id string, size int) store.Exchange {
	e := exchange(id, 1)
	e.Messages[0].JSON = fmt.Appendf(nil, `{"role":"user","content":"%s"}`, bytes.Repeat([]byte("x"), size))
	return e
}

// testBytes looks at what a read holds at most, whatever the exchanges hold.
func testBytes(t *testing.T, b Backend) {
	ctx := context.Background()
	const (
		size  = store.PageBytes*2/5 + 1 // three of them make a page
		album = 2 * store.PageBytes
	)
	// bounded fails where a read has more than it had to: list is in its order.
	bounded := func(f *fixture, list []store.Exchange, bound int64) {
		f.Helper()
		n := int64(0)
		for i := range list[:max(len(list)-1, 0)] {
			n += list[i].Bytes()
		}
		if n >= bound {
			f.Errorf("%d exchanges have %d bytes without the last one", len(list), n)
		}
	}
	b.each(t, map[string]func(*fixture){
		"pages of large exchanges are short, and lose none": func(f *fixture) {
			var all []string
			for i := range 11 {
				n := 10
				switch {
				case i == 4:
					n = album
				case i != 7:
					n = size
				}
				all = append(all, fmt.Sprint("e", i))
				f.save("a", "s", large(all[i], n))
			}
			for _, order := range []store.Order{store.Ascending, store.Descending} {
				var got, pages []string
				for after := int64(0); ; {
					list, err := f.Exchanges(ctx, of("a"), "s", after, 100, order)
					f.ok(err)
					bounded(f, list, store.PageBytes)
					if len(list) == 0 {
						break
					}
					got, pages = append(got, strings.Fields(ids(list))...), append(pages, ids(list))
					after = list[len(list)-1].Seq
					if len(got) < len(all) && !store.Full(list, store.PageBytes) {
						f.Errorf("after %q it seems to be the end", ids(list))
					}
				}
				if order == store.Descending {
					slices.Reverse(got)
				}
				if !slices.Equal(got, all) || len(pages) > 6 {
					f.Errorf("got %q in the pages %q", got, pages)
				}
			}
			var got []string
			f.ok(store.EachExchange(ctx, f, of("a"), "s", func(list []store.Exchange) error {
				got = append(got, strings.Fields(ids(list))...)
				return nil
			}))
			if !slices.Equal(got, all) {
				f.Errorf("EachExchange: got %q", got)
			}
		},
		"exchanges by Seq come in pages too": func(f *fixture) {
			var seqs []int64
			for i := range 6 {
				seqs = append(seqs, f.save("a", "s", large(fmt.Sprint("e", i), size)))
			}
			asked := []int64{seqs[5], seqs[1], seqs[0], seqs[3], seqs[4], seqs[1], seqs[5] + 9}
			var got []string
			f.ok(store.EachExchangeAt(ctx, f, of("a"), "s", asked, func(list []store.Exchange) error {
				bounded(f, list, store.PageBytes)
				got = append(got, ids(list))
				return nil
			}))
			if want := []string{"e0 e1 e3", "e4 e5"}; !slices.Equal(got, want) {
				f.Errorf("got %q, want %q", got, want)
			}
		},
		"what is large beside the messages counts": func(f *fixture) {
			const n = 280
			for i := range n {
				e := turn(fmt.Sprint("e", i))
				e.Model = strings.Repeat("m", 32<<10)
				f.save("a", "s", e)
			}
			got := 0
			f.ok(store.EachExchange(ctx, f, of("a"), "s", func(list []store.Exchange) error {
				got += len(list)
				return nil
			}))
			if got != n {
				f.Errorf("got %d of %d", got, n)
			}
		},
		"a tail ends where it is large": func(f *fixture) {
			const n = store.TailBytes/size + 4
			for i := range n {
				f.save("a", "s", large(fmt.Sprint("e", i), size))
			}
			look := func(newest string, tokens int64) {
				f.Helper()
				g := f.all("a", "s")
				slices.Reverse(g.Tail) // it is read from the newest back
				bounded(f, g.Tail, store.TailBytes)
				if len(g.Tail) == 0 || g.Tail[0].ID != newest || g.Tokens != tokens || !store.Full(g.Tail, store.TailBytes) {
					f.Errorf("the newest is %q, not %q; %d tokens", ids(g.Tail), newest, g.Tokens)
				}
			}
			look(fmt.Sprint("e", n-1), n)
			look(fmt.Sprint("e", n-1), n) // from the store's memory, perhaps
			f.save("a", "s", large("small", 1))
			look("small", n+1)
			f.save("a", "s", large("album", store.TailBytes))
			look("album", n+2)
			if g := f.all("a", "s"); len(g.Tail) != 1 {
				f.Errorf("beside a large exchange: %q", ids(g.Tail))
			}
		},
	})
}
