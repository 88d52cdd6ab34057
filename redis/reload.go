package redis

import (
	"context"
	"errors"

	goredis "github.com/redis/go-redis/v9"
)

// reloader has a Cluster's client ask again who owns the slots where a server
// doesn't answer. By itself go-redis asks when a server tells that a slot has
// moved, and each minute; a dead one tells nothing, and the one that took over
// would stay unknown for so long (go-redis issue 3979). It asks in the
// background, five times in a second at most.
type reloader struct{ cluster *goredis.ClusterClient }

// reloadOnSilence has every server of a Cluster watched by a reloader.
func reloadOnSilence(cluster *goredis.ClusterClient) {
	cluster.OnNewNode(func(c *goredis.Client) { c.AddHook(reloader{cluster}) })
}

func (r reloader) see(ctx context.Context, err error) {
	if isSilence(err) && !errors.Is(err, context.Canceled) {
		r.cluster.ReloadState(ctx)
	}
}

// isSilence tells the errors of a server that didn't answer, or that can't work
// because another doesn't.
func isSilence(err error) bool {
	var reply goredis.Error
	return err != nil && !errors.As(err, &reply) || goredis.IsClusterDownError(err)
}

// DialHook is part of goredis.Hook.
func (reloader) DialHook(next goredis.DialHook) goredis.DialHook {
	return next
}

// ProcessHook is part of goredis.Hook.
func (r reloader) ProcessHook(next goredis.ProcessHook) goredis.ProcessHook {
	return func(ctx context.Context, cmd goredis.Cmder) error {
		err := next(ctx, cmd)
		r.see(ctx, err)
		return err
	}
}

// ProcessPipelineHook is part of goredis.Hook.
func (r reloader) ProcessPipelineHook(next goredis.ProcessPipelineHook) goredis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []goredis.Cmder) error {
		err := next(ctx, cmds)
		r.see(ctx, err)
		return err
	}
}

var _ goredis.Hook = reloader{}
