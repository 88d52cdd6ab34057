package redis

import (
	"context"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/backstory-proxy/backstory/store"
)

// listPage is how many sessions a step of ListSessions looks at.
const listPage = 100

// ListSessions returns sessions, the most recently updated first.
func (s *Store) ListSessions(ctx context.Context, scope store.Scope, after string, limit int) ([]store.Session, error) {
	if err := s.enter(ctx, scope); err != nil {
		return nil, err
	}
	defer s.end()
	list, err := s.listSessions(ctx, scope, after, limit)
	if err == store.ErrNotFound {
		return nil, err
	}
	return list, failure(ctx, err)
}

func (s *Store) listSessions(ctx context.Context, scope store.Scope, after string, limit int) ([]store.Session, error) {
	key := s.layout.tenant(sessionsKey, scope)
	start := int64(0)
	if after != "" {
		pipe := s.client.Pipeline()
		rank := pipe.ZRevRank(ctx, key, after)
		described := s.describe(ctx, pipe, scope, after)
		if _, err := pipe.Exec(ctx); err != nil && err != goredis.Nil {
			return nil, err
		}
		_, ok, err := readSession(described)
		if err != nil {
			return nil, err
		}
		if !ok || rank.Err() == goredis.Nil {
			return nil, store.ErrNotFound
		}
		start = rank.Val() + 1
	}
	var list []store.Session
	for limit > len(list) {
		want := int64(min(limit-len(list), listPage))
		page, err := s.client.ZRevRangeWithScores(ctx, key, start, start+want-1).Result()
		if err != nil {
			return nil, err
		}
		some, gone, err := s.describeAll(ctx, scope, page)
		if err != nil {
			return nil, err
		}
		list = append(list, some...)
		if int64(len(page)) < want {
			break
		}
		start += want - gone
	}
	return list, nil
}

// settled is how old an entry of the list must be before it is held against it
// that its session isn't there: the append that lists it may be under way.
const settled = time.Minute

// describeAll describes the sessions of a page. Those that are listed only
// because an append was refused, or a deletion broken off, are left out and taken
// off the list; gone is how many were taken off.
func (s *Store) describeAll(ctx context.Context, scope store.Scope, page []goredis.Z) (list []store.Session, gone int64, err error) {
	if len(page) == 0 {
		return nil, 0, nil
	}
	pipe := s.client.Pipeline()
	described := make([]*goredis.SliceCmd, len(page))
	for i, z := range page {
		described[i] = s.describe(ctx, pipe, scope, z.Member.(string))
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, 0, err
	}
	for i, z := range page {
		d, ok, err := readSession(described[i])
		if err != nil {
			return nil, 0, err
		}
		if ok {
			list = append(list, d)
			continue
		}
		if s.now().Sub(time.UnixMicro(int64(z.Score))) < settled {
			continue
		}
		n, err := s.unlist(ctx, scope, z)
		if err != nil {
			return nil, 0, err
		}
		gone += n
	}
	return list, gone, nil
}

// unlist takes the name of a session that isn't there off the lists, unless it was
// listed anew meanwhile.
func (s *Store) unlist(ctx context.Context, scope store.Scope, z goredis.Z) (int64, error) {
	keys := []string{s.layout.tenant(sessionsKey, scope), s.layout.tenant(expiringKey, scope)}
	return s.run(ctx, forgetSessionScript, keys, z.Member, z.Score).Int64()
}

// unlistDeleted takes off the lists what a refused append has put there: the name
// of a session that was deleted, unless that is there again. If it fails, listing
// puts it right, or whoever forgets the tenant.
func (s *Store) unlistDeleted(ctx context.Context, b *beside, scope store.Scope) {
	name, _ := b.listed.Member.(string)
	if _, ok, err := readSession(s.describe(ctx, s.client, scope, name)); ok || err != nil {
		return
	}
	_, _ = s.unlist(ctx, scope, b.listed)
}

// unlistAll takes off the lists of a tenant the names of all sessions that aren't
// there.
func (s *Store) unlistAll(ctx context.Context, scope store.Scope) error {
	key := s.layout.tenant(sessionsKey, scope)
	for start := int64(0); ; {
		page, err := s.client.ZRangeWithScores(ctx, key, start, start+listPage-1).Result()
		if err != nil || len(page) == 0 {
			return err
		}
		pipe := s.client.Pipeline()
		described := make([]*goredis.SliceCmd, len(page))
		for i, z := range page {
			described[i] = s.describe(ctx, pipe, scope, z.Member.(string))
		}
		if _, err := pipe.Exec(ctx); err != nil {
			return err
		}
		start += int64(len(page))
		for i, z := range page {
			if _, ok, err := readSession(described[i]); ok || err != nil {
				continue
			}
			n, err := s.unlist(ctx, scope, z)
			if err != nil {
				return err
			}
			start -= n
		}
	}
}

// unlistEnded takes off the lists the names of sessions whose time is up, of all
// tenants for which this process has saved such sessions. Appends do so too, but
// those of the tenant alone, who may never come back.
func (s *Store) unlistEnded(ctx context.Context) error {
	before := s.now().Add(-settled).UnixMilli()
	for tenant := range s.ending.Range {
		scope := store.Scope{Tenant: tenant.(string)}
		keys := []string{s.layout.tenant(expiringKey, scope), s.layout.tenant(sessionsKey, scope)}
		for {
			n, err := s.client.Eval(ctx, unlistEndedScript, keys, before).Int64()
			if err != nil {
				return err
			}
			if n == 0 {
				break
			}
		}
	}
	return nil
}
