package memory

import (
	"context"
	"errors"
	"hash/maphash"

	"github.com/backstory-proxy/backstory/store"
)

// Appender is the part of a store that saves an exchange. A store that counts tokens
// is a store.Usage, too.
type Appender interface {
	Append(ctx context.Context, a store.Append) (int64, error)
}

// Save appends the draft to its session. a holds everything but the exchange and the
// Seq that it replaces. On a conflict, Save rebases the draft on what others saved
// and tries again until the store takes it. Save doesn't change the draft: after an
// error it can be called again.
//
// It returns the exchange's Seq, or 0 where others have saved all of it. The usage is
// counted in both cases.
func (d *Draft) Save(ctx context.Context, to Appender, a store.Append) (int64, error) {
	a.Exchange, a.Replaces = d.Exchange, d.Replaces
	locked := false
	for {
		seq, err := to.Append(ctx, a)
		var c *store.Conflict
		if !errors.As(err, &c) {
			return seq, err
		}
		if a.Exchange, a.Replaces = d.Rebase(c.Newer); len(a.Exchange.Messages) == 0 {
			return 0, addUsage(ctx, to, a.Scope, a.Usage)
		}
		a.Seen = c.Seq
		if locked {
			continue
		}
		// After a first conflict, savers take turns: many that retry at once
		// would keep on conflicting with one another.
		unlock, err := lockSession(ctx, a.Scope, a.Session)
		if err != nil {
			return 0, err
		}
		defer unlock()
		locked = true
	}
}

func addUsage(ctx context.Context, to Appender, scope store.Scope, u store.Used) error {
	if usage, ok := to.(store.Usage); ok && u.Tokens > 0 {
		return usage.AddUsage(ctx, scope, u)
	}
	return nil
}

// saveLocks make saves into the same session take turns after a conflict. A lock
// is held while its channel holds an element. Sessions, of any store, may share a
// lock by chance: then one waits for the other, no more.
var (
	saveLocks    [64]chan struct{}
	saveLockSeed = maphash.MakeSeed()
)

func init() {
	for i := range saveLocks {
		saveLocks[i] = make(chan struct{}, 1)
	}
}

// lockSession waits for the session's lock. unlock releases it.
func lockSession(ctx context.Context, scope store.Scope, session string) (unlock func(), err error) {
	type name struct {
		scope   store.Scope
		session string
	}
	lock := saveLocks[maphash.Comparable(saveLockSeed, name{scope, session})%uint64(len(saveLocks))]
	select {
	case lock <- struct{}{}:
		return func() { <-lock }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
