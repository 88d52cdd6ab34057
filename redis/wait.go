package redis

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/backstory-proxy/backstory/store"
)

// errTooFewReplicas is where an exchange is on the primary, and not on as many
// replicas as were asked for. Appending it again is safe.
var errTooFewReplicas = fmt.Errorf("%w: too few replicas confirmed the exchange", store.ErrUnconfirmed)

const (
	// redirects is how often an append is sent to a slot's server, which may
	// be another each time.
	redirects = 5
	// redirectPause grows with each time: a failover takes a moment.
	redirectPause = 50 * time.Millisecond
)

// replicasGone is for how long a server that too few replicas have confirmed an
// exchange to is taken to have too few: one exchange in that time waits to find
// out, the others are on the primary, and unconfirmed.
const replicasGone = 5 * time.Second

// replicas is what is known of the replicas of the servers.
type replicas struct {
	// slots bounds the saves that wait, each on a connection.
	slots chan struct{}

	mu sync.Mutex
	// gone is until when a server, by its address, has too few. Who comes then
	// finds out whether it still has, and moves it on for those who come after.
	gone map[string]time.Time
}

func newReplicas(slots int) *replicas {
	return &replicas{slots: make(chan struct{}, slots), gone: make(map[string]time.Time)}
}

// ask says whether to wait for a server's replicas, and whether that is to find
// out if there are enough again.
func (r *replicas) ask(addr string) (wait, probe bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	until, gone := r.gone[addr]
	now := time.Now()
	switch {
	case !gone:
		return true, false
	case now.Before(until):
		return false, false
	}
	r.gone[addr] = now.Add(replicasGone)
	return true, true
}

// confirmed takes in what became of an exchange for which was waited.
func (r *replicas) confirmed(addr string, yes bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if yes {
		delete(r.gone, addr)
	} else {
		r.gone[addr] = time.Now().Add(replicasGone)
	}
}

// saveAndWait is save with WAIT behind it. That counts for the connection it
// comes on alone, so that in a Cluster the slot's own server is spoken to, and
// what go-redis does elsewhere, to follow the slot when it moves, is done here.
func (s *Store) saveAndWait(ctx context.Context, c *call, b *beside) error {
	cluster, ok := s.waits.(*goredis.ClusterClient)
	if !ok {
		err := s.waitOn(ctx, s.waits, "", c, func(p goredis.Pipeliner) { b.queue(ctx, p) })
		if b.sent(); err == nil || errors.Is(err, errTooFewReplicas) {
			s.writeLater(b)
		}
		return err
	}
	for try := 1; ; try++ {
		err := s.waitAtOwner(ctx, cluster, c)
		if err == nil || errors.Is(err, errTooFewReplicas) {
			pipe := s.client.Pipeline()
			b.queue(ctx, pipe)
			_, _ = pipe.Exec(ctx) // the commands have the errors
			b.sent()
			s.writeLater(b)
			return err
		}
		if try == redirects || !isElsewhere(err) {
			return err
		}
		cluster.ReloadState(ctx)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Duration(try) * redirectPause):
		}
	}
}

func (s *Store) waitAtOwner(ctx context.Context, cluster *goredis.ClusterClient, c *call) error {
	owner, err := cluster.MasterForKey(ctx, c.keys[0])
	if err != nil {
		return err
	}
	return s.waitOn(ctx, owner, owner.Options().Addr, c, func(goredis.Pipeliner) {})
}

// waitOn runs the append, whatever else is to go with it, and WAIT; without that,
// on the connections of everyone, where the server has too few replicas.
func (s *Store) waitOn(ctx context.Context, client goredis.Cmdable, addr string, c *call, with func(goredis.Pipeliner)) error {
	wait, probe := s.replicas.ask(addr)
	if wait {
		select {
		case s.replicas.slots <- struct{}{}:
			defer func() { <-s.replicas.slots }()
		case <-ctx.Done():
			return ctx.Err()
		}
		if !probe { // who waited before may have found out
			wait, _ = s.replicas.ask(addr)
		}
	}
	if !wait {
		client = s.client
	}
	for first := true; ; first = false {
		pipe := client.Pipeline()
		with(pipe)
		if first {
			c.queue(ctx, pipe)
		} else {
			c.queueWhole(ctx, pipe)
		}
		var confirmed *goredis.Cmd
		if wait {
			confirmed = pipe.Do(ctx, "WAIT", s.opts.WaitReplicas, s.opts.WaitTimeout.Milliseconds())
		}
		_, _ = pipe.Exec(ctx) // the commands have the errors
		if first && c.unknown() {
			continue
		}
		if c.cmd.Err() != nil {
			return c.cmd.Err()
		}
		if !wait {
			return fmt.Errorf("%w: there were too few a moment ago", errTooFewReplicas)
		}
		n, err := confirmed.Int64()
		if err != nil {
			return err
		}
		enough := n >= int64(s.opts.WaitReplicas)
		if s.replicas.confirmed(addr, enough); !enough {
			return fmt.Errorf("%w: %d of %d", errTooFewReplicas, n, s.opts.WaitReplicas)
		}
		return nil
	}
}

// isElsewhere tells the errors of a server that doesn't own the slot, or not yet,
// or is gone. What was sent to it is safe to be sent again.
func isElsewhere(err error) bool {
	if errors.Is(err, errTooFewReplicas) {
		return false
	}
	_, moved := goredis.IsMovedError(err)
	_, ask := goredis.IsAskError(err)
	return moved || ask || isSilence(err) || goredis.IsTryAgainError(err) || goredis.IsReadOnlyError(err)
}
