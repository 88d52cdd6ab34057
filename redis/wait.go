package redis

import (
	"context"
	"errors"
	"fmt"
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

// saveAndWait is save with WAIT behind it. That counts for the connection it
// comes on alone, so that in a Cluster the slot's own server is spoken to, and
// what go-redis does elsewhere, to follow the slot when it moves, is done here.
func (s *Store) saveAndWait(ctx context.Context, c *call, b *beside) error {
	cluster, ok := s.waits.(*goredis.ClusterClient)
	if !ok {
		err := s.waitOn(ctx, s.waits, c, func(p goredis.Pipeliner) { b.queue(ctx, p) })
		if b.sent(); err == nil {
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
	return s.waitOn(ctx, owner, c, func(goredis.Pipeliner) {})
}

// waitOn runs the append, whatever else is to go with it, and WAIT.
func (s *Store) waitOn(ctx context.Context, client goredis.Cmdable, c *call, with func(goredis.Pipeliner)) error {
	for first := true; ; first = false {
		pipe := client.Pipeline()
		with(pipe)
		if first {
			c.queue(ctx, pipe)
		} else {
			c.queueWhole(ctx, pipe)
		}
		confirmed := pipe.Do(ctx, "WAIT", s.opts.WaitReplicas, s.opts.WaitTimeout.Milliseconds())
		_, _ = pipe.Exec(ctx) // the commands have the errors
		if first && c.unknown() {
			continue
		}
		if c.cmd.Err() != nil {
			return c.cmd.Err()
		}
		n, waitErr := confirmed.Int64()
		if waitErr != nil {
			return waitErr
		}
		if n < int64(s.opts.WaitReplicas) {
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
