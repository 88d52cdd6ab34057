package redis

import (
	"context"
	"strconv"

	"github.com/RediSearch/redisearch-go/v2/redisearch"
	goredis "github.com/redis/go-redis/v9"

	"github.com/backstory-proxy/backstory/store"
)

// readDoc reads a chunk; false where it went away in the middle of the search.
func readDoc(doc redisearch.Document) (f found, ok bool) {
	text := func(name string) string {
		v, _ := doc.Properties[name].(string)
		return v
	}
	if f.file = text("file"); f.file == "" {
		return f, false
	}
	f.hit.Chunk, ok = readChunk(text("n"), text("text"), text("section"), text("page"), text("tokens"))
	return f, ok
}

func readChunk(n, text, section, page, tokens string) (c store.Chunk, ok bool) {
	c.Text, c.Section = text, section
	var errs [3]error
	c.N, errs[0] = strconv.Atoi(n)
	c.Page, errs[1] = strconv.Atoi(page)
	c.Tokens, errs[2] = strconv.Atoi(tokens)
	return c, errs == [3]error{}
}

// Chunks returns the chunks named.
func (s *Store) Chunks(ctx context.Context, scope store.Scope, refs []store.ChunkRef) ([]store.Hit, error) {
	if err := s.enter(ctx, scope); err != nil {
		return nil, err
	}
	defer s.end()
	if len(refs) == 0 {
		return nil, nil
	}
	pipe := s.client.Pipeline()
	read := make([]*goredis.SliceCmd, len(refs))
	for i, ref := range refs {
		read[i] = pipe.HMGet(ctx, s.layout.chunk(scope, ref.FileID, ref.N), wanted...)
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, failure(ctx, err)
	}
	var candidates []found
	for _, cmd := range read {
		var text [6]string
		for i, v := range cmd.Val() {
			text[i], _ = v.(string)
		}
		if c, ok := readChunk(text[1], text[2], text[3], text[4], text[5]); ok {
			candidates = append(candidates, found{file: text[0], hit: store.Hit{Chunk: c}})
		}
	}
	// The files are looked at after their chunks: of one that is gone by then,
	// none is returned.
	hits, _, err := s.check(ctx, scope, candidates)
	return hits, failure(ctx, err)
}
