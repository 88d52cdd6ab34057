package redis

import (
	"context"
	"hash/maphash"

	"github.com/backstory-proxy/backstory/store"
)

// turns lets those wait for one another who would save into the same session.
// Sessions share a turn by chance, at no harm but a wait.
type turns struct {
	seed maphash.Seed
	of   [64]chan struct{} // each holds something while it is taken
}

func newTurns() *turns {
	t := &turns{seed: maphash.MakeSeed()}
	for i := range t.of {
		t.of[i] = make(chan struct{}, 1)
	}
	return t
}

// take waits for the session's turn; release ends it.
func (t *turns) take(ctx context.Context, scope store.Scope, session string) (release func(), err error) {
	turn := t.of[maphash.Comparable(t.seed, [3]string{scope.Tenant, scope.User, session})%uint64(len(t.of))]
	select {
	case turn <- struct{}{}:
		return func() { <-turn }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
