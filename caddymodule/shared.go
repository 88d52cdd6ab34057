package caddymodule

import (
	"context"
	"sync"

	"github.com/caddyserver/caddy/v2"

	"github.com/backstory-proxy/backstory/store"
)

// stores are the open stores by location, shared by all configurations that
// name them.
var stores = caddy.NewUsagePool()

// sharedStore is a store that stays open while a request uses it, even when
// the configuration that the request came in under is gone.
type sharedStore struct {
	store.Store
	inUse sync.WaitGroup
}

func openShared(ctx context.Context, opener StoreOpener) (*sharedStore, error) {
	v, _, err := stores.LoadOrNew(opener.Location(), func() (caddy.Destructor, error) {
		s, err := opener.Open(ctx)
		if err != nil {
			return nil, err
		}
		return &sharedStore{Store: s}, nil
	})
	if err != nil {
		return nil, err
	}
	return v.(*sharedStore), nil
}

// Destruct closes the store when no request uses it any more. A process that
// exits waits for that; a reload doesn't.
func (s *sharedStore) Destruct() error {
	if caddy.Exiting() {
		return s.Close()
	}
	go func() {
		s.inUse.Wait()
		_ = s.Close() // nobody is left to be told
	}()
	return nil
}
