package knowledge

import (
	"cmp"
	"iter"
	"math"
	"slices"
	"unicode"
	"unicode/utf8"

	"github.com/backstory-proxy/backstory/knowledge/terms"
	"github.com/backstory-proxy/backstory/store"
)

// In languages that no store stems, hits are ranked by n-grams of characters as
// well. Over German paragraphs R@5 rises from .969 to .974 and nDCG@10 from
// .935 to .947. In English, where there are stems, Cranfield would lose .01.
const (
	// gramShare is the weight of that ranking, of the weight of words.
	gramShare  = .5
	gramLength = 4 // characters, the borders of the word among them
	// maxQuestion is the longest question that is ranked so, in bytes: a longer
	// one is a document that was pasted.
	maxQuestion = 2 << 10
)

// byGrams ranks hits by the n-grams that they share with a question; none where
// its words have stems. It is BM25 with the hits as its whole collection.
func byGrams(question string, hits []store.Hit) []store.Hit {
	if len(hits) < 2 || len(question) > maxQuestion || !terms.Unstemmed(question) {
		return nil
	}
	numbers := make(map[uint64]int)
	for g := range grams(question) {
		if _, known := numbers[g]; !known {
			numbers[g] = len(numbers)
		}
	}
	counts := make([]uint16, len(hits)*len(numbers))
	lengths := make([]float64, len(hits))
	in, mean := make([]float64, len(numbers)), 0.0
	for i := range hits {
		n := counts[i*len(numbers):]
		for g := range grams(hits[i].Chunk.Text) {
			lengths[i]++
			if at, known := numbers[g]; known && n[at] < math.MaxUint16 {
				if n[at]++; n[at] == 1 {
					in[at]++
				}
			}
		}
		mean += lengths[i] / float64(len(hits))
	}
	ranked := slices.Clone(hits)
	for i := range ranked {
		ranked[i].Score = 0
		for at, n := range counts[i*len(numbers) : (i+1)*len(numbers)] {
			if n > 0 {
				tf := float64(n)
				rare := math.Log(1 + (float64(len(hits))-in[at]+.5)/(in[at]+.5))
				ranked[i].Score += rare * tf / (tf + 1.2*(.25+.75*lengths[i]/mean))
			}
		}
	}
	slices.SortStableFunc(ranked, func(a, b store.Hit) int { return cmp.Compare(b.Score, a.Score) })
	return ranked
}

// union returns the hits of both rankings, each once.
func union(lexical, near []store.Hit) []store.Hit {
	all := slices.Clone(lexical)
	known := make(map[chunkID]bool, len(lexical))
	for _, h := range lexical {
		known[chunkID{h.FileID, h.Chunk.N}] = true
	}
	for _, h := range near {
		if !known[chunkID{h.FileID, h.Chunk.N}] {
			all = append(all, h)
		}
	}
	return all
}

// grams returns the runs of gramLength characters in the words of a text, their
// borders being characters, in lower case. Accents stay: words that differ in
// them alone are found by package terms.
func grams(text string) iter.Seq[uint64] {
	const border = 1
	return func(yield func(uint64) bool) {
		for i := 0; i < len(text); {
			r, size := utf8.DecodeRuneInString(text[i:])
			if i += size; !isLetter(r) {
				continue
			}
			// 16 bits for each of the last four characters.
			window, n := uint64(border)<<16|uint64(lowerRune(r)&0xffff), 2
			for inside := true; inside; {
				next := rune(border)
				r, size := utf8.DecodeRuneInString(text[i:])
				if inside = i < len(text) && isLetter(r); inside {
					next = lowerRune(r)
					i += size
				}
				window = window<<16 | uint64(next&0xffff)
				if n++; n >= gramLength && !yield(window) {
					return
				}
			}
		}
	}
}

func isLetter(r rune) bool {
	if r < utf8.RuneSelf {
		return letter[r] != 0
	}
	return unicode.In(r, unicode.L, unicode.N, unicode.M)
}

func lowerRune(r rune) rune {
	if r < utf8.RuneSelf {
		return rune(letter[r])
	}
	return unicode.ToLower(r)
}
