package store

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
)

// ChunkDigest tells what a chunk's vector was made of.
type ChunkDigest [16]byte

// Digest is that of the chunk: of its heading path and text. The name of its
// file doesn't count, so that a file that comes under another is known.
func (c *Chunk) Digest() (d ChunkDigest) {
	h := sha256.New()
	h.Write(binary.AppendUvarint(nil, uint64(len(c.Section))))
	h.Write([]byte(c.Section))
	h.Write([]byte(c.Text))
	copy(d[:], h.Sum(nil))
	return d
}

// Reembedder keeps vectors from being made twice, and has them made anew for
// another embedder. It is a part of Files.
type Reembedder interface {
	// KnownVectors returns a vector for each of the digests: that of the
	// model, of so many dimensions, which a chunk of a processed file of the
	// tenant has; nil where there is none, or where the store has lost sight
	// of it.
	KnownVectors(ctx context.Context, scope Scope, model string, dimensions int, digests []ChunkDigest) ([][]float32, error)
	// FileChunks returns at most limit chunks of a file, whatever its status,
	// that follow the one numbered after (-1: from the start), by their
	// numbers, with Terms and Vector; ErrNotFound where there is no file.
	FileChunks(ctx context.Context, scope Scope, id string, after, limit int) ([]Chunk, error)
	// SetVectors gives chunks of a processed file, which are there and named
	// by N, vectors of the model in place of those they have; those without a
	// Vector have none then. Searches see each step at once. ErrDeleted where
	// the file is gone.
	SetVectors(ctx context.Context, scope Scope, id, model string, chunks []Chunk) error
	// SetModel records that all vectors of a file are of the model;
	// ErrDeleted where it is gone.
	SetModel(ctx context.Context, scope Scope, id, model string) error
}
