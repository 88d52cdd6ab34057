package redis

import (
	"context"
	"errors"

	goredis "github.com/redis/go-redis/v9"

	"github.com/backstory-proxy/backstory/store"
)

// ListFiles returns files of the tenant.
func (s *Store) ListFiles(ctx context.Context, scope store.Scope, q store.FileQuery) ([]store.File, error) {
	if err := s.enter(ctx, scope); err != nil {
		return nil, err
	}
	defer s.end()
	list, err := s.listFiles(ctx, scope, q)
	if errors.Is(err, store.ErrNotFound) {
		return nil, store.ErrNotFound
	}
	return list, failure(ctx, err)
}

func (s *Store) listFiles(ctx context.Context, scope store.Scope, q store.FileQuery) ([]store.File, error) {
	key := s.layout.tenant(filesKey, scope)
	start, err := s.fileRank(ctx, scope, q)
	if err != nil {
		return nil, err
	}
	var list []store.File
	for q.Limit > len(list) {
		page, err := s.client.ZRangeArgs(ctx, goredis.ZRangeArgs{Key: key, Start: start, Stop: start + listPage - 1, Rev: bool(q.Order)}).Result()
		if err != nil {
			return nil, err
		}
		pipe := s.client.Pipeline()
		records := make([]*goredis.SliceCmd, len(page))
		for i, member := range page {
			records[i] = pipe.HMGet(ctx, s.layout.file(fileKey, scope, fileOf(member)), fileFields...)
		}
		if len(page) > 0 {
			if _, err := pipe.Exec(ctx); err != nil {
				return nil, err
			}
		}
		for _, record := range records {
			f, ok, err := readFile(record)
			if err != nil {
				return nil, err
			}
			if ok && (q.Purpose == "" || f.Purpose == q.Purpose) && len(list) < q.Limit {
				list = append(list, f)
			}
		}
		if len(page) < listPage {
			break
		}
		start += listPage
	}
	return list, nil
}

// fileOf is the id in a member of filesKey: behind the serial number and a colon.
func fileOf(member string) string { return member[min(17, len(member)):] }

// fileRank is where a listing starts.
func (s *Store) fileRank(ctx context.Context, scope store.Scope, q store.FileQuery) (int64, error) {
	if q.After == "" {
		return 0, nil
	}
	member, err := s.client.HGet(ctx, s.layout.file(fileKey, scope, q.After), "member").Result()
	if err == nil {
		key := s.layout.tenant(filesKey, scope)
		var rank int64
		if q.Order == store.Descending {
			rank, err = s.client.ZRevRank(ctx, key, member).Result()
		} else {
			rank, err = s.client.ZRank(ctx, key, member).Result()
		}
		if err == nil {
			return rank + 1, nil
		}
	}
	if err == goredis.Nil {
		return 0, store.ErrNotFound
	}
	return 0, err
}
