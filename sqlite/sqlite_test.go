package sqlite

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/backstory-proxy/backstory/store"
	"github.com/backstory-proxy/backstory/store/storetest"
)

// openAt opens the store in the file at path for the time of the test.
func openAt(t testing.TB, path string, o Options) *Store {
	t.Helper()
	s, err := Open(context.Background(), path, o)
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

func TestStore(t *testing.T) { suite(t, Options{}) }

func TestStoreOfLittleMemory(t *testing.T) { suite(t, Options{CacheSize: 2000}) }

func suite(t *testing.T, o Options) {
	paths := make(map[store.Store]string)
	open := func(t *testing.T, path string, now func() time.Time) store.Store {
		o.Now = now
		s := openAt(t, path, o)
		paths[s] = path
		return s
	}
	storetest.Run(t, storetest.Backend{
		Open: func(t *testing.T, now func() time.Time) store.Store {
			return open(t, filepath.Join(t.TempDir(), "backstory.db"), now)
		},
		Reopen: func(t *testing.T, s store.Store, now func() time.Time) store.Store {
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			return open(t, paths[s], now)
		},
		Dump: func(t *testing.T, s store.Store) (all []string) {
			erased(t, s.(*Store))
			for _, file := range []string{paths[s], paths[s] + "-wal"} {
				content, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				all = append(all, string(content))
			}
			return all
		},
	})
}

// of is the scope of a tenant.
func of(tenant string) store.Scope { return store.Scope{Tenant: tenant} }
