package embed

import (
	"context"
	"sync"
)

// flights lets concurrent callers with the same text share one request. Only
// success is shared: a failure may be due to the leader's key, or to the
// leader having gone away, so those who waited then ask for themselves.
type flights struct {
	mu      sync.Mutex
	pending map[[32]byte]*flight
}

// flight is a request under way. vector is set before done is closed, and
// stays nil where the request failed.
type flight struct {
	done   chan struct{}
	vector []float32
}

// do returns what fetch returns, or what a successful fetch under way for the
// same key does. It runs fetch in the caller's goroutine, and waits for another
// no longer than ctx.
func (f *flights) do(ctx context.Context, key [32]byte, fetch func() ([]float32, error)) ([]float32, error) {
	f.mu.Lock()
	if other, ok := f.pending[key]; ok {
		f.mu.Unlock()
		select {
		case <-other.done:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		if other.vector != nil {
			return other.vector, nil
		}
		return fetch()
	}
	own := &flight{done: make(chan struct{})}
	if f.pending == nil {
		f.pending = make(map[[32]byte]*flight)
	}
	f.pending[key] = own
	f.mu.Unlock()

	defer func() { // also when fetch panics, so that nobody waits for ever
		f.mu.Lock()
		delete(f.pending, key)
		f.mu.Unlock()
		close(own.done)
	}()
	v, err := fetch()
	own.vector = v
	return v, err
}
