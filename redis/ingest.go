package redis

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	goredis "github.com/redis/go-redis/v9"

	"github.com/backstory-proxy/backstory/store"
)

// ingestBatch is how many chunks a step of an upload adds. The server answers
// nobody else while it indexes them, 0.1 ms for each, and ingestVectors how many
// where they have vectors, which take HNSW up to 2.5 ms each.
const (
	ingestBatch   = 64
	ingestVectors = 16
)

// addChunksScript writes chunks of a file that is uploaded. The highest number
// is noted ahead of them: it is how far a removal has to look. Each is written
// at once: a second write would have it indexed twice, and its words counted.
//
// KEYS: file, known, chunks. ARGV: the highest number; for each chunk the number
// of its fields and values, its digest or nothing, its place, and the fields.
var addChunksScript = newScript(`
local status = redis.call('HGET', KEYS[1], 'status')
if status ~= 'uploaded' then return status or '' end
local last = tonumber(redis.call('HGET', KEYS[1], 'last') or '-1')
if tonumber(ARGV[1]) > last then redis.call('HSET', KEYS[1], 'last', ARGV[1]) end
local at, added = 2, 0
for i = 3, #KEYS do
	local n, digest = tonumber(ARGV[at]), ARGV[at + 1]
	added = added + 1 - redis.call('EXISTS', KEYS[i])
	redis.call('HSET', KEYS[i], unpack(ARGV, at + 3, at + 2 + n))
	if digest ~= '' then redis.call('HSET', KEYS[2], digest, ARGV[at + 2]) end
	at = at + n + 3
end
redis.call('HINCRBY', KEYS[1], 'chunks', added)
return status
`)

// AddChunks adds chunks to a file that is uploaded, in steps: until the file is
// processed, no search returns them.
func (s *Store) AddChunks(ctx context.Context, scope store.Scope, id string, chunks []store.Chunk) error {
	if s.opts.NoFiles {
		return store.ErrFilesOff
	}
	if err := s.enter(ctx, scope); err != nil {
		return err
	}
	defer s.end()
	err := s.addChunks(ctx, scope, id, chunks)
	if errors.Is(err, store.ErrDeleted) {
		return store.ErrDeleted
	}
	return failure(ctx, err)
}

func (s *Store) addChunks(ctx context.Context, scope store.Scope, id string, chunks []store.Chunk) error {
	model, err := s.client.HGet(ctx, s.layout.file(fileKey, scope, id), "model").Result()
	if err == goredis.Nil {
		return store.ErrDeleted
	}
	if err != nil {
		return err
	}
	size := ingestBatch
	for _, dimensions := range dimensionsOf(chunks) {
		size = ingestVectors
		if s.opts.unindexed {
			continue
		}
		if err := s.createVector(ctx, model, dimensions); err != nil {
			return err
		}
	}
	for {
		batch := chunks[:min(size, len(chunks))]
		if err := s.addBatch(ctx, scope, id, model, batch); err != nil {
			return err
		}
		if chunks = chunks[len(batch):]; len(chunks) == 0 {
			return nil
		}
		// The next step shows that this process is alive.
		if err := s.note(ctx, scope, id); err != nil {
			return err
		}
	}
}

// dimensionsOf lists the lengths of the chunks' vectors, each once.
func dimensionsOf(chunks []store.Chunk) []int {
	var list []int
	last := 0
	for i := range chunks {
		if n := len(chunks[i].Vector); n != 0 && n != last {
			list, last = append(list, n), n
		}
	}
	return list
}

func (s *Store) addBatch(ctx context.Context, scope store.Scope, id, model string, chunks []store.Chunk) error {
	keys := []string{s.layout.file(fileKey, scope, id), s.layout.tenant(knownKey, scope)}
	last := -1
	args := []any{nil}
	for i := range chunks {
		k := &chunks[i]
		if k.N < 0 || k.N > math.MaxInt32 {
			return fmt.Errorf("a chunk has the number %d", k.N)
		}
		last = max(last, k.N)
		keys = append(keys, s.layout.chunk(scope, id, k.N))
		terms := indexed(k.Terms)
		fields := []any{
			"tenant", escape(scope.Tenant), "file", escape(id), "terms", terms, "stems", stems(terms),
			"n", k.N, "text", k.Text, "section", k.Section, "page", k.Page, "tokens", k.Tokens,
		}
		digest := ""
		if len(k.Vector) > 0 {
			digest = digestOf(k)
			fields = append(fields, vectorField(model, len(k.Vector)), encodeVector(k.Vector), "digest", digest)
		}
		args = append(append(args, len(fields), digest, place(id, k.N)), fields...)
	}
	args[0] = last
	status, err := s.run(ctx, addChunksScript, keys, args...).Text()
	switch {
	case err != nil:
		return err
	case status == "":
		return store.ErrDeleted
	case status != string(store.FileUploaded):
		return fmt.Errorf("add chunks to a file that is %s", status)
	}
	return nil
}

func encodeVector(v []float32) []byte {
	b := make([]byte, 0, 4*len(v))
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	return b
}

// finishFileScript sets the status of a file, and returns the one it had.
//
// KEYS: file, live, dark, same. ARGV: id, escaped id, status, reason.
var finishFileScript = newScript(`
local before = redis.call('HGET', KEYS[1], 'status')
if not before then return '' end
if before == 'error' and ARGV[3] ~= 'error' then return before end
redis.call('HSET', KEYS[1], 'status', ARGV[3], 'reason', ARGV[4])
if ARGV[3] == 'processed' then
	redis.call('SADD', KEYS[2], ARGV[1])
	redis.call('SREM', KEYS[3], ARGV[2])
	return before
end
redis.call('SREM', KEYS[2], ARGV[1])
redis.call('SADD', KEYS[3], ARGV[2])
local same = redis.call('HGET', KEYS[1], 'same')
if ARGV[3] == 'error' and redis.call('HGET', KEYS[4], same) == ARGV[1] then
	redis.call('HDEL', KEYS[4], same)
end
return before
`)

// FinishFile sets the status of a file.
func (s *Store) FinishFile(ctx context.Context, scope store.Scope, id string, status store.FileStatus, reason string) error {
	if err := s.enter(ctx, scope); err != nil {
		return err
	}
	defer s.end()
	return s.finishFile(ctx, scope, id, status, reason)
}

func (s *Store) finishFile(ctx context.Context, scope store.Scope, id string, status store.FileStatus, reason string) error {
	if err := s.note(ctx, scope, id); err != nil {
		return failure(ctx, err)
	}
	before, err := s.run(ctx, finishFileScript, []string{
		s.layout.file(fileKey, scope, id), s.layout.tenant(liveKey, scope),
		s.layout.tenant(darkKey, scope), s.layout.tenant(sameKey, scope),
	}, id, escape(id), string(status), reason).Text()
	switch {
	case err != nil:
		return failure(ctx, err)
	case before == "":
		return store.ErrDeleted
	case before == string(store.FileError) && status != store.FileError:
		return errors.New("redis: finish a file that has failed: its chunks are gone")
	case status == store.FileError:
		return s.purge(ctx, scope, id)
	case status == store.FileProcessed:
		s.forget(ctx, scope, id)
	}
	return nil
}
