package redis

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/RediSearch/redisearch-go/v2/redisearch"
	goredis "github.com/redis/go-redis/v9"
)

// The chunks of all tenants are in one index of words, and those with vectors in
// one more for each embedding model and dimension: a vector of another length in
// the same field would take the whole chunk out of the index. A change of model
// thus mixes nothing, and what was indexed before stays there to be found by its
// words.

// tagSeparator is a character that escape never writes.
const tagSeparator = '|'

const (
	hnswLinks        = 16
	hnswConstruction = 200
	// hnswRuntime finds all of the nearest ten in 100,000 chunks, at 2 ms; the
	// server's default of 10 finds nine.
	hnswRuntime = 200
)

// textIndex is the name of the index of words. The number changes with the schema.
func (s *Store) textIndex() string { return s.layout.global("text:2") }

func (s *Store) vectorIndex(model string, dimensions int) string {
	return s.layout.global("vectors:1:" + vectorName(model, dimensions))
}

// vectorName tells a model and dimension from others.
func vectorName(model string, dimensions int) string {
	digest := sha256.Sum256([]byte(model))
	return hex.EncodeToString(digest[:8]) + ":" + strconv.Itoa(dimensions)
}

// vectorField is the field of a chunk that holds such vectors.
func vectorField(model string, dimensions int) string {
	return "v_" + strings.ReplaceAll(vectorName(model, dimensions), ":", "_")
}

func tag(name string) redisearch.Field {
	return redisearch.NewTagFieldOptions(name, redisearch.TagFieldOptions{Separator: tagSeparator, CaseSensitive: true})
}

// createText makes the index of words, unless it is there. The stems are of
// words that were folded already: the server is to change nothing about them.
func (s *Store) createText(ctx context.Context) error {
	schema := redisearch.NewSchema(redisearch.Options{NoOffsetVectors: true, Stopwords: []string{}}).
		AddField(tag("tenant")).AddField(tag("file")).
		AddField(redisearch.NewTextFieldOptions("stems", redisearch.TextFieldOptions{NoStem: true}))
	return s.createIndex(ctx, s.textIndex(), schema)
}

// createVector makes the index of a model's vectors, unless it is there, and
// remembers that it ought to be.
func (s *Store) createVector(ctx context.Context, model string, dimensions int) error {
	attributes := map[string]any{"TYPE": "FLOAT32", "DIM": dimensions, "DISTANCE_METRIC": "COSINE"}
	algorithm := redisearch.Flat
	if s.opts.Algorithm == HNSW {
		algorithm = redisearch.HNSW
		attributes["M"], attributes["EF_CONSTRUCTION"], attributes["EF_RUNTIME"] = hnswLinks, hnswConstruction, hnswRuntime
	}
	schema := redisearch.NewSchema(redisearch.Options{NoOffsetVectors: true, Stopwords: []string{}}).
		AddField(tag("tenant")).AddField(tag("file")).
		AddField(redisearch.NewVectorFieldOptions(vectorField(model, dimensions),
			redisearch.VectorFieldOptions{Algorithm: algorithm, Attributes: attributes}))
	if err := s.client.SAdd(ctx, s.layout.global(indexesKey), vectorName(model, dimensions)).Err(); err != nil {
		return err
	}
	return s.createIndex(ctx, s.vectorIndex(model, dimensions), schema)
}

// createIndex makes an index. In a Cluster, Redis 8 makes it on every server
// whichever one is told; the search module of Redis Stack would make it on one,
// and is found out by the servers that then refuse.
func (s *Store) createIndex(ctx context.Context, name string, schema *redisearch.Schema) error {
	definition := redisearch.NewIndexDefinition().AddPrefix(s.layout.global(chunkKey) + ":")
	create := func(ctx context.Context, c doer) error {
		err := index(ctx, c, name).CreateIndexWithIndexDefinition(schema, definition)
		if isIndexThere(err) {
			return nil
		}
		return err
	}
	cluster, ok := s.client.(*goredis.ClusterClient)
	if !ok {
		return create(ctx, s.client)
	}
	err := cluster.ForEachMaster(ctx, func(ctx context.Context, c *goredis.Client) error { return create(ctx, c) })
	if _, moved := goredis.IsMovedError(err); moved {
		return errors.New("the search module looks at one server only; Redis 8 is needed for file search in a Cluster, unless files are off")
	}
	return err
}

// scanPoll is how often it is asked whether a new index is complete.
const scanPoll = 50 * time.Millisecond

// awaitIndex waits until an index that was made anew has all that there is:
// meanwhile searches return a part without a word.
func (s *Store) awaitIndex(ctx context.Context, to doer, name string) error {
	for {
		// redisearch-go's own reading of it stumbles over newer servers' replies.
		reply, err := to.Do(ctx, "FT.INFO", name).Slice()
		if err != nil {
			return err
		}
		at := slices.IndexFunc(reply, func(v any) bool { return v == "indexing" })
		if at < 0 || at+1 == len(reply) || fmt.Sprint(reply[at+1]) == "0" {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(scanPoll):
		}
	}
}

// restoreText makes the index of words again, which FLUSHALL or an operator took.
func (s *Store) restoreText(ctx context.Context, to doer) error {
	if err := s.createText(ctx); err != nil {
		return fmt.Errorf("make the index again: %w", err)
	}
	return s.awaitIndex(ctx, to, s.textIndex())
}

// restoreVector does the same for vectors; false where there never was such an
// index, and so nothing to be found.
func (s *Store) restoreVector(ctx context.Context, to doer, model string, dimensions int) (bool, error) {
	ought, err := s.client.SIsMember(ctx, s.layout.global(indexesKey), vectorName(model, dimensions)).Result()
	if err != nil || !ought {
		return false, err
	}
	if err := s.createVector(ctx, model, dimensions); err != nil {
		return false, fmt.Errorf("make the index again: %w", err)
	}
	return true, s.awaitIndex(ctx, to, s.vectorIndex(model, dimensions))
}
