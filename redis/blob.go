package redis

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/klauspost/compress/zstd"
	goredis "github.com/redis/go-redis/v9"

	"github.com/backstory-proxy/backstory/store"
)

const (
	// partSize is how an original is cut up once it is compressed, and
	// partBatch how many parts are carried at once: the server answers nobody
	// else meanwhile.
	partSize  = 1 << 20
	partBatch = 4
	// uploadFor is how long an original is kept that no file came to own.
	uploadFor = time.Hour
)

// coder compresses and decompresses whole originals.
var coder = sync.OnceValues(func() (*zstd.Encoder, *zstd.Decoder) {
	// Neither fails without options that could be wrong.
	e, _ := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1))
	d, _ := zstd.NewReader(nil, zstd.WithDecoderConcurrency(0))
	return e, d
})

// upload writes an original under a key that expires unless a file comes to own
// it, and returns the number of its parts.
func (s *Store) upload(ctx context.Context, key string, content []byte) (int, error) {
	encoder, _ := coder()
	packed := encoder.EncodeAll(content, nil)
	parts := 0
	for len(packed) > 0 {
		pipe := s.client.TxPipeline()
		for i := 0; i < partBatch && len(packed) > 0; i++ {
			piece := packed[:min(partSize, len(packed))]
			packed = packed[len(piece):]
			// By number, so that a part that is sent again is there once.
			pipe.HSet(ctx, key, strconv.Itoa(parts), piece)
			parts++
		}
		pipe.Expire(ctx, key, uploadFor)
		if _, err := pipe.Exec(ctx); err != nil {
			return 0, err
		}
	}
	return parts, nil
}

// Content returns the original.
func (s *Store) Content(ctx context.Context, scope store.Scope, id string) ([]byte, error) {
	if err := s.enter(ctx, scope); err != nil {
		return nil, err
	}
	defer s.end()
	parts, err := s.client.HGet(ctx, s.layout.file(fileKey, scope, id), "parts").Int()
	if err == goredis.Nil {
		return nil, store.ErrNotFound
	}
	if err != nil {
		return nil, failure(ctx, err)
	}
	key := s.layout.file(blobKey, scope, id)
	var packed strings.Builder
	for at := 0; at < parts; at += partBatch {
		var names []string
		for part := at; part < min(at+partBatch, parts); part++ {
			names = append(names, strconv.Itoa(part))
		}
		pieces, err := s.client.HMGet(ctx, key, names...).Result()
		if err != nil {
			return nil, failure(ctx, err)
		}
		for _, piece := range pieces {
			text, ok := piece.(string)
			if !ok {
				return nil, store.ErrNotFound // it was deleted meanwhile
			}
			packed.WriteString(text)
		}
	}
	if parts == 0 {
		return nil, nil
	}
	_, decoder := coder()
	content, err := decoder.DecodeAll([]byte(packed.String()), nil)
	if err != nil {
		return nil, fmt.Errorf("redis: %w", errors.Join(errCorrupt, err))
	}
	return content, nil
}
