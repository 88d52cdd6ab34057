package gateway

import (
	"context"
	"errors"
	"sync"
	"time"
)

// trialEvery is how often, while exchanges can't be kept, one request is let through
// to find out whether the store takes them again: the Retry-After of the others.
const trialEvery = retryAfter

// errNotKept says that what is paid for now would be lost.
var errNotKept = errors.New("neither the store nor the journal keeps exchanges at the moment")

// losses knows whether exchanges are lost: since one was that neither the store nor
// the journal took, until either takes one.
type losses struct {
	mu    sync.Mutex
	lossy bool
	next  time.Time // when the next one is let through
}

func (l *losses) begin() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lossy, l.next = true, time.Now().Add(trialEvery)
}

func (l *losses) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lossy = false
}

// now reports whether exchanges are lost.
func (l *losses) now() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lossy
}

// trial reports whether a request may find out whether they still are.
func (l *losses) trial() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if time.Now().Before(l.next) {
		return false
	}
	l.next = time.Now().Add(trialEvery)
	return true
}

// keeps returns an error where an exchange that ends now would be lost, as far as
// can be told.
func (s *Shared) keeps(ctx context.Context) error {
	if !s.losses.now() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	if err := s.journal.Probe(ctx); err != nil {
		return errors.Join(errNotKept, err)
	}
	s.losses.end()
	return nil
}
