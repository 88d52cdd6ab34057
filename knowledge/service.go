package knowledge

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/backstory-proxy/backstory/embed"
	"github.com/backstory-proxy/backstory/knowledge/extract"
	"github.com/backstory-proxy/backstory/knowledge/sandbox"
	"github.com/backstory-proxy/backstory/store"
)

// ErrEmbedding marks the errors of Ingest that came from the embedder: the
// store is well. The embedder's own error is wrapped too.
var ErrEmbedding = errors.New("the chunks could not be embedded")

// Options of a Service.
type Options struct {
	// Count returns the number of tokens of a text. Default: one per three
	// bytes.
	Count func(string) int
	// Chunking says how files are cut.
	Chunking Chunking
	// Sandbox reads the files that aren't plain text. Default: they are read
	// in this process, which a file can bring down then.
	Sandbox *sandbox.Reader
	// EmbedTimeout is how long a search waits for the question's vector
	// before words alone answer. Default: DefaultEmbedTimeout.
	EmbedTimeout time.Duration
}

// DefaultEmbedTimeout: an embedding takes a few hundred milliseconds, and
// somebody is waiting for the answer to begin.
const DefaultEmbedTimeout = 3 * time.Second

// Service is the knowledge of all tenants.
type Service struct {
	files    store.Files
	searcher store.Searcher
	embedder embed.Embedder
	opts     Options
}

// New returns a Service over a store. embedder may be nil: search is by words
// then.
func New(files store.Files, searcher store.Searcher, embedder embed.Embedder, opts Options) *Service {
	if opts.Count == nil {
		opts.Count = func(s string) int { return (len(s) + 2) / 3 }
	}
	if opts.EmbedTimeout <= 0 {
		opts.EmbedTimeout = DefaultEmbedTimeout
	}
	return &Service{files: files, searcher: searcher, embedder: embedder, opts: opts}
}

// Model names the vectors of the files that are ingested now, for store.File;
// empty where there is no embedder.
func (s *Service) Model() string {
	if s.embedder == nil {
		return ""
	}
	return s.embedder.Model()
}

// Prepared is a file that was read, and is in no store yet.
type Prepared struct {
	// Info tells how it was read.
	Info extract.Info

	name string
	from *source
}

// Close gives up what is held for the file. Ingest does so too.
func (p *Prepared) Close() { p.from.close() }

// Prepare reads a tenant's file. What it refuses is refused before anything is
// written; the error is an *extract.Error then, and wraps sandbox.ErrBusy where
// too many files are waiting to be read. The content isn't kept.
func (s *Service) Prepare(ctx context.Context, tenant, name string, content extract.Content) (*Prepared, error) {
	from, err := read(ctx, s.opts.Sandbox, tenant, name, content)
	if err != nil {
		return nil, err
	}
	return &Prepared{Info: from.info, name: name, from: from}, nil
}

// ingestStep is how many chunks are embedded and written at a time; 1,000
// vectors of 1,536 dimensions take 6 MB.
const ingestStep = 1000

// Ingest cuts a file that the store holds as FileUploaded, embeds the chunks,
// adds them, and sets it to FileProcessed, when they are found, all together.
//
// After an error the file is still FileUploaded and nothing of it is found:
// the caller removes it with DeleteFile, or tells with FinishFile and
// FileError. The error wraps ErrEmbedding where the embedder failed, and
// store.ErrDeleted where the file was deleted meanwhile.
func (s *Service) Ingest(ctx context.Context, via embed.Caller, scope store.Scope, id string, p *Prepared) error {
	defer p.Close()
	// Few are held at a time, and none longer than needed: files are large.
	var held []store.Chunk
	flush := func() error {
		if err := s.embed(ctx, via, scope, p.name, held); err != nil {
			return err
		}
		if err := s.files.AddChunks(ctx, scope, id, held); err != nil {
			return fmt.Errorf("add the chunks: %w", err)
		}
		held = nil
		return nil
	}
	err := chunkBlocks(p.name, p.from.blocks, s.opts.Chunking, s.opts.Count, func(c store.Chunk) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		if held = append(held, c); len(held) < ingestStep {
			return nil
		}
		return flush()
	})
	if err == nil && len(held) > 0 {
		err = flush()
	}
	if err != nil {
		return err
	}
	if err := s.files.FinishFile(ctx, scope, id, store.FileProcessed, ""); err != nil {
		return fmt.Errorf("finish the file: %w", err)
	}
	return nil
}
