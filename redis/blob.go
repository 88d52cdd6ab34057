package redis

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
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

// window bounds what is held to compress and to decompress an original, bytes. Older
// versions took 4 MB.
const window = 1 << 20

// uploader writes an original under a key that expires unless a file comes to own
// it: it cuts what is written to it into parts, and writes some at once.
type uploader struct {
	ctx   context.Context
	store *Store
	name  string // of this upload alone
	key   string
	held  []byte
	parts int // that were written
}

func (u *uploader) upload(content io.Reader) error {
	packed, err := zstd.NewWriter(u, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1),
		zstd.WithWindowSize(window), zstd.WithLowerEncoderMem(true))
	if err != nil {
		return err
	}
	n, err := io.Copy(packed, content)
	if err == nil && n > 0 { // of nothing, there are no parts
		err = packed.Close()
	}
	if err == nil {
		err = u.flush(0)
	}
	return err
}

func (u *uploader) Write(p []byte) (int, error) {
	u.held = append(u.held, p...)
	return len(p), u.flush(partBatch * partSize)
}

// flush writes parts while more is held than that.
func (u *uploader) flush(most int) error {
	for len(u.held) > most {
		batch := u.held[:min(partBatch*partSize, len(u.held))]
		pipe := u.store.client.TxPipeline()
		for piece := range slices.Chunk(batch, partSize) {
			// By number, so that a part that is sent again is there once.
			pipe.HSet(u.ctx, u.key, strconv.Itoa(u.parts), piece)
			u.parts++
		}
		pipe.Expire(u.ctx, u.key, uploadFor)
		if _, err := pipe.Exec(u.ctx); err != nil {
			return err
		}
		u.held = append(u.held[:0], u.held[len(batch):]...)
	}
	return nil
}

// Content opens the original.
func (s *Store) Content(ctx context.Context, scope store.Scope, id string) (io.ReadCloser, error) {
	if err := s.enter(ctx, scope); err != nil {
		return nil, err
	}
	defer s.end()
	n, err := s.client.HGet(ctx, s.layout.file(fileKey, scope, id), "parts").Int()
	switch {
	case err == goredis.Nil:
		return nil, store.ErrNotFound
	case err != nil:
		return nil, failure(ctx, err)
	case n == 0:
		return io.NopCloser(strings.NewReader("")), nil
	}
	from := &blob{ctx: ctx, store: s, key: s.layout.file(blobKey, scope, id), parts: n}
	d, err := zstd.NewReader(from, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true))
	if err != nil {
		return nil, from.failure(err)
	}
	return &original{d, from}, nil
}

// blob reads a compressed original, a part at a time.
type blob struct {
	ctx         context.Context
	store       *Store
	key         string
	next, parts int
	held        string // of the last part that was read
	err         error  // why no more could be read
}

func (b *blob) Read(p []byte) (int, error) {
	if b.held == "" && b.err == nil {
		b.held, b.err = b.part()
	}
	if b.err != nil {
		return 0, b.err
	}
	n := copy(p, b.held)
	b.held = b.held[n:]
	return n, nil
}

func (b *blob) part() (string, error) {
	if b.next == b.parts {
		return "", io.EOF
	}
	if err := b.store.begin(b.ctx); err != nil {
		return "", err
	}
	defer b.store.end()
	part, err := b.store.client.HGet(b.ctx, b.key, strconv.Itoa(b.next)).Result()
	if b.next++; err == goredis.Nil {
		return "", store.ErrNotFound // it was deleted meanwhile
	}
	return part, failure(b.ctx, err)
}

// failure tells what kept the original from being read: the store, or what it holds.
func (b *blob) failure(err error) error {
	if b.err != nil && b.err != io.EOF {
		return b.err
	}
	return fmt.Errorf("redis: %w", errors.Join(errCorrupt, err))
}

// original reads an original.
type original struct {
	packed *zstd.Decoder
	from   *blob
}

func (o *original) Read(p []byte) (int, error) {
	n, err := o.packed.Read(p)
	if err != nil && err != io.EOF {
		err = o.from.failure(err)
	}
	return n, err
}

func (o *original) Close() error {
	o.packed.Close()
	return nil
}
