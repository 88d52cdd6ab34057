package redis

import (
	"cmp"
	"context"
	"slices"
	"strconv"

	"github.com/RediSearch/redisearch-go/v2/redisearch"
	goredis "github.com/redis/go-redis/v9"

	"github.com/backstory-proxy/backstory/store"
)

// found is a chunk that a search came upon, its file not yet looked at.
type found struct {
	file string // escaped
	hit  store.Hit
}

// SearchText finds chunks by BM25.
func (s *Store) SearchText(ctx context.Context, scope store.Scope, terms []string, limit int) ([]store.Hit, error) {
	return s.search(ctx, scope, limit, func(to doer, excluded []string) ([]found, error) {
		return s.findText(ctx, to, scope, words(terms), excluded, limit)
	})
}

// SearchVector finds the nearest chunks by cosine.
func (s *Store) SearchVector(ctx context.Context, scope store.Scope, model string, vector []float32, limit int) ([]store.Hit, error) {
	return s.search(ctx, scope, limit, func(to doer, excluded []string) ([]found, error) {
		if len(vector) == 0 {
			return nil, nil
		}
		return s.findVector(ctx, to, scope, model, vector, excluded, limit)
	})
}

// attempts bounds how often a search is repeated without files that were found
// and may not be returned. Once is enough, unless uploads begin meanwhile.
const attempts = 4

// search finds chunks and checks their files. Where some may not be returned,
// others may have been crowded out by them, and the search is made again without
// their files.
func (s *Store) search(ctx context.Context, scope store.Scope, limit int, find func(to doer, excluded []string) ([]found, error)) ([]store.Hit, error) {
	if err := s.enter(ctx, scope); err != nil {
		return nil, err
	}
	defer s.end()
	if limit <= 0 || s.opts.NoFiles || s.opts.unindexed {
		return nil, nil
	}
	to, err := s.searcher(ctx, scope)
	if err != nil {
		return nil, failure(ctx, err)
	}
	var excluded []string
	for try := 1; ; try++ {
		candidates, err := find(to, excluded)
		if err != nil {
			return nil, failure(ctx, err)
		}
		hits, dead, err := s.check(ctx, scope, candidates)
		if err != nil {
			return nil, failure(ctx, err)
		}
		if len(dead) == 0 || try == attempts {
			return hits, nil
		}
		for _, file := range dead {
			if !slices.Contains(excluded, file) {
				excluded = append(excluded, file)
			}
		}
	}
}

// searcher is who is to be asked: in a Cluster the server that has the tenant's
// chunks, which has to ask the others, and needn't wait for the network to hear
// of most.
func (s *Store) searcher(ctx context.Context, scope store.Scope) (doer, error) {
	if cluster, ok := s.searches.(*goredis.ClusterClient); ok {
		return cluster.MasterForKey(ctx, s.layout.tenant(filesKey, scope))
	}
	return s.searches, nil
}

// check returns the hits whose files are processed, and the files of which no
// chunk is to be found.
func (s *Store) check(ctx context.Context, scope store.Scope, candidates []found) (hits []store.Hit, dead []string, err error) {
	if len(candidates) == 0 {
		return nil, nil, nil
	}
	records := make(map[string]*goredis.SliceCmd)
	pipe := s.client.Pipeline()
	for _, c := range candidates {
		if records[c.file] == nil {
			records[c.file] = pipe.HMGet(ctx, s.layout.tenant(fileKey, scope)+":"+c.file, "id", "name", "status")
		}
	}
	dark := pipe.SMembers(ctx, s.layout.tenant(darkKey, scope))
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, nil, err
	}
	for _, c := range candidates {
		record := records[c.file].Val()
		if len(record) == 3 && record[2] == string(store.FileProcessed) {
			c.hit.FileID, _ = record[0].(string)
			c.hit.Filename, _ = record[1].(string)
			hits = append(hits, c.hit)
		} else if !slices.Contains(dead, c.file) {
			dead = append(dead, c.file)
		}
	}
	if len(dead) > 0 {
		// All that is dark, so that the next search isn't crowded by others.
		for _, file := range dark.Val() {
			if !slices.Contains(dead, file) {
				dead = append(dead, file)
			}
		}
	}
	return hits, dead, nil
}

// findText asks for the words, in several queries where they are many. Scores by
// BM25 are sums over the words, so that those of the queries can be added up.
func (s *Store) findText(ctx context.Context, to doer, scope store.Scope, words, excluded []string, limit int) ([]found, error) {
	var all []found
	at := make(map[string]int) // where a chunk is in all
	queries := 0
	for group := range slices.Chunk(words, maxWords) {
		if queries++; queries > maxQueries {
			break
		}
		docs, err := s.ask(ctx, to, s.textIndex(), textQuery(scope.Tenant, group, excluded, limit))
		if isNoIndex(err) {
			if err = s.restoreText(ctx, to); err == nil {
				docs, err = s.ask(ctx, to, s.textIndex(), textQuery(scope.Tenant, group, excluded, limit))
			}
		}
		if err != nil {
			return nil, err
		}
		for _, doc := range docs {
			f, ok := readDoc(doc)
			if !ok || doc.Score <= 0 {
				continue
			}
			f.hit.Score = float64(doc.Score)
			if i, known := at[doc.Id]; known {
				all[i].hit.Score += f.hit.Score
				continue
			}
			at[doc.Id] = len(all)
			all = append(all, f)
		}
	}
	slices.SortFunc(all, better)
	return all[:min(limit, len(all))], nil
}

// better orders what was found by score; where that is equal, by place, for the
// server's order then changes from one search to the next.
func better(a, b found) int {
	return cmp.Or(cmp.Compare(b.hit.Score, a.hit.Score), cmp.Compare(a.file, b.file), cmp.Compare(a.hit.Chunk.N, b.hit.Chunk.N))
}

func (s *Store) findVector(ctx context.Context, to doer, scope store.Scope, model string, vector []float32, excluded []string, limit int) ([]found, error) {
	name := s.vectorIndex(model, len(vector))
	q := vectorQuery(scope.Tenant, vectorField(model, len(vector)), vector, excluded, limit)
	docs, err := s.ask(ctx, to, name, q)
	if isNoIndex(err) {
		var restored bool
		if restored, err = s.restoreVector(ctx, to, model, len(vector)); err == nil && restored {
			docs, err = s.ask(ctx, to, name, q)
		}
	}
	if err != nil {
		return nil, err
	}
	var all []found
	for _, doc := range docs {
		f, ok := readDoc(doc)
		text, _ := doc.Properties[distance].(string)
		d, err := strconv.ParseFloat(text, 64)
		if !ok || err != nil || d != d {
			continue
		}
		f.hit.Score = 1 - d
		all = append(all, f)
	}
	slices.SortFunc(all, better)
	return all, nil
}

// ask makes one search. The server ends one that takes too long, by its own clock.
func (s *Store) ask(ctx context.Context, to doer, name string, q *redisearch.Query) ([]redisearch.Document, error) {
	docs, _, err := index(ctx, to, name, "TIMEOUT", s.opts.SearchTimeout.Milliseconds()).Search(q)
	return docs, err
}

var _ store.Searcher = (*Store)(nil)
