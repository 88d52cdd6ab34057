package knowledge

import (
	"hash/fnv"
	"slices"
	"strings"

	"github.com/backstory-proxy/backstory/knowledge/terms"
	"github.com/backstory-proxy/backstory/store"
)

// nearDuplicate is the share of common words from which two chunks say the same.
const nearDuplicate = 0.85

// deduplicate returns the first limit hits. It drops those that repeat the text
// of a better one, and moves near duplicates behind the rest: the one word in
// which two versions of a document differ may be what was asked for. Within a
// file, where a form or a notice may stand on every page, it drops near
// duplicates as well, unless they hold a word of the question that the better
// one lacks.
func deduplicate(hits []store.Hit, words []string, limit int) []store.Hit {
	kept := make([]store.Hit, 0, min(limit, len(hits)))
	var near []store.Hit
	var sketches []sketch
	texts := make(map[string]bool)
	for i := range hits {
		h := &hits[i]
		if len(kept) == limit {
			break
		}
		if texts[h.Chunk.Text] {
			continue
		}
		texts[h.Chunk.Text] = true
		s := sketchOf(h.Chunk.Text)
		at := slices.IndexFunc(sketches, func(better sketch) bool { return similarity(&better, &s) >= nearDuplicate })
		if at < 0 {
			sketches = append(sketches, s)
			kept = append(kept, *h)
			continue
		}
		if kept[at].FileID != h.FileID || holdsMore(h.Chunk.Text, kept[at].Chunk.Text, words) {
			near = append(near, *h)
		}
	}
	return append(kept, near[:min(len(near), limit-len(kept))]...)
}

// holdsMore reports whether a text holds one of the words that the better one
// doesn't.
func holdsMore(text, better string, words []string) bool {
	mine, others := terms.Of(text), terms.Of(better)
	return slices.ContainsFunc(words, func(w string) bool { return slices.Contains(mine, w) && !slices.Contains(others, w) })
}

// sketch is a MinHash of a text: the smallest hash in each of 64 buckets of its
// words; 0 where a bucket is empty. It estimates similarity to within about a
// tenth.
type sketch [64]uint64

// sketchOf hashes the words of a text with FNV-1a, mixed in the end.
func sketchOf(text string) (s sketch) {
	const golden = 0x9E3779B97F4A7C15
	for w := range strings.FieldsSeq(text) {
		h := fnv.New64a()
		_, _ = h.Write([]byte(w))
		sum := h.Sum64()
		sum = (sum ^ sum>>32) * golden
		if p := &s[sum>>58]; *p == 0 || sum < *p {
			*p = sum
		}
	}
	return s
}

// similarity estimates the share of the words of two texts that both have, 0 to
// 1.
func similarity(a, b *sketch) float64 {
	filled, common := 0, 0
	for i := range a {
		if a[i] != 0 || b[i] != 0 {
			filled++
			if a[i] == b[i] {
				common++
			}
		}
	}
	if filled == 0 {
		return 1
	}
	return float64(common) / float64(filled)
}
