package knowledge

import (
	"hash/fnv"
	"slices"
	"strings"

	"github.com/backstory-proxy/backstory/knowledge/terms"
	"github.com/backstory-proxy/backstory/store"
)

// alike is the share of common words from which two passages say the same.
const alike = 0.85

// diverse returns the first limit hits, those left out that repeat the text of
// a better one, and those that nearly do put behind the rest: the one word in
// which two versions of a document differ may be what was asked for. Within
// a file, where a form or a notice may come on every page, they are left out
// as well, unless they hold one of the words asked for that the better one
// doesn't.
func diverse(hits []store.Hit, words []string, limit int) []store.Hit {
	kept := make([]store.Hit, 0, min(limit, len(hits)))
	var similar []store.Hit
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
		at := slices.IndexFunc(sketches, func(better sketch) bool { return likeness(&better, &s) >= alike })
		if at < 0 {
			sketches = append(sketches, s)
			kept = append(kept, *h)
			continue
		}
		if kept[at].FileID != h.FileID || holdsMore(h.Chunk.Text, kept[at].Chunk.Text, words) {
			similar = append(similar, *h)
		}
	}
	return append(kept, similar[:min(len(similar), limit-len(kept))]...)
}

// holdsMore reports whether a text holds one of the words that the better one
// doesn't.
func holdsMore(text, better string, words []string) bool {
	mine, others := terms.Of(text), terms.Of(better)
	return slices.ContainsFunc(words, func(w string) bool { return slices.Contains(mine, w) && !slices.Contains(others, w) })
}

// sketch holds the smallest hash in each of 64 parts of a text's words; 0
// where a part is empty. It estimates likeness to within about a tenth.
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

// likeness estimates the share of the words of two texts that both have, 0 to
// 1.
func likeness(a, b *sketch) float64 {
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
