package memory

import (
	"context"
	"errors"
	"hash/maphash"

	"github.com/backstory-proxy/backstory/store"
)

// Appender is what it takes of a store to save an exchange. One that counts
// tokens is a store.Usage, too.
type Appender interface {
	Append(ctx context.Context, a store.Append) (int64, error)
}

// Save appends the draft to its session; a says all but the exchange and what it
// replaces. Where others were faster, it rebases the draft on what they saved, and
// tries again until it stands. The draft isn't changed: a failed Save can be tried
// again, then or later.
//
// It returns the exchange's Seq, or 0 where others have saved all of it. The usage
// counts then, too.
func (d *Draft) Save(ctx context.Context, to Appender, a store.Append) (int64, error) {
	a.Exchange, a.Replaces = d.Exchange, d.Replaces
	queued := false
	for {
		seq, err := to.Append(ctx, a)
		var c *store.Conflict
		if !errors.As(err, &c) {
			return seq, err
		}
		if a.Exchange, a.Replaces = d.Rebase(c.Newer); len(a.Exchange.Messages) == 0 {
			return 0, count(ctx, to, a.Scope, a.Usage)
		}
		a.Seen = c.Seq
		if queued {
			continue
		}
		// From here on one after the other: many who each start again whenever
		// another was faster would wear one another out.
		leave, err := queue(ctx, a.Scope, a.Session)
		if err != nil {
			return 0, err
		}
		defer leave()
		queued = true
	}
}

func count(ctx context.Context, to Appender, scope store.Scope, u store.Used) error {
	if usage, ok := to.(store.Usage); ok && u.Tokens > 0 {
		return usage.AddUsage(ctx, scope, u)
	}
	return nil
}

// places are where those wait for one another who save into the same session and
// were too slow once. Each holds something while it is taken. Sessions, of whatever
// store, share a place by chance, at no harm but a wait.
var (
	places    [64]chan struct{}
	placeSeed = maphash.MakeSeed()
)

func init() {
	for i := range places {
		places[i] = make(chan struct{}, 1)
	}
}

// queue waits for the session's place; leave frees it.
func queue(ctx context.Context, scope store.Scope, session string) (leave func(), err error) {
	type name struct {
		scope   store.Scope
		session string
	}
	place := places[maphash.Comparable(placeSeed, name{scope, session})%uint64(len(places))]
	select {
	case place <- struct{}{}:
		return func() { <-place }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
