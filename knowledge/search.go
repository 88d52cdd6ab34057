package knowledge

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"

	"github.com/backstory-proxy/backstory/embed"
	"github.com/backstory-proxy/backstory/knowledge/terms"
	"github.com/backstory-proxy/backstory/store"
)

// The parts of a search that can fail while the rest answers.
const (
	PartEmbedding = "embedding"
	PartVector    = "vector"
	PartLexical   = "lexical"
	// PartAll is where nothing answered, for callers that go on without files.
	PartAll = "all"
)

// Result is what a search found.
type Result struct {
	// Hits are ordered best first. Their Score is from 0 to 1; 1 is first by
	// words and by vectors.
	Hits []store.Hit
	// Degraded names the part of the search that failed, one of Part…;
	// empty: none did.
	Degraded string
}

// depth is how many hits of either ranking are fused, for each that is wanted,
// and at least minDepth.
const (
	depth    = 3
	minDepth = 50
)

// Search finds at most limit chunks of the tenant's files for a question.
// Where the embedder or one of the rankings fails, the rest answers, and
// Degraded says so; it is an error only if the store fails in all that was
// asked of it. Of a long question the two ends are searched: see terms.Ends.
func (s *Service) Search(ctx context.Context, via embed.Caller, scope store.Scope, query string, limit int) (Result, error) {
	if limit <= 0 {
		return Result{}, nil
	}
	query = terms.Ends(query)
	var (
		words                           = terms.Query(query)
		n                               = max(minDepth, depth*limit)
		lexical, near                   []store.Hit
		lexicalErr, embedErr, vectorErr error
		group                           errgroup.Group
	)
	if len(words) > 0 {
		group.Go(func() error {
			lexical, lexicalErr = s.searcher.SearchText(ctx, scope, words, n)
			return nil
		})
	}
	if s.embedder != nil {
		group.Go(func() error {
			near, embedErr, vectorErr = s.nearest(ctx, via, scope, query, n)
			return nil
		})
	}
	_ = group.Wait() // the errors are told apart below
	if err := ctx.Err(); err != nil {
		return Result{}, err
	}
	var r Result
	switch {
	case lexicalErr != nil && (s.embedder == nil || embedErr != nil || vectorErr != nil):
		return Result{}, fmt.Errorf("search by words: %w", lexicalErr)
	case vectorErr != nil && len(words) == 0:
		return Result{}, fmt.Errorf("search by vector: %w", vectorErr)
	case lexicalErr != nil:
		r.Degraded = PartLexical
	case embedErr != nil:
		r.Degraded = PartEmbedding
	case vectorErr != nil:
		r.Degraded = PartVector
	}
	rerank(lexical)
	weight := 0.0
	if s.embedder != nil {
		weight = s.embedder.Weight()
	}
	byWords, forms := 1.0, byGrams(query, union(lexical, near))
	if forms != nil {
		byWords -= gramShare // the two together count as one ranking beside the vectors
	}
	r.Hits = fuse(words, limit, ranking{lexical, byWords}, ranking{forms, gramShare}, ranking{near, weight})
	return r, nil
}

// nearest is the search by vector.
func (s *Service) nearest(ctx context.Context, via embed.Caller, scope store.Scope, query string, n int) (hits []store.Hit, embedErr, err error) {
	patience, cancel := context.WithTimeout(ctx, s.opts.EmbedTimeout)
	defer cancel()
	vectors, err := s.embedder.Embed(patience, via, []string{query})
	if err != nil {
		return nil, err, nil
	}
	if vectors[0] == nil {
		return nil, nil, nil // nothing in the question to embed
	}
	hits, err = s.searcher.SearchVector(ctx, scope, s.embedder.Model(), vectors[0], n)
	if err != nil {
		return nil, nil, err
	}
	floor := s.embedder.Floor()
	for i, h := range hits {
		if h.Score < floor { // they come best first
			return hits[:i], nil, nil
		}
	}
	return hits, nil, nil
}
