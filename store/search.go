package store

import "context"

// Hit is a chunk that a search found. Its Vector and Terms aren't filled in.
type Hit struct {
	FileID   string
	Filename string
	Chunk    Chunk
	// Score is comparable within one result only. Of a vector search it is
	// the cosine.
	Score float64
}

// Searcher finds chunks of a tenant's processed files, best first. To find
// nothing is no error.
type Searcher interface {
	// SearchText finds by BM25 the chunks that hold any of the terms; terms
	// are single words normalised like Chunk.Terms, and are data, whatever
	// characters they hold.
	SearchText(ctx context.Context, scope Scope, terms []string, limit int) ([]Hit, error)
	// SearchVector finds the nearest chunks by cosine among those embedded
	// with the model; vector is of unit length.
	SearchVector(ctx context.Context, scope Scope, model string, vector []float32, limit int) ([]Hit, error)
	// Chunks returns the chunks named, in that order, less those that are no
	// longer there or whose file isn't processed. Their Score is 0.
	Chunks(ctx context.Context, scope Scope, refs []ChunkRef) ([]Hit, error)
}
