package storetest

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/backstory-proxy/backstory/store"
)

func testLimiter(t *testing.T, b Backend) {
	ctx := context.Background()
	take := func(f *fixture, tenant string, limit int) store.Rate {
		f.Helper()
		r, err := f.Take(ctx, tenant, limit)
		f.ok(err)
		return r
	}
	b.each(t, map[string]func(*fixture){
		"remaining, reset and retry-after say what is left": func(f *fixture) {
			const second = time.Second
			for i, step := range []struct {
				advance time.Duration
				want    store.Rate
			}{
				{0, store.Rate{Allowed: true, Limit: 3, Remaining: 2, Reset: 60 * second}},
				{10 * second, store.Rate{Allowed: true, Limit: 3, Remaining: 1, Reset: 60 * second}},
				{10 * second, store.Rate{Allowed: true, Limit: 3, Remaining: 0, Reset: 60 * second, RetryAfter: 40 * second}},
				{10 * second, store.Rate{Limit: 3, Reset: 50 * second, RetryAfter: 30 * second}},
				{30 * second, store.Rate{Allowed: true, Limit: 3, Remaining: 0, Reset: 60 * second, RetryAfter: 10 * second}},
				{200 * second, store.Rate{Allowed: true, Limit: 3, Remaining: 2, Reset: 60 * second}},
			} {
				f.clock.advance(step.advance)
				if got := take(f, "a", 3); got != step.want {
					f.Errorf("step %d: got %+v, want %+v", i, got, step.want)
				}
			}
		},
		"retry-after is when, and not before": func(f *fixture) {
			for range 5 {
				take(f, "a", 5)
				f.clock.advance(7 * time.Second)
			}
			r := take(f, "a", 5)
			if r.Allowed || r.RetryAfter <= 0 {
				f.Fatalf("got %+v", r)
			}
			f.clock.advance(r.RetryAfter - time.Millisecond)
			if take(f, "a", 5).Allowed {
				f.Error("allowed a millisecond before its time")
			}
			f.clock.advance(time.Millisecond)
			if !take(f, "a", 5).Allowed {
				f.Error("refused at its time")
			}
		},
		"refused requests aren't counted": func(f *fixture) {
			take(f, "a", 1)
			for range 59 {
				f.clock.advance(time.Second)
				if take(f, "a", 1).Allowed {
					f.Fatal("allowed too early")
				}
			}
			f.clock.advance(time.Second)
			if !take(f, "a", 1).Allowed {
				f.Error("the refused ones were counted")
			}
		},
		"a limit that changes holds from then on": func(f *fixture) {
			for range 5 {
				take(f, "a", 5)
			}
			f.clock.advance(time.Second)
			if r := take(f, "a", 2); r.Allowed || r.Remaining != 0 || r.RetryAfter != 59*time.Second {
				f.Errorf("lowered: got %+v", r)
			}
			if r := take(f, "a", 7); !r.Allowed || r.Remaining != 1 || r.RetryAfter != 0 {
				f.Errorf("raised: got %+v", r)
			}
		},
		"a limit of none allows none": func(f *fixture) {
			for _, limit := range []int{0, -1} {
				if r := take(f, "a", limit); r.Allowed || r.Remaining != 0 || r.RetryAfter <= 0 {
					f.Errorf("limit %d: got %+v", limit, r)
				}
			}
			if !take(f, "a", 1).Allowed {
				f.Error("what was refused was counted")
			}
		},
		"tenants are counted apart": func(f *fixture) {
			take(f, "a", 1)
			for _, other := range []string{"b", "A", "", "a "} {
				if !take(f, other, 1).Allowed {
					f.Errorf("%q was refused for what %q did", other, "a")
				}
			}
			if take(f, "a", 1).Allowed {
				f.Error("the limit was forgotten")
			}
		},
		"gather counts as take does": func(f *fixture) {
			f.save("a", "s", turn("e1"))
			f.clock.advance(2 * store.RateWindow)
			req := store.GatherRequest{Scope: of("a"), Limit: 2, Session: "s", Tokens: 1}
			for i, allowed := range []bool{true, true, false} {
				g, err := f.Gather(ctx, req)
				f.ok(err)
				if g.Rate.Allowed != allowed || g.Rate.Limit != 2 || g.Rate.Remaining != max(1-i, 0) {
					f.Errorf("request %d: got %+v", i, g.Rate)
				}
				if !allowed && (len(g.Tail) > 0 || g.Tokens != 0 || g.Mark != store.Mark{} || g.Files) {
					f.Errorf("refused, and yet answered: %+v", g)
				}
			}
			if take(f, "a", 2).Allowed {
				f.Error("take doesn't see what gather counted")
			}
			req.Counted = true
			g, err := f.Gather(ctx, req)
			if f.ok(err); g.Rate != (store.Rate{Allowed: true}) || len(g.Tail) != 1 {
				f.Errorf("counted by take, got %+v", g)
			}
			f.clock.advance(store.RateWindow)
			for range 3 {
				_, err := f.Gather(ctx, req)
				f.ok(err)
			}
			if rate := take(f, "a", 2); rate.Remaining != 1 {
				f.Errorf("gather has counted what take had: %+v", rate)
			}
		},
		"requests at once: exactly as many as the limit": func(f *fixture) {
			var allowed atomic.Int64
			var all sync.WaitGroup
			for range 20 {
				all.Go(func() {
					for range 10 {
						if r, err := f.Take(ctx, "a", 50); err != nil {
							f.Error(err)
						} else if r.Allowed {
							allowed.Add(1)
						}
					}
				})
			}
			all.Wait()
			if allowed.Load() != 50 {
				f.Errorf("%d of 200 were allowed, the limit is 50", allowed.Load())
			}
		},
		"never more than the limit in any window, and never fewer": testRateWindows,
	})
}

// testRateWindows compares the store with the definition, over random times and
// limits.
func testRateWindows(f *fixture) {
	random := rand.New(rand.NewPCG(1, 2))
	var counted []time.Time
	limit := 8
	for i := range 3000 {
		switch random.IntN(10) {
		case 0:
			f.clock.advance(time.Duration(random.IntN(40_000)) * time.Millisecond)
		case 1, 2, 3:
			f.clock.advance(time.Duration(random.IntN(8_000)) * time.Millisecond)
		case 4:
			limit = 1 + random.IntN(12)
		}
		now := f.clock.now()
		for len(counted) > 0 && now.Sub(counted[0]) >= store.RateWindow {
			counted = counted[1:]
		}
		want := store.Rate{Allowed: len(counted) < limit, Limit: limit}
		if want.Allowed {
			counted = append(counted, now)
		}
		n := len(counted)
		want.Remaining = max(limit-n, 0)
		want.Reset = counted[n-1].Add(store.RateWindow).Sub(now)
		if n >= limit {
			want.RetryAfter = counted[n-limit].Add(store.RateWindow).Sub(now)
		}
		got, err := f.Take(context.Background(), "a", limit)
		f.ok(err)
		if got != want {
			f.Fatalf("request %d: got %+v, want %+v", i, got, want)
		}
	}
}
