package storetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/backstory-proxy/backstory/store"
)

// march is the month of the fixture's clock.
const march = store.Month(2026*12 + 2)

func (f *fixture) addUsage(tenant string, month store.Month, tokens int64) {
	f.Helper()
	f.ok(f.AddUsage(context.Background(), of(tenant), store.Used{Month: month, Tokens: tokens}))
}

// used checks what a tenant used, as Usage tells it and as Gather does.
func (f *fixture) used(tenant string, month store.Month, want int64) {
	f.Helper()
	got, err := f.Usage(context.Background(), of(tenant), month)
	f.ok(err)
	g, err := f.Gather(context.Background(), store.GatherRequest{Scope: of(tenant), Limit: generous, Month: month})
	f.ok(err)
	if got != want || g.Used != want {
		f.Errorf("tenant %s used %d in %s, or %d as gathered; want %d", tenant, got, month, g.Used, want)
	}
}

func testUsage(t *testing.T, b Backend) {
	ctx := context.Background()
	b.each(t, map[string]func(*fixture){
		"tokens add up, by tenant and by month": func(f *fixture) {
			f.used("a", march, 0)
			f.addUsage("a", march, 3)
			f.addUsage("a", march, 1<<40)
			f.addUsage("a", march-1, 5)
			f.addUsage("ab", march, 7)
			f.addUsage("a", march, 0)
			f.addUsage("a", march, -9)
			f.used("a", march, 1<<40+3)
			f.used("a", march-1, 5)
			f.used("a", march+1, 0)
			f.used("ab", march, 7)
			f.used("b", march, 0)
		},
		"they outlive a restart": func(f *fixture) {
			f.addUsage("a", march, 3)
			f.reopen()
			f.used("a", march, 3)
		},
		"an append brings its own": func(f *fixture) {
			f.used("a", march, 0)
			for i := range 3 {
				_, err := f.Append(ctx, store.Append{Scope: of("a"), Session: "s", Exchange: turn(fmt.Sprint(i)), Usage: store.Used{Month: march, Tokens: 10}, Anyway: true})
				f.ok(err)
			}
			f.used("a", march, 30)
			_, err := f.Append(ctx, store.Append{Scope: of("a"), Session: "s", Exchange: turn("more"), Anyway: true})
			f.ok(err)
			f.used("a", march, 30)
		},
		"an append of the same exchange counts once": func(f *fixture) {
			for range 3 {
				_, err := f.Append(ctx, store.Append{Scope: of("a"), Session: "s", Exchange: turn("e"), Usage: store.Used{Month: march, Tokens: 10}, Anyway: true})
				f.ok(err)
			}
			f.used("a", march, 10)
		},
		"what was used counts where nothing is saved": func(f *fixture) {
			mark := f.gather("a", "s", 0, 0).Mark
			f.save("a", "s", turn("e1"))
			usage := store.Used{Month: march, Tokens: 10}
			f.ok(f.DeleteSession(ctx, of("a"), "s"))
			if _, err := f.Append(ctx, store.Append{Scope: of("a"), Session: "s", Exchange: turn("e3"), Mark: mark, Usage: usage}); !errors.Is(err, store.ErrDeleted) {
				f.Fatalf("got %v", err)
			}
			f.used("a", march, 10)
			if tail := f.all("a", "s").Tail; len(tail) != 0 {
				f.Errorf("it was saved: %s", ids(tail))
			}
		},
		"a conflict counts nothing, and the append that follows it once": func(f *fixture) {
			mark := f.gather("a", "s", 0, 0).Mark
			f.save("a", "s", turn("e1"))
			a := store.Append{Scope: of("a"), Session: "s", Exchange: turn("e2"), Mark: mark, Usage: store.Used{Month: march, Tokens: 10}}
			a.Seen = f.conflict(a).Seq
			f.used("a", march, 0)
			_, err := f.Append(ctx, a)
			f.ok(err)
			f.used("a", march, 10)
		},
		"nothing is lost when many count at once": func(f *fixture) {
			var all sync.WaitGroup
			for i := range 20 {
				all.Go(func() {
					u := store.Used{Month: march, Tokens: 1}
					_, err := f.Append(ctx, store.Append{Scope: of("a"), Session: fmt.Sprint(i % 3), Exchange: turn(fmt.Sprint(i)), Usage: u, Anyway: true})
					if err := errors.Join(err, f.AddUsage(ctx, of("a"), u)); err != nil {
						f.Error(err)
					}
				})
			}
			all.Wait()
			f.used("a", march, 40)
		},
		"whoever doesn't ask isn't told, and changes nothing": func(f *fixture) {
			f.save("a", "s", turn("e1"))
			f.addUsage("a", march, 5)
			for range 2 {
				f.used("a", march, 5)
				if g := f.all("a", "s"); g.Used != 0 && g.Used != 5 {
					f.Errorf("got %d", g.Used)
				}
				f.addUsage("a", march+1, 1)
			}
			f.used("a", march+1, 2)
		},
		"usage can be restored": func(f *fixture) {
			m, ok := f.Store.(store.Migrator)
			if !ok {
				f.Skip("this store can't be copied")
			}
			f.addUsage("a", march, 50)
			f.addUsage("a", march-1, 60)
			f.addUsage("a", march-store.UsageMonths-1, 1)
			f.used("a", march, 50)
			f.ok(m.RestoreUsage(ctx, of("a"), []store.Used{{Month: march - 2, Tokens: 7}, {Month: march - 1, Tokens: 40}, {Month: march, Tokens: 70}}))
			f.used("a", march, 70)
			list, err := m.ListUsage(ctx, of("a"))
			f.ok(err)
			want := fmt.Sprint([]store.Used{{Month: march - 2, Tokens: 7}, {Month: march - 1, Tokens: 60}, {Month: march, Tokens: 70}})
			if fmt.Sprint(list) != want {
				f.Errorf("got %v, want %v", list, want)
			}
			if list, err := m.ListUsage(ctx, of("b")); err != nil || len(list) != 0 {
				f.Errorf("got %v, %v", list, err)
			}
		},
	})
}

