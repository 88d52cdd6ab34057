package redis

import (
	"context"
	"fmt"
	"strings"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/backstory-proxy/backstory/store"
)

const (
	// purgeBatch is how many chunks a step of a removal takes away: the server
	// answers nobody else while it takes them out of the index.
	purgeBatch = 64
	// abandoned is when an upload that made no step is held to be that of a
	// process which died; it must leave time for embedding a large file.
	abandoned = time.Hour
	// sweepEvery is how often each proxy looks for what others left undone.
	sweepEvery = 10 * time.Minute
	// sweepBatch is how much of it is looked at each time.
	sweepBatch = 1000
)

// interrupted is why an upload failed that a dead process had begun.
const interrupted = "interrupted; upload it again"

// note records that work on a file is under way, ahead of each step of it. What
// is still on record when nobody works on it any more is finished by sweep.
func (s *Store) note(ctx context.Context, scope store.Scope, id string) error {
	return s.run(ctx, putScript, []string{s.layout.global(workKey)}, "ZADD", s.now().UnixMilli(), workName(scope, id)).Err()
}

// forget takes the work off the record. If that fails, sweep finds that there is
// nothing left to do.
func (s *Store) forget(ctx context.Context, scope store.Scope, id string) {
	s.client.ZRem(ctx, s.layout.global(workKey), workName(scope, id))
}

func workName(scope store.Scope, id string) string { return escape(scope.Tenant) + ":" + escape(id) }

// DeleteFile removes a file: at once from everyone's sight, and then step by
// step from the server.
func (s *Store) DeleteFile(ctx context.Context, scope store.Scope, id string) error {
	if err := s.enter(ctx, scope); err != nil {
		return err
	}
	defer s.end()
	if err := s.note(ctx, scope, id); err != nil {
		return failure(ctx, err)
	}
	deleted, err := s.run(ctx, deleteFileScript, []string{
		s.layout.file(fileKey, scope, id), s.layout.file(goneKey, scope, id), s.layout.tenant(filesKey, scope),
		s.layout.tenant(sameKey, scope), s.layout.tenant(liveKey, scope), s.layout.tenant(darkKey, scope),
		s.layout.file(blobKey, scope, id), s.layout.tenant(totalsKey, scope),
	}, id, escape(id), s.unique()).Bool()
	if err != nil {
		return failure(ctx, err)
	}
	if !deleted {
		// Of another caller's deletion under way, the work stays on record.
		if s.client.Exists(ctx, s.layout.file(goneKey, scope, id)).Val() == 0 {
			s.forget(ctx, scope, id)
		}
		return store.ErrNotFound
	}
	return s.purge(ctx, scope, id)
}

// purge removes the chunks of a file that is deleted, or has failed, as far as
// anyone can see. It goes on in the background when ctx ends.
func (s *Store) purge(ctx context.Context, scope store.Scope, id string) error {
	result := make(chan error, 1)
	s.background(func(ctx context.Context) { result <- s.purgeChunks(ctx, scope, id) })
	select {
	case err := <-result:
		if s.ctx.Err() != nil {
			return nil // the store is closing; any proxy goes on with it
		}
		return failure(ctx, err)
	case <-ctx.Done():
		return nil
	}
}

func (s *Store) purgeChunks(ctx context.Context, scope store.Scope, id string) error {
	gone := s.layout.file(goneKey, scope, id)
	pipe := s.client.Pipeline()
	ofGone := pipe.HGet(ctx, gone, "last")
	ofFile := pipe.HGet(ctx, s.layout.file(fileKey, scope, id), "last")
	if _, err := pipe.Exec(ctx); err != nil && err != goredis.Nil {
		return err
	}
	last := -1
	for _, cmd := range []*goredis.StringCmd{ofGone, ofFile} {
		if n, err := cmd.Int(); err == nil {
			last = max(last, n)
		}
	}
	for from := 0; from <= last; from += purgeBatch {
		keys := []string{s.layout.tenant(knownKey, scope)}
		var places []any
		for n := from; n <= last && n < from+purgeBatch; n++ {
			keys = append(keys, s.layout.chunk(scope, id, n))
			places = append(places, place(id, n))
		}
		if err := s.run(ctx, purgeChunksScript, keys, places...).Err(); err != nil {
			return err
		}
	}
	if err := s.run(ctx, finishPurgeScript, []string{gone, s.layout.tenant(darkKey, scope)}, escape(id)).Err(); err != nil {
		return err
	}
	s.forget(ctx, scope, id)
	return nil
}

// sweep finishes, every now and then, what processes that are no more had begun.
func (s *Store) sweep(ctx context.Context) {
	ticker := time.NewTicker(sweepEvery)
	defer ticker.Stop()
	for {
		// An error here is one that requests see too; the next round tries again.
		_ = s.sweepOnce(ctx)
		_ = s.unlistEnded(ctx)
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

func (s *Store) sweepOnce(ctx context.Context) error {
	work, err := s.client.ZRangeWithScores(ctx, s.layout.global(workKey), 0, sweepBatch-1).Result()
	if err != nil {
		return err
	}
	for _, z := range work {
		name, _ := z.Member.(string)
		tenant, id, _ := strings.Cut(name, ":")
		idle := s.now().Sub(time.UnixMilli(int64(z.Score)))
		if err := s.resume(ctx, store.Scope{Tenant: unescape(tenant)}, unescape(id), idle); err != nil {
			return fmt.Errorf("resume %s: %w", name, err)
		}
	}
	return nil
}

// resume finishes the work on one file, for which nothing was done for a while.
func (s *Store) resume(ctx context.Context, scope store.Scope, id string, idle time.Duration) error {
	if idle < settled {
		return nil
	}
	pipe := s.client.Pipeline()
	gone := pipe.Exists(ctx, s.layout.file(goneKey, scope, id))
	status := pipe.HGet(ctx, s.layout.file(fileKey, scope, id), "status")
	dark := pipe.SIsMember(ctx, s.layout.tenant(darkKey, scope), escape(id))
	if _, err := pipe.Exec(ctx); err != nil && err != goredis.Nil {
		return err
	}
	switch uploaded := status.Val() == string(store.FileUploaded); {
	case gone.Val() == 1, status.Val() == string(store.FileError) && dark.Val():
		return s.purgeChunks(ctx, scope, id)
	case uploaded && idle >= abandoned:
		return s.finishFile(ctx, scope, id, store.FileError, interrupted)
	case !uploaded:
		s.forget(ctx, scope, id)
	}
	return nil
}
