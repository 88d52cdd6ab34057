package storetest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/backstory-proxy/backstory/store"
)

func testKeys(t *testing.T, b Backend) {
	ctx := context.Background()
	created := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	key := func(digest byte, tenant string, age time.Duration) store.Key {
		return store.Key{Digest: [32]byte{digest}, Tenant: tenant, Plan: "pro", Name: "laptop \x00 é", Created: created.Add(-age)}
	}
	same := func(a, b store.Key) bool {
		return a.Digest == b.Digest && a.Tenant == b.Tenant && a.Plan == b.Plan && a.Name == b.Name &&
			a.Created.Equal(b.Created) && a.Expires.Equal(b.Expires) && a.Revoked.Equal(b.Revoked)
	}
	b.each(t, map[string]func(*fixture){
		"an unknown key is not found": func(f *fixture) {
			f.ok(f.PutKey(ctx, key(1, "a", 0)))
			if _, err := f.Key(ctx, [32]byte{2}); !errors.Is(err, store.ErrNotFound) {
				f.Fatalf("got %v", err)
			}
		},
		"a key comes back as it was put": func(f *fixture) {
			k := key(1, "a", 0)
			k.Expires, k.Revoked = created.Add(time.Hour), created.Add(time.Minute)
			for _, k := range []store.Key{k, key(2, "a", 0)} {
				f.ok(f.PutKey(ctx, k))
				got, err := f.Key(ctx, k.Digest)
				if err != nil || !same(got, k) {
					f.Errorf("got %+v, %v; want %+v", got, err, k)
				}
			}
		},
		"times that aren't set stay so": func(f *fixture) {
			f.ok(f.PutKey(ctx, key(1, "a", 0)))
			got, err := f.Key(ctx, [32]byte{1})
			f.ok(err)
			if !got.Expires.IsZero() || !got.Revoked.IsZero() || !got.Valid(created.Add(1e6*time.Hour)) {
				f.Fatalf("got %+v", got)
			}
		},
		"invalid keys are returned too": func(f *fixture) {
			k := key(1, "a", 0)
			k.Revoked = created
			f.ok(f.PutKey(ctx, k))
			got, err := f.Key(ctx, k.Digest)
			if err != nil || got.Valid(created) {
				f.Fatalf("got %+v, %v", got, err)
			}
		},
		"a key with the same digest is replaced": func(f *fixture) {
			f.ok(f.PutKey(ctx, key(1, "a", 0)))
			other := key(1, "b", time.Hour)
			other.Plan, other.Name, other.Revoked = "free", "", created
			f.ok(f.PutKey(ctx, other))
			got, err := f.Key(ctx, [32]byte{1})
			if err != nil || !same(got, other) {
				f.Errorf("got %+v, %v", got, err)
			}
			for tenant, want := range map[string]int{"a": 0, "b": 1, "": 1} {
				if list, err := f.ListKeys(ctx, tenant); err != nil || len(list) != want {
					f.Errorf("tenant %q has %d keys, %v; want %d", tenant, len(list), err, want)
				}
			}
		},
		"keys are listed oldest first, of one tenant or of all": func(f *fixture) {
			for _, k := range []store.Key{key(1, "a", time.Hour), key(2, "b", 3*time.Hour), key(3, "a", 2*time.Hour), key(4, "ab", 0)} {
				f.ok(f.PutKey(ctx, k))
			}
			for tenant, want := range map[string]string{"a": "\x03\x01", "b": "\x02", "": "\x02\x03\x01\x04", "nobody": ""} {
				list, err := f.ListKeys(ctx, tenant)
				f.ok(err)
				got := ""
				for _, k := range list {
					got += string(k.Digest[:1])
				}
				if got != want {
					f.Errorf("tenant %q: got %q, want %q", tenant, got, want)
				}
			}
		},
		"keys outlive a restart": func(f *fixture) {
			f.ok(f.PutKey(ctx, key(1, "a", 0)))
			f.reopen()
			if got, err := f.Key(ctx, [32]byte{1}); err != nil || !same(got, key(1, "a", 0)) {
				f.Fatalf("got %+v, %v", got, err)
			}
		},
	})
}
