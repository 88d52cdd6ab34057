package knowledge

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/backstory-proxy/backstory/embed"
	"github.com/backstory-proxy/backstory/store"
)

// fakeStore holds the files of all tenants in memory; it ranks by the number
// of terms in common.
type fakeStore struct {
	store.Files // what isn't overridden panics
	mu          sync.Mutex
	chunks      map[string][]store.Chunk // by tenant and file
	status      map[string]store.FileStatus
	steps       int // AddChunks so far

	addErr, textErr, vectorErr error
}

func newFakeStore() *fakeStore {
	return &fakeStore{chunks: map[string][]store.Chunk{}, status: map[string]store.FileStatus{}}
}

func (f *fakeStore) AddChunks(_ context.Context, scope store.Scope, id string, chunks []store.Chunk) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.steps++
	if f.addErr != nil {
		return f.addErr
	}
	f.chunks[scope.Tenant+"/"+id] = append(f.chunks[scope.Tenant+"/"+id], slices.Clone(chunks)...)
	return nil
}

func (f *fakeStore) FinishFile(_ context.Context, scope store.Scope, id string, status store.FileStatus, _ string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.status[scope.Tenant+"/"+id] = status
	return nil
}

// find ranks the chunks of the processed files of a tenant.
func (f *fakeStore) find(tenant string, limit int, score func(store.Chunk) float64) []store.Hit {
	f.mu.Lock()
	defer f.mu.Unlock()
	var hits []store.Hit
	for key, chunks := range f.chunks {
		id, ok := strings.CutPrefix(key, tenant+"/")
		if !ok || f.status[key] != store.FileProcessed {
			continue
		}
		for _, c := range chunks {
			if s := score(c); s > 0 {
				hits = append(hits, store.Hit{FileID: id, Filename: id, Chunk: c, Score: s})
			}
		}
	}
	slices.SortFunc(hits, func(a, b store.Hit) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.FileID, b.FileID), cmp.Compare(a.Chunk.N, b.Chunk.N))
	})
	return hits[:min(limit, len(hits))]
}

func (f *fakeStore) SearchText(_ context.Context, scope store.Scope, terms []string, limit int) ([]store.Hit, error) {
	if f.textErr != nil {
		return nil, f.textErr
	}
	return f.find(scope.Tenant, limit, func(c store.Chunk) float64 {
		n := 0
		for _, w := range strings.Fields(c.Terms) {
			if slices.Contains(terms, w) {
				n++
			}
		}
		return float64(n)
	}), nil
}

func (f *fakeStore) SearchVector(_ context.Context, scope store.Scope, _ string, vector []float32, limit int) ([]store.Hit, error) {
	if f.vectorErr != nil {
		return nil, f.vectorErr
	}
	return f.find(scope.Tenant, limit, func(c store.Chunk) (sum float64) {
		for i, x := range c.Vector {
			sum += float64(x) * float64(vector[i])
		}
		return sum
	}), nil
}

func (f *fakeStore) Chunks(context.Context, store.Scope, []store.ChunkRef) ([]store.Hit, error) {
	return nil, errors.New("not asked for in these tests")
}

// fakeEmbedder is Hashing that can fail and count.
type fakeEmbedder struct {
	*embed.Hashing
	err   error
	after int // calls that succeed before err
	calls int
	wait  bool // until the context ends
}

func (f *fakeEmbedder) Embed(ctx context.Context, via embed.Caller, texts []string) ([][]float32, error) {
	f.calls++
	if f.wait {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if f.err != nil && f.calls > f.after {
		return nil, f.err
	}
	return f.Hashing.Embed(ctx, via, texts)
}
