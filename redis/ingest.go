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
	keys := []string{s.layout.file(fileKey, scope, id), s.layout.tenant(knownKey, scope), s.layout.tenant(totalsKey, scope)}
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
		s.layout.tenant(darkKey, scope), s.layout.tenant(sameKey, scope), s.layout.tenant(totalsKey, scope),
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
