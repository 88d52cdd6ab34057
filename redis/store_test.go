package redis

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/backstory-proxy/backstory/store"
	"github.com/backstory-proxy/backstory/store/storetest"
)

// openAt opens a store for the time of the test, and removes what it wrote.
// openAt opens a store. It has patience with the servers of a machine that does
// much else, where the test says nothing else.
func openAt(t testing.TB, url string, o Options) *Store {
	t.Helper()
	o.Timeout = cmp.Or(o.Timeout, 20*time.Second)
	s, err := Open(context.Background(), url, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// backend makes stores that have one server and each a prefix of its own, so that
// all of them are empty.
func backend(url string, o Options) storetest.Backend {
	prefix := newPrefix()
	opened := make(map[store.Store]Options)
	open := func(t *testing.T, o Options) store.Store {
		s := openAt(t, url, o)
		opened[s] = o
		return s
	}
	return storetest.Backend{
		ServerClock: true,
		Open: func(t *testing.T, now func() time.Time) store.Store {
			o := o
			o.Prefix, o.Now = prefix+t.Name()+":", now
			o.unindexed = o.unindexed || searchesNothing(t.Name())
			return open(t, o)
		},
		Reopen: func(t *testing.T, s store.Store, now func() time.Time) store.Store {
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			o := opened[s]
			o.Now = now
			return open(t, o)
		},
		Dump: func(t *testing.T, s store.Store) []string { return dump(t, s.(*Store)) },
	}
}

// dump is all that the server has under the store's prefix: each key with its value.
func dump(t *testing.T, s *Store) (all []string) {
	t.Helper()
	ctx := t.Context()
	err := s.scan(ctx, s.layout.prefix, func(keys []string) error {
		for _, key := range keys {
			var value any
			var err error
			switch kind := s.client.Type(ctx, key).Val(); kind {
			case "string":
				value, err = s.client.Get(ctx, key).Result()
			case "hash":
				value, err = s.client.HGetAll(ctx, key).Result()
			case "list":
				value, err = s.client.LRange(ctx, key, 0, -1).Result()
			case "set":
				value, err = s.client.SMembers(ctx, key).Result()
			case "zset":
				value, err = s.client.ZRange(ctx, key, 0, -1).Result()
			case "none":
				continue // its time is up
			default:
				t.Errorf("%s is a %s", key, kind)
			}
			if err != nil {
				return err
			}
			all = append(all, fmt.Sprintf("%s: %s", key, value))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// searchesNothing tells the parts of the suite that aren't on the tape, because
// they say nothing about search.
func searchesNothing(test string) bool {
	for _, part := range []string{"Abilities", "Append", "Bytes", "Conflict", "Deletion", "Erasure", "Expiry", "ExpiryOfImports", "Import", "Known", "Originals", "Scopes", "Tenants", "Totals", "Usage", "Vectors"} {
		if strings.Contains(test+"/", "/"+part+"/") {
			return true
		}
	}
	return false
}

func TestStore(t *testing.T) {
	url := searchServer(t)
	storetest.Run(t, backend(url, Options{}))
}
