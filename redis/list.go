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
		some, gone, err := s.describeAll(ctx, scope, key, page)
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
func (s *Store) describeAll(ctx context.Context, scope store.Scope, key string, page []goredis.Z) (list []store.Session, gone int64, err error) {
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
		n, err := s.run(ctx, forgetSessionScript, []string{key}, z.Member, z.Score).Int64()
		if err != nil {
			return nil, 0, err
		}
		gone += n
	}
	return list, gone, nil
}
