package gateway

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/backstory-proxy/backstory/gateway/internal/admission"
	"github.com/backstory-proxy/backstory/gateway/internal/calibrate"
	"github.com/backstory-proxy/backstory/journal"
	"github.com/backstory-proxy/backstory/memory"
	"github.com/backstory-proxy/backstory/prompt"
	"github.com/backstory-proxy/backstory/store"
)

// opened are all open stores, those too that only requests still hold.
var opened sync.Map // of *Shared

// Shared is an open store with the work that is under way on it. Configurations
// that name the same store share it, over reloads. It stays open while a request
// uses it, even when the configuration that the request came in under is gone.
type Shared struct {
	abilities
	logger      func() *zap.Logger
	journal     *journal.Journal // nil: none
	losses      losses
	calibration *calibrate.Calibration // of the models that it was used with

	load    *admission.Gate
	bodies  *admission.Pool // bytes of memory
	uploads *admission.Pool // bytes of the disk
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

// Share makes a store one that configurations share. It closes the store where
// it fails. logger is the process's own: it is asked for each time, for the store
// outlives configurations.
func Share(ctx context.Context, s store.Store, o JournalOptions, logger func() *zap.Logger) (*Shared, error) {
	j, err := openJournal(ctx, s, o, logger)
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	can := abilitiesOf(s)
	shared := &Shared{abilities: can, logger: logger, journal: j, calibration: calibrate.New(), recall: memory.NewRecaller(can, recallMemory, prompt.Pinned)}
	shared.load = admission.NewGate(can.WriteBacklog)
	shared.bodies, shared.uploads = admission.NewPool(0), admission.NewPool(0)
	shared.stopping, shared.stop = context.WithCancel(context.Background())
	opened.Store(shared, nil)
	return shared, nil
}

// DeleteSession removes a session, what is known of it for recall, and what the
// journal has of it. What other proxies have journaled of it the store voids,
// when they replay it.
func (s *Shared) DeleteSession(ctx context.Context, scope store.Scope, session string) error {
	defer s.recall.Forget(scope, session)
	journaled := s.journal != nil && s.journal.Holds(scope, session)
	err := s.Store.DeleteSession(ctx, scope, session)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return err
	}
	if dropped := s.DropJournaled(ctx, scope, session); dropped != nil {
		return dropped
	}
	if journaled { // it may have been there alone
		return nil
	}
	return err
}

// Use keeps the store open until done is called.
func (s *Shared) Use() (done func()) {
	s.inUse.Add(1)
	return s.inUse.Done
}

// Close waits until no request uses the store any more, and closes the journal
// and then the store that it replays to. When the process exits, CutOff comes
// first, and then nobody is waited for.
func (s *Shared) Close() error {
	if s.stopping.Err() == nil {
		s.inUse.Wait()
	}
	opened.Delete(s)
	var err error
	if s.journal != nil {
		err = s.journal.Close()
	}
	return errors.Join(err, s.Store.Close())
}

// cutOffTimeout bounds the saving of what was delivered when the process exits.
const cutOffTimeout = 5 * time.Second

// CutOff ends what is under way, because the process exits: what the grace
// period didn't end, nothing else ends any more, for handlers don't return.
func (s *Shared) CutOff() {
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

// CutOffAll does so for all stores, those of earlier configurations too.
func CutOffAll() {
	opened.Range(func(s, _ any) bool {
		s.(*Shared).CutOff()
		return true
	})
}
