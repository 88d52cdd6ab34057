package sqlite

import (
	"context"
	"errors"
	"strings"
	"unicode"

	"github.com/backstory-proxy/backstory/store"
)

// dark selects the files of tenant ?1 whose chunks aren't to be found: those
// being uploaded or removed. There are none most of the time, and the test costs
// next to nothing. It stands inside the ranking: a filter after it would let the
// chunks of a large upload crowd out all others.
const dark = `(SELECT id FROM files WHERE tenant = ?1 AND dark = 1)`

// The ids of a tenant's chunks are one range, which FTS5 and a scan of the
// vectors can confine themselves to.
const tenantRange = `BETWEEN ?1 << 32 AND (?1 << 32) + 4294967295`

// fetch reads the chunks that a query ranked, in the same statement, so that
// both see the same state.
const fetch = `
	SELECT f.name, f.title, c.n, c.text, c.section, c.page, c.tokens, hit.score
	FROM hit CROSS JOIN chunks c ON c.id = hit.id CROSS JOIN files f ON f.id = c.file
	ORDER BY hit.score DESC, hit.id`

// Sorting by bm25() itself is half as fast again as by the rank column.
const textQuery = `
	WITH hit (id, score) AS MATERIALIZED (
		SELECT rowid, -bm25(words) FROM words
		WHERE words MATCH ?2 AND rowid ` + tenantRange + `
			AND (NOT EXISTS ` + dark + ` OR (SELECT file FROM chunks WHERE id = words.rowid) NOT IN ` + dark + `)
		ORDER BY bm25(words), rowid LIMIT ?3
	)` + fetch

const vectorQuery = `
	WITH hit (id, score) AS MATERIALIZED (
		SELECT id, vdot(vector, ?2) AS score FROM vectors
		WHERE id ` + tenantRange + ` AND model = ?4 AND file NOT IN ` + dark + `
		ORDER BY score DESC, id LIMIT ?3
	)` + fetch

// SearchText finds chunks by BM25.
func (s *Store) SearchText(ctx context.Context, scope store.Scope, terms []string, limit int) ([]store.Hit, error) {
	match := matchAny(terms)
	if match == "" {
		return nil, ctx.Err()
	}
	return s.search(ctx, scope, textQuery, limit, match)
}

// SearchVector finds the nearest chunks by cosine: exactly, by looking at all of
// the tenant's.
func (s *Store) SearchVector(ctx context.Context, scope store.Scope, model string, vector []float32, limit int) ([]store.Hit, error) {
	return s.search(ctx, scope, vectorQuery, limit, encodeVector(vector), model)
}

func (s *Store) search(ctx context.Context, scope store.Scope, query string, limit int, what any, more ...any) ([]store.Hit, error) {
	if limit <= 0 {
		return nil, ctx.Err()
	}
	t, err := s.tenant(ctx, scope)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	rows, err := s.searchers.query(ctx, query, append([]any{t, what, limit}, more...)...)
	if err != nil {
		return nil, err
	}
	var hits []store.Hit
	err = each(ctx, rows, func() (bool, error) {
		var h store.Hit
		k := &h.Chunk
		err := rows.Scan(&h.FileID, &h.Filename, &k.N, &k.Text, &k.Section, &k.Page, &k.Tokens, &h.Score)
		hits = append(hits, h)
		return true, err
	})
	return hits, err
}

// Chunks returns the chunks named.
func (s *Store) Chunks(ctx context.Context, scope store.Scope, refs []store.ChunkRef) ([]store.Hit, error) {
	t, err := s.tenant(ctx, scope)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var hits []store.Hit
	for _, ref := range refs {
		h := store.Hit{FileID: ref.FileID}
		k := &h.Chunk
		err := s.row(ctx, `SELECT f.title, c.n, c.text, c.section, c.page, c.tokens FROM files f JOIN chunks c ON c.file = f.id
			WHERE f.tenant = ? AND f.name = ? AND f.hidden = 0 AND f.dark = 0 AND c.n = ?`, t, ref.FileID, ref.N).
			Scan(&h.Filename, &k.N, &k.Text, &k.Section, &k.Page, &k.Tokens)
		if errors.Is(err, store.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		hits = append(hits, h)
	}
	return hits, nil
}

// matchAny makes an FTS5 query that finds any of the terms. Each is quoted, so
// that it is a word and never an operator; terms in which FTS5 would find no
// word are left out, and each is asked for once. Empty where none is left.
func matchAny(terms []string) string {
	var b strings.Builder
	seen := make(map[string]bool, len(terms))
	for _, term := range terms {
		if seen[term] || strings.IndexFunc(term, isWord) < 0 {
			continue
		}
		seen[term] = true
		if b.Len() > 0 {
			b.WriteString(" OR ")
		}
		b.WriteByte('"')
		for _, r := range term {
			switch r {
			case '"':
				b.WriteString(`""`)
			case 0: // ends the query, as FTS5 reads it
				b.WriteByte(' ')
			default:
				b.WriteRune(r)
			}
		}
		b.WriteByte('"')
	}
	return b.String()
}

// isWord tells the characters that unicode61 makes words of.
func isWord(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.Is(unicode.Co, r)
}

var _ store.Searcher = (*Store)(nil)
