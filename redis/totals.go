package redis

import (
	"context"
	"strconv"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/backstory-proxy/backstory/store"
)

// The totals of a tenant's files are summed up when they are asked for, and then
// kept right by the scripts that change files, for totalsFor: a proxy of an older
// version on the same server doesn't know of them.
const totalsFor = time.Hour

// sumPage is how many files a step of summing up looks at.
const sumPage = 500

// FileTotals sums the tenant's files up.
func (s *Store) FileTotals(ctx context.Context, scope store.Scope) (store.FileTotals, error) {
	if err := s.enter(ctx, scope); err != nil {
		return store.FileTotals{}, err
	}
	defer s.end()
	sum, err := s.fileTotals(ctx, scope)
	return sum, failure(ctx, err)
}

func (s *Store) fileTotals(ctx context.Context, scope store.Scope) (sum store.FileTotals, err error) {
	key := s.layout.tenant(totalsKey, scope)
	known, err := s.client.HMGet(ctx, key, "files", "bytes", "chunks").Result()
	if err != nil {
		return sum, err
	}
	if known[0] != nil {
		var n [3]int64
		for i := range n {
			text, _ := known[i].(string)
			if n[i], err = strconv.ParseInt(text, 10, 64); err != nil {
				return sum, errCorrupt
			}
		}
		return store.FileTotals{Files: int(n[0]), Bytes: n[1], Chunks: n[2]}, nil
	}
	// It expires, if this is broken off. Whoever else sums up meanwhile takes over.
	me := s.unique()
	pipe := s.client.TxPipeline()
	pipe.HSet(ctx, key, "summing", me)
	pipe.PExpire(ctx, key, time.Minute)
	if _, err := pipe.Exec(ctx); err != nil {
		return sum, err
	}
	if sum, err = s.sumFiles(ctx, scope); err != nil {
		return sum, err
	}
	return sum, s.run(ctx, setTotalsScript, []string{key}, me, totalsFor.Milliseconds(),
		sum.Files, sum.Bytes, sum.Chunks).Err()
}

func (s *Store) sumFiles(ctx context.Context, scope store.Scope) (sum store.FileTotals, err error) {
	key := s.layout.tenant(filesKey, scope)
	for start := int64(0); ; start += sumPage {
		page, err := s.client.ZRange(ctx, key, start, start+sumPage-1).Result()
		if err != nil || len(page) == 0 {
			return sum, err
		}
		pipe := s.client.Pipeline()
		records := make([]*goredis.SliceCmd, len(page))
		for i, member := range page {
			records[i] = pipe.HMGet(ctx, s.layout.file(fileKey, scope, fileOf(member)), fileFields...)
		}
		if _, err := pipe.Exec(ctx); err != nil {
			return sum, err
		}
		for _, record := range records {
			f, ok, err := readFile(record)
			if err != nil {
				return sum, err
			}
			if !ok {
				continue
			}
			sum.Files++
			sum.Bytes += f.Bytes
			if f.Status != store.FileError {
				sum.Chunks += int64(f.Chunks)
			}
		}
	}
}

// SameFile returns the file that makes f a duplicate.
func (s *Store) SameFile(ctx context.Context, scope store.Scope, f store.File) (store.File, error) {
	if err := s.enter(ctx, scope); err != nil {
		return store.File{}, err
	}
	defer s.end()
	id, err := s.client.HGet(ctx, s.layout.tenant(sameKey, scope), sameness(f)).Result()
	var same store.File
	var ok bool
	if err == nil {
		same, ok, err = readFile(s.client.HMGet(ctx, s.layout.file(fileKey, scope, id), fileFields...))
	}
	switch {
	case err == goredis.Nil || err == nil && !ok:
		return store.File{}, store.ErrNotFound
	case err != nil:
		return store.File{}, failure(ctx, err)
	}
	return same, nil
}
