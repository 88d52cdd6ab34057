package knowledge

import (
	"context"
	"errors"
	"fmt"

	"github.com/backstory-proxy/backstory/embed"
	"github.com/backstory-proxy/backstory/store"
)

// embed sets the vectors of chunks. What they are about often stands in the
// name of the file or in a heading only, so these are embedded with the text.
//
// A text that the tenant has in a file already, under whatever name, isn't
// embedded again: a new version of a document costs what is new in it. The
// vectors are the store's, and end with the files.
func (s *Service) embed(ctx context.Context, via embed.Caller, scope store.Scope, name string, chunks []store.Chunk) error {
	if s.embedder == nil {
		return nil
	}
	if err := s.reuseVectors(ctx, scope, chunks); err != nil {
		return err
	}
	var texts []string
	var at []int
	for i, c := range chunks {
		if c.Vector == nil {
			texts, at = append(texts, name+"\n"+c.Section+"\n\n"+c.Text), append(at, i)
		}
	}
	if len(texts) == 0 {
		return nil
	}
	vectors, err := s.embedder.Embed(ctx, via, texts)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrEmbedding, err)
	}
	for i, v := range vectors {
		chunks[at[i]].Vector = v
	}
	return nil
}

// reuseVectors sets the vectors that the store already has of the same texts.
func (s *Service) reuseVectors(ctx context.Context, scope store.Scope, chunks []store.Chunk) error {
	if s.embedder.Free() {
		return nil
	}
	digests := make([]store.ChunkDigest, len(chunks))
	for i := range chunks {
		digests[i] = chunks[i].Digest()
	}
	vectors, err := s.files.KnownVectors(ctx, scope, s.embedder.Model(), s.embedder.Dimensions(), digests)
	if err != nil {
		return fmt.Errorf("look for known chunks: %w", err)
	}
	for i, v := range vectors {
		chunks[i].Vector = v
	}
	return nil
}

// ErrNotProcessed says that a file can't be re-embedded: it is being uploaded,
// or its upload failed.
var ErrNotProcessed = errors.New("the file is not processed")

// Reindex re-embeds a file whose vectors are another embedder's. It returns how
// many chunks it embedded; 0 where nothing was to be done. The file is found by
// its words all the while.
//
// It can be interrupted and run again. The error wraps ErrEmbedding where the
// embedder failed, and is store.ErrNotFound, store.ErrDeleted or ErrNotProcessed.
func (s *Service) Reindex(ctx context.Context, via embed.Caller, scope store.Scope, id string) (chunks int, err error) {
	f, err := s.files.File(ctx, scope, id)
	if err != nil {
		return 0, err
	}
	if f.Status != store.FileProcessed {
		return 0, ErrNotProcessed
	}
	if s.embedder == nil || f.Model == s.embedder.Model() {
		return 0, nil
	}
	for after := -1; ; {
		list, err := s.files.FileChunks(ctx, scope, id, after, s.step())
		if err != nil {
			return chunks, err
		}
		if len(list) == 0 {
			break
		}
		for i := range list {
			list[i].Vector = nil
		}
		if err := s.embed(ctx, via, scope, f.Name, list); err != nil {
			return chunks, err
		}
		if err := s.files.SetVectors(ctx, scope, id, s.embedder.Model(), list); err != nil {
			return chunks, err
		}
		chunks += len(list)
		after = list[len(list)-1].N
	}
	return chunks, s.files.SetModel(ctx, scope, id, s.embedder.Model())
}
