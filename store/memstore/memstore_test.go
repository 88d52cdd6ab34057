package memstore_test

import (
	"testing"
	"time"

	"github.com/backstory-proxy/backstory/store"
	"github.com/backstory-proxy/backstory/store/memstore"
	"github.com/backstory-proxy/backstory/store/storetest"
)

func TestStore(t *testing.T) {
	storetest.Run(t, storetest.Backend{
		Open: func(t *testing.T, now func() time.Time) store.Store {
			s := memstore.New(now)
			t.Cleanup(func() {
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			})
			return s
		},
	})
}
