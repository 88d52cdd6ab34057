package gateway

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/backstory-proxy/backstory/store"
)

// The interfaces that a store may implement beyond store.Store, by names that
// aren't those of their methods.
type (
	keyStore    = store.Keys
	usageStore  = store.Usage
	tenantStore = store.Tenants
	importer    = store.Importer
	vectorStore = store.Vectors
	fileStore   = store.Files
	searcher    = store.Searcher
	backlogged  = store.Backlog
)

// abilities are what a store can do. In place of what it can't there is something
// that keeps nothing, and refuses to where it is asked.
type abilities struct {
	store.Store
	keyStore
	usageStore
	tenantStore
	importer
	vectorStore
	fileStore
	searcher
	backlogged
	filesOff bool // no file can be added
}

func abilitiesOf(s store.Store) abilities {
	a := abilities{s, noKeys{}, noUsage{}, noTenants{}, noImporter{}, noVectors{}, noFiles{}, noFiles{}, noBacklog{}, false}
	if s, ok := s.(store.Keys); ok {
		a.keyStore = s
	}
	if s, ok := s.(store.Usage); ok {
		a.usageStore = s
	}
	if s, ok := s.(store.Tenants); ok {
		a.tenantStore = s
	}
	if s, ok := s.(store.Importer); ok {
		a.importer = s
	}
	if s, ok := s.(store.Vectors); ok {
		a.vectorStore = s
	}
	if s, ok := s.(store.Backlog); ok {
		a.backlogged = s
	}
	if off, ok := s.(interface{ FilesOff() bool }); ok {
		a.filesOff = off.FilesOff()
	}
	files, keeps := s.(store.Files)
	if s, finds := s.(store.Searcher); keeps && finds {
		a.fileStore, a.searcher = files, s
	} else {
		a.filesOff = true
	}
	return a
}

// CheckStore refuses plans that need more than the store can do.
func (g *Gateway) CheckStore(s *Shared) error {
	if _, counts := s.Store.(store.Usage); counts {
		return nil
	}
	for name, p := range g.gate.plans {
		if p.TokensPerMonth > 0 {
			return fmt.Errorf("plan %s has tokens_per_month, and the store doesn't count tokens", name)
		}
	}
	return nil
}

// noKeys leaves service keys to the configuration.
type noKeys struct{}

func (noKeys) Key(context.Context, [32]byte) (store.Key, error) {
	return store.Key{}, store.ErrNotFound
}

func (noKeys) PutKey(context.Context, store.Key) error {
	return fmt.Errorf("%w: it keeps no service keys; name them in the configuration, with the option key", store.ErrUnsupported)
}

func (noKeys) ListKeys(context.Context, string) ([]store.Key, error) { return nil, nil }

type noUsage struct{}

func (noUsage) AddUsage(context.Context, store.Scope, store.Used) error { return nil }

func (noUsage) Usage(context.Context, store.Scope, store.Month) (int64, error) { return 0, nil }

type noTenants struct{}

func (noTenants) Tenants(context.Context) ([]string, error) {
	return nil, fmt.Errorf("%w: it doesn't list tenants", store.ErrUnsupported)
}

func (noTenants) ForgetTenant(context.Context, string) (int, error) {
	return 0, fmt.Errorf("%w: it doesn't list tenants", store.ErrUnsupported)
}

type noImporter struct{}

func (noImporter) Import(context.Context, store.Import) ([]int64, error) {
	return nil, fmt.Errorf("%w: it takes in no messages", store.ErrUnsupported)
}

// noVectors has recall go by words.
type noVectors struct{}

func (noVectors) PutVectors(context.Context, store.Scope, string, []store.ExchangeVector) error {
	return nil
}

func (noVectors) Vectors(context.Context, store.Scope, string, []int64) ([]store.ExchangeVector, error) {
	return nil, nil
}

// noBacklog doesn't know whether writes wait.
type noBacklog struct{}

func (noBacklog) WriteBacklog() time.Duration { return 0 }

// noFiles is a store without files: none is found, and none can be added.
type noFiles struct{}

func (noFiles) CreateFile(context.Context, store.Scope, store.File, io.Reader) (store.File, error) {
	return store.File{}, store.ErrFilesOff
}

func (noFiles) AddChunks(context.Context, store.Scope, string, []store.Chunk) error {
	return store.ErrFilesOff
}

func (noFiles) FinishFile(context.Context, store.Scope, string, store.FileStatus, string) error {
	return store.ErrDeleted
}

func (noFiles) File(context.Context, store.Scope, string) (store.File, error) {
	return store.File{}, store.ErrNotFound
}

func (noFiles) SameFile(context.Context, store.Scope, store.File) (store.File, error) {
	return store.File{}, store.ErrNotFound
}

func (noFiles) FileTotals(context.Context, store.Scope) (store.FileTotals, error) {
	return store.FileTotals{}, nil
}

func (noFiles) ListFiles(_ context.Context, _ store.Scope, q store.FileQuery) ([]store.File, error) {
	if q.After != "" {
		return nil, store.ErrNotFound
	}
	return nil, nil
}

func (noFiles) Content(context.Context, store.Scope, string) (io.ReadCloser, error) {
	return nil, store.ErrNotFound
}

func (noFiles) DeleteFile(context.Context, store.Scope, string) error { return store.ErrNotFound }

func (noFiles) KnownVectors(_ context.Context, _ store.Scope, _ string, _ int, digests []store.ChunkDigest) ([][]float32, error) {
	return make([][]float32, len(digests)), nil
}

func (noFiles) FileChunks(context.Context, store.Scope, string, int, int) ([]store.Chunk, error) {
	return nil, store.ErrNotFound
}

func (noFiles) SetVectors(context.Context, store.Scope, string, string, []store.Chunk) error {
	return store.ErrDeleted
}

func (noFiles) SetModel(context.Context, store.Scope, string, string) error { return store.ErrDeleted }

func (noFiles) SearchText(context.Context, store.Scope, []string, int) ([]store.Hit, error) {
	return nil, nil
}

func (noFiles) SearchVector(context.Context, store.Scope, string, []float32, int) ([]store.Hit, error) {
	return nil, nil
}

func (noFiles) Chunks(context.Context, store.Scope, []store.ChunkRef) ([]store.Hit, error) {
	return nil, nil
}
