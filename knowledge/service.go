package knowledge

import (
	"context"
	"errors"
	"fmt"
	"slices"
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
	// Chunks is how many it comes to.
	Chunks int

	name string
	from *source
	// held are the chunks, where they are few; else the file is cut once more.
	held []store.Chunk
}

// Close gives up what is held for the file. Ingest does so too.
func (p *Prepared) Close() { p.from.close() }

const (
	// maxChunks is the most chunks that a file may come to. A file of 5,000,000
	// tokens, which is what OpenAI's file search takes, comes to 21,000 of
	// DefaultSize.
	maxChunks = 25_000
	// maxChunkBytes bounds their text, headings and terms together, bytes. Of English,
	// that many chunks take 35 MB.
	maxChunkBytes = 128 << 20
)

var (
	errManyChunks = &extract.Error{Message: fmt.Sprintf("the file comes to more than %d chunks of text; please upload it in parts", maxChunks)}
	errLongChunks = &extract.Error{Message: fmt.Sprintf("the chunks of the file come to more than %d MB of text; please upload it in parts", maxChunkBytes>>20)}
)

// Prepare reads a tenant's file and counts its chunks. What it refuses is refused
// before anything is written; the error is an *extract.Error then, and wraps
// sandbox.ErrBusy where too many files are waiting to be read. The content isn't
// kept.
func (s *Service) Prepare(ctx context.Context, tenant, name string, content extract.Content) (*Prepared, error) {
	from, err := read(ctx, s.opts.Sandbox, tenant, name, content)
	if err != nil {
		return nil, err
	}
	p := &Prepared{Info: from.info, name: name, from: from}
	var t tally
	err = s.cut(ctx, p, func(c store.Chunk) error {
		if t.chunks < ingestStep {
			p.held = append(p.held, c)
		} else {
			p.held = nil
		}
		return t.add(&c)
	})
	p.Chunks = t.chunks
	if err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

// tally counts the chunks of a file, and what they hold.
type tally struct{ chunks, bytes int }

func (t *tally) add(c *store.Chunk) error {
	t.chunks++
	t.bytes += len(c.Text) + len(c.Section) + len(c.Terms)
	switch {
	case t.chunks > maxChunks:
		return errManyChunks
	case t.bytes > maxChunkBytes:
		return errLongChunks
	}
	return nil
}

// cut cuts a file into chunks, all but their vectors.
func (s *Service) cut(ctx context.Context, p *Prepared, emit func(store.Chunk) error) error {
	return chunkBlocks(p.name, p.from.blocks, s.opts.Chunking, s.opts.Count, func(c store.Chunk) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		return emit(c)
	})
}

const (
	// ingestStep is how many chunks are embedded and written at a time; 1,000
	// vectors of 1,536 dimensions take 6 MB.
	ingestStep = 1000
	// ingestVectors bounds their vectors, bytes, for embedders with many dimensions.
	ingestVectors = 8 << 20
)

// step is how many chunks are embedded and written at a time.
func (s *Service) step() int {
	if s.embedder == nil {
		return ingestStep
	}
	return max(1, min(ingestStep, ingestVectors/4/max(s.embedder.Dimensions(), 1)))
}

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
	held, step := p.held, s.step()
	p.held = nil
	flush := func(list []store.Chunk) error {
		if err := s.embed(ctx, via, scope, p.name, list); err != nil {
			return err
		}
		if err := s.files.AddChunks(ctx, scope, id, list); err != nil {
			return fmt.Errorf("add the chunks: %w", err)
		}
		clear(list)
		return nil
	}
	if held == nil {
		err := s.cut(ctx, p, func(c store.Chunk) (err error) {
			if held = append(held, c); len(held) == step {
				err, held = flush(held), held[:0]
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	for list := range slices.Chunk(held, step) {
		if err := flush(list); err != nil {
			return err
		}
	}
	if err := s.files.FinishFile(ctx, scope, id, store.FileProcessed, ""); err != nil {
		return fmt.Errorf("finish the file: %w", err)
	}
	return nil
}
