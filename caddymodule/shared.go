package caddymodule

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/backstory-proxy/backstory/journal"
	"github.com/backstory-proxy/backstory/memory"
	"github.com/backstory-proxy/backstory/store"
)

// stores are the open stores by location, shared by all configurations that
// name them.
var stores = caddy.NewUsagePool()

// opened are all open stores, those too that only requests still hold.
var opened sync.Map // of *sharedStore

// sharedStore is a store with the work that is under way on it. It stays open
// while a request uses it, even when the configuration that the request came in
// under is gone.
type sharedStore struct {
	store.Store
	journal     *journal.Journal // nil: none
	calibration *calibration     // of the models that it was used with

	inUse   sync.WaitGroup
	replies sync.Map // of *tee: the chat replies under way
	recall  *memory.Recaller

	// ingests are the uploads being indexed; stopping ends them, when the
	// process exits.
	ingests  sync.WaitGroup
	stopping context.Context
	stop     context.CancelFunc
}

// recallMemory is how many bytes the indexes of long sessions take: those of
// about 50,000 messages.
const recallMemory = 64 << 20

func (a *App) openShared(ctx context.Context) (*sharedStore, error) {
	v, _, err := stores.LoadOrNew(a.opener.Location(), func() (caddy.Destructor, error) {
		s, err := a.opener.Open(ctx, a.embedder)
		if err != nil {
			return nil, err
		}
		j, err := a.openJournal(ctx, s)
		if err != nil {
			return nil, errors.Join(err, s.Close())
		}
		shared := &sharedStore{Store: s, journal: j, calibration: newCalibration(), recall: memory.NewRecaller(s, recallMemory)}
		shared.stopping, shared.stop = context.WithCancel(context.Background())
		opened.Store(shared, nil)
		return shared, nil
	})
	if err != nil {
		return nil, err
	}
	return v.(*sharedStore), nil
}

// DeleteSession removes a session, what is known of it for recall, and what the
// journal has of it. What other proxies have journaled of it the store voids,
// when they replay it.
func (s *sharedStore) DeleteSession(ctx context.Context, tenant, session string) error {
	defer s.recall.Forget(tenant, session)
	journaled := s.journal != nil && s.journal.Holds(tenant, session)
	err := s.Store.DeleteSession(ctx, tenant, session)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return err
	}
	if dropped := s.dropJournaled(ctx, tenant, session); dropped != nil {
		return dropped
	}
	if journaled { // it may have been there alone
		return nil
	}
	return err
}

// Destruct closes the store when no request uses it any more. A process that
// exits doesn't wait for requests; a reload does, behind its back.
func (s *sharedStore) Destruct() error {
	if caddy.Exiting() {
		s.cutOff()
		opened.Delete(s)
		return s.closeAll()
	}
	go func() {
		s.inUse.Wait()
		opened.Delete(s)
		_ = s.closeAll() // nobody is left to be told
	}()
	return nil
}

// cutOffTimeout bounds the saving of what was delivered when the process exits.
const cutOffTimeout = 5 * time.Second

// cutOff ends what is under way, because the process exits: what the grace
// period didn't end, nothing else ends any more, for handlers don't return.
func (s *sharedStore) cutOff() {
	s.stop()
	var all sync.WaitGroup
	s.replies.Range(func(reply, _ any) bool {
		all.Go(reply.(*tee).cutOff)
		return true
	})
	ended := make(chan struct{})
	go func() {
		all.Wait()
		s.ingests.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(cutOffTimeout):
	}
}

// cutOffAll does so for all stores, those of earlier configurations too.
func cutOffAll() {
	opened.Range(func(s, _ any) bool {
		s.(*sharedStore).cutOff()
		return true
	})
}
