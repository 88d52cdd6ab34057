package knowledge

import (
	"slices"
	"strings"

	"github.com/backstory-proxy/backstory/store"
)

// alike is the share of common words from which two passages say the same.
const alike = 0.85

// diverse returns the first limit hits, those left out that repeat the text
// of a better one, and those that nearly do put behind the rest: the one word
// in which two versions of a document differ may be what was asked for.
func diverse(hits []store.Hit, limit int) []store.Hit {
	kept := make([]store.Hit, 0, min(limit, len(hits)))
	var similar []store.Hit
	var sketches []sketch
	texts := make(map[string]bool)
	for _, h := range hits {
		if len(kept) == limit {
			break
		}
		if texts[h.Chunk.Text] {
			continue
		}
		texts[h.Chunk.Text] = true
		s := sketchOf(h.Chunk.Text)
		if slices.ContainsFunc(sketches, func(better sketch) bool { return likeness(&better, &s) >= alike }) {
			similar = append(similar, h)
			continue
		}
		sketches = append(sketches, s)
		kept = append(kept, h)
	}
	return append(kept, similar[:min(len(similar), limit-len(kept))]...)
}

// sketch holds the smallest hash in each of 64 parts of a text's words; 0
// where a part is empty. It estimates likeness to within about a tenth.
type sketch [64]uint64

// sketchOf hashes the words of a text with FNV-1a, mixed in the end.
func sketchOf(text string) (s sketch) {
	const offset, prime, golden = 14695981039346656037, 1099511628211, 0x9E3779B97F4A7C15
	for w := range strings.FieldsSeq(text) {
		sum := uint64(offset)
		for i := range len(w) {
			sum = (sum ^ uint64(w[i])) * prime
		}
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
