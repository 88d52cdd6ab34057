package redis

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	goredis "github.com/redis/go-redis/v9"

	"github.com/backstory-proxy/backstory/store"
)

// What it takes not to embed a text twice, and to embed it anew: see
// store.Reembedder. FileChunks is in export.go.

// digestOf is what the known vectors go by.
func digestOf(k *store.Chunk) string {
	d := k.Digest()
	return string(d[:])
}

// place names a chunk among those of its tenant: the end of its key.
func place(id string, n int) string { return escape(id) + ":" + strconv.Itoa(n) }

// KnownVectors finds vectors by what they were made of. Of several chunks with
// the same text, the one that was added last is known.
func (s *Store) KnownVectors(ctx context.Context, scope store.Scope, model string, dimensions int, digests []store.ChunkDigest) ([][]float32, error) {
	if err := s.enter(ctx, scope); err != nil {
		return nil, err
	}
	defer s.end()
	vectors := make([][]float32, 0, len(digests))
	for batch := range slices.Chunk(digests, exportBatch) {
		found, err := s.knownVectors(ctx, scope, vectorField(model, dimensions), batch)
		if err != nil {
			return nil, failure(ctx, err)
		}
		vectors = append(vectors, found...)
	}
	return vectors, nil
}

func (s *Store) knownVectors(ctx context.Context, scope store.Scope, field string, digests []store.ChunkDigest) ([][]float32, error) {
	names := make([]string, len(digests))
	for i := range digests {
		names[i] = string(digests[i][:])
	}
	places, err := s.client.HMGet(ctx, s.layout.tenant(knownKey, scope), names...).Result()
	if err != nil {
		return nil, err
	}
	chunks := make([]*goredis.SliceCmd, len(digests))
	status := make(map[string]*goredis.StringCmd)
	pipe := s.client.Pipeline()
	for i := range places {
		place, ok := places[i].(string)
		if !ok {
			continue
		}
		chunks[i] = pipe.HMGet(ctx, s.layout.tenant(chunkKey, scope)+":"+place, "file", "digest", field)
		file, _, _ := strings.Cut(place, ":")
		if status[file] == nil {
			status[file] = pipe.HGet(ctx, s.layout.tenant(fileKey, scope)+":"+file, "status")
		}
	}
	vectors := make([][]float32, len(digests))
	if pipe.Len() == 0 {
		return vectors, nil
	}
	if _, err := pipe.Exec(ctx); err != nil && !errors.Is(err, goredis.Nil) {
		return nil, err
	}
	for i, cmd := range chunks {
		if cmd == nil || len(cmd.Val()) != 3 {
			continue
		}
		file, _ := cmd.Val()[0].(string)
		vector, _ := cmd.Val()[2].(string)
		if cmd.Val()[1] == names[i] && vector != "" && status[file] != nil && status[file].Val() == string(store.FileProcessed) {
			vectors[i] = decodeVector(vector)
		}
	}
	return vectors, nil
}

// SetVectors gives chunks other vectors, in steps.
func (s *Store) SetVectors(ctx context.Context, scope store.Scope, id, model string, chunks []store.Chunk) error {
	if err := s.enter(ctx, scope); err != nil {
		return err
	}
	defer s.end()
	err := s.setVectors(ctx, scope, id, model, chunks)
	if errors.Is(err, store.ErrDeleted) {
		return store.ErrDeleted
	}
	return failure(ctx, err)
}

func (s *Store) setVectors(ctx context.Context, scope store.Scope, id, model string, chunks []store.Chunk) error {
	if !s.opts.unindexed {
		for _, dimensions := range dimensionsOf(chunks) {
			if err := s.createVector(ctx, model, dimensions); err != nil {
				return err
			}
		}
	}
	for batch := range slices.Chunk(chunks, ingestVectors) {
		keys := []string{s.layout.file(fileKey, scope, id), s.layout.tenant(knownKey, scope)}
		args := []any{vectorPrefix}
		for i := range batch {
			k := &batch[i]
			keys = append(keys, s.layout.chunk(scope, id, k.N))
			args = append(args, digestOf(k), place(id, k.N), vectorField(model, len(k.Vector)), encodeVector(k.Vector))
		}
		status, err := s.run(ctx, setVectorsScript, keys, args...).Text()
		switch {
		case err != nil:
			return err
		case status == "":
			return store.ErrDeleted
		case status != string(store.FileProcessed):
			return fmt.Errorf("set vectors of a file that is %s", status)
		}
	}
	return nil
}

// SetModel records the model of a file's vectors.
func (s *Store) SetModel(ctx context.Context, scope store.Scope, id, model string) error {
	if err := s.enter(ctx, scope); err != nil {
		return err
	}
	defer s.end()
	there, err := s.run(ctx, setModelScript, []string{s.layout.file(fileKey, scope, id)}, model).Bool()
	if err == nil && !there {
		return store.ErrDeleted
	}
	return failure(ctx, err)
}