func testTenants(t *testing.T, b Backend) {
	ctx := context.Background()
	b.each(t, map[string]func(*fixture){
		"whoever has anything is listed": func(f *fixture) {
			list := func(want ...string) {
				f.Helper()
				got, err := f.Tenants(ctx)
				if f.ok(err); fmt.Sprint(got) != fmt.Sprint(want) {
					f.Errorf("got %v, want %v", got, want)
				}
			}
			list()
			f.save("with-session", "s", turn("e"))
			f.addUsage("with-usage", march, 1)
			f.ok(f.PutKey(ctx, store.Key{Digest: [32]byte{1}, Tenant: "with-key", Plan: "free", Created: time.Unix(1, 0)}))
			list("with-key", "with-session", "with-usage")
			f.ok(f.DeleteSession(ctx, of("with-session"), "s"))
			list("with-key", "with-usage")
		},
		"a tenant's keys and usage are forgotten, and nobody else's": func(f *fixture) {
			for i, tenant := range []string{"a", "a", "ab"} {
				f.ok(f.PutKey(ctx, store.Key{Digest: [32]byte{byte(i)}, Tenant: tenant, Plan: "free", Created: time.Unix(1, 0), Revoked: time.Unix(int64(i), 0)}))
				f.addUsage(tenant, march, 1)
			}
			f.used("a", march, 2)
			if n, err := f.ForgetTenant(ctx, ""); err != nil || n != 0 {
				f.Fatalf("of nobody it forgot %d keys, %v", n, err)
			}
			for _, want := range []int{2, 0} {
				if n, err := f.ForgetTenant(ctx, "a"); err != nil || n != want {
					f.Errorf("got %d, %v; want %d", n, err, want)
				}
			}
			f.used("a", march, 0)
			f.used("ab", march, 1)
			if _, err := f.Key(ctx, [32]byte{1}); !errors.Is(err, store.ErrNotFound) {
				f.Errorf("the key is still there: %v", err)
			}
			if list, err := f.ListKeys(ctx, ""); err != nil || len(list) != 1 || list[0].Tenant != "ab" {
				f.Errorf("got %v, %v", list, err)
			}
		},
	})
}
