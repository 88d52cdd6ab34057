package redis

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"

	goredis "github.com/redis/go-redis/v9"

	"github.com/backstory-proxy/backstory/store"
)

// What a store must do to be copied: see store.Migrator.

// scanBatch is how many keys a step of looking at all of them looks at, and
// exportBatch how many commands are carried at once.
const (
	scanBatch   = 1000
	exportBatch = 256
)

// scan hands the keys with a prefix to see, batch by batch, never two at once.
// Some may come twice.
func (s *Store) scan(ctx context.Context, prefix string, see func(keys []string) error) error {
	var mu sync.Mutex
	pattern := globEscaper.Replace(prefix) + "*"
	server := func(ctx context.Context, c goredis.Cmdable) error {
		for cursor := uint64(0); ; {
			keys, next, err := c.Scan(ctx, cursor, pattern, scanBatch).Result()
			if err != nil {
				return err
			}
			if len(keys) > 0 {
				mu.Lock()
				err = see(keys)
				mu.Unlock()
			}
			if cursor = next; err != nil || cursor == 0 {
				return err
			}
		}
	}
	if cluster, ok := s.client.(*goredis.ClusterClient); ok {
		return cluster.ForEachMaster(ctx, func(ctx context.Context, c *goredis.Client) error { return server(ctx, c) })
	}
	return server(ctx, s.client)
}

var globEscaper = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`)

// FileChunks returns chunks of a file with their terms, as they are indexed, and
// vectors.
func (s *Store) FileChunks(ctx context.Context, scope store.Scope, id string, after, limit int) ([]store.Chunk, error) {
	if err := s.enter(ctx, scope); err != nil {
		return nil, err
	}
	defer s.end()
	list, err := s.fileChunks(ctx, scope, id, after, limit)
	if errors.Is(err, store.ErrNotFound) {
		return nil, store.ErrNotFound
	}
	return list, failure(ctx, err)
}

func (s *Store) fileChunks(ctx context.Context, scope store.Scope, id string, after, limit int) (list []store.Chunk, err error) {
	record, err := s.client.HMGet(ctx, s.layout.file(fileKey, scope, id), "id", "last").Result()
	if err != nil {
		return nil, err
	}
	if record[0] == nil {
		return nil, store.ErrNotFound
	}
	last := -1
	if text, ok := record[1].(string); ok {
		if last, err = strconv.Atoi(text); err != nil {
			return nil, errCorrupt
		}
	}
	for n := max(after, -1) + 1; n <= last && len(list) < limit; {
		end := min(n+min(exportBatch, limit-len(list)), last+1)
		pipe := s.client.Pipeline()
		read := make([]*goredis.MapStringStringCmd, end-n)
		for i := range read {
			read[i] = pipe.HGetAll(ctx, s.layout.chunk(scope, id, n+i))
		}
		if _, err := pipe.Exec(ctx); err != nil {
			return nil, err
		}
		for _, cmd := range read {
			fields := cmd.Val()
			if len(fields) == 0 {
				continue // numbers may be left out
			}
			k, ok := readChunk(fields["n"], fields["text"], fields["section"], fields["page"], fields["tokens"])
			if !ok {
				return nil, errCorrupt
			}
			k.Terms = fields["terms"]
			for name, value := range fields {
				if strings.HasPrefix(name, vectorPrefix) {
					k.Vector = decodeVector(value)
				}
			}
			list = append(list, k)
		}
		n = end
	}
	return list, nil
}

// vectorPrefix begins the fields that vectorField names, and no others.
const vectorPrefix = "v_"

func decodeVector(b string) []float32 {
	var v []float32
	for ; len(b) >= 4; b = b[4:] {
		v = append(v, math.Float32frombits(binary.LittleEndian.Uint32([]byte(b[:4]))))
	}
	return v
}

// RestoreSessions sets the times and the order of sessions. The order is by
// microseconds, of which a millisecond has enough to keep apart what was updated
// in the same one.
func (s *Store) RestoreSessions(ctx context.Context, scope store.Scope, list []store.Session) error {
	if err := s.enter(ctx, scope); err != nil {
		return err
	}
	defer s.end()
	key := s.layout.tenant(sessionsKey, scope)
	var latest int64
	for batch := range slices.Chunk(list, exportBatch) {
		pipe := s.client.Pipeline()
		there := make([]*goredis.Cmd, len(batch))
		for i, d := range batch {
			tag := sessionTag(scope, d.ID)
			keys := []string{
				s.layout.tagged(vectorsKey, tag), s.layout.tagged(sessionKey, tag), s.layout.tagged(logKey, tag), s.layout.tagged(seenKey, tag),
			}
			there[i] = pipe.Eval(ctx, restoreSessionScript, keys, d.Created.UnixMilli(), d.Updated.UnixMilli(),
				d.TTL.Milliseconds(), d.Updated.Add(d.TTL).Sub(s.now()).Milliseconds())
		}
		if _, err := pipe.Exec(ctx); err != nil {
			return failure(ctx, err)
		}
		var listed []goredis.Z
		for i, d := range batch {
			latest = max(latest+1, d.Updated.UnixMicro())
			if n, _ := there[i].Int(); n == 1 {
				listed = append(listed, goredis.Z{Score: float64(latest), Member: d.ID})
			}
		}
		if len(listed) == 0 {
			continue
		}
		if err := s.client.ZAdd(ctx, key, listed...).Err(); err != nil {
			return failure(ctx, err)
		}
	}
	return nil
}

// RemoveFile removes a file, and what a deletion that was broken off has left of
// one.
func (s *Store) RemoveFile(ctx context.Context, scope store.Scope, id string) error {
	err := s.DeleteFile(ctx, scope, id)
	if !errors.Is(err, store.ErrNotFound) {
		return err
	}
	if err := s.enter(ctx, scope); err != nil {
		return err
	}
	defer s.end()
	return failure(ctx, s.purgeChunks(ctx, scope, id))
}

var _ store.Migrator = (*Store)(nil)
