package knowledge

import (
	"cmp"
	"iter"
	"math"
	"slices"
	"unicode/utf8"

	"github.com/backstory-proxy/backstory/knowledge/terms"
	"github.com/backstory-proxy/backstory/store"
)

// Pseudo-relevance feedback: what the best hits have in common is likely to
// stand in others that answer, too, in other words than the question's. On
// Cranfield nDCG@10 rises from .387 to .403; on functions by what their comments
// say of them, R@20 from .833 to .845. German paragraphs, technical documentation
// and what gets into prompts stay where they are, or gain a little. With
// a weight of .3 and the best hit moving too, Cranfield gains .005 more, and
// German paragraphs lose .008.
const (
	feedbackHits   = 3  // whose words count
	feedbackWords  = 10 // that count
	feedbackWeight = .2 // of them all beside the question's
	// stemRunes is the length of the beginning that stands for all forms of a
	// word. Porter's stems find no more.
	stemRunes = 6
)

// rerank reorders, in place, hits that were found by words, best first: behind
// the first one, those rise that share words with the first three.
func rerank(hits []store.Hit) {
	if len(hits) <= feedbackHits || hits[0].Score <= 0 {
		return
	}
	c := countWords(hits)
	weights := c.weights(hits)
	words := c.best(weights)
	scores, highest := make([]float64, len(hits)), 0.0
	for i := range hits {
		n := c.of(i)
		for _, w := range words {
			tf := float64(n[w])
			// As in BM25: neither repeats nor length count in proportion.
			scores[i] += weights[w] * tf / (tf + 1.2*(.25+.75*c.lengths[i]/c.mean))
		}
		highest = max(highest, scores[i])
	}
	if highest == 0 {
		return
	}
	top := hits[0].Score
	for i := range hits {
		hits[i].Score = hits[i].Score/top + feedbackWeight*scores[i]/highest
	}
	slices.SortStableFunc(hits[1:], func(a, b store.Hit) int { return cmp.Compare(b.Score, a.Score) })
}

// wordCounts says how often the words of the first hits stand in each of them
// all. Words go by number.
type wordCounts struct {
	words   int
	counts  []uint16  // hit by hit
	in      []float64 // how many hits a word is in
	lengths []float64 // of the hits, in words
	mean    float64
}

func (c *wordCounts) of(hit int) []uint16 { return c.counts[hit*c.words : (hit+1)*c.words] }

func countWords(hits []store.Hit) *wordCounts {
	numbers := make(map[uint64]int)
	for i := range feedbackHits {
		for stem, word := range stems(hits[i].Chunk.Text) {
			if _, known := numbers[stem]; !known && len(word) > 1 && !terms.Stop(lower(word)) {
				numbers[stem] = len(numbers)
			}
		}
	}
	c := &wordCounts{
		words: len(numbers), counts: make([]uint16, len(hits)*len(numbers)),
		in: make([]float64, len(numbers)), lengths: make([]float64, len(hits)),
	}
	for i := range hits {
		n := c.of(i)
		for stem := range stems(hits[i].Chunk.Text) {
			c.lengths[i]++
			if w, known := numbers[stem]; known && n[w] < math.MaxUint16 {
				if n[w]++; n[w] == 1 {
					c.in[w]++
				}
			}
		}
		c.mean += c.lengths[i] / float64(len(hits))
	}
	return c
}

// weights says how much each word tells of what the first hits have in common:
// more where it is frequent in good ones, and rare among all.
func (c *wordCounts) weights(hits []store.Hit) []float64 {
	weights := make([]float64, c.words)
	for i := range feedbackHits {
		for w, n := range c.of(i) {
			if n > 0 && c.in[w] > 1 {
				weights[w] += hits[i].Score * float64(n) / c.lengths[i] * math.Log(float64(len(hits)+1)/c.in[w])
			}
		}
	}
	return weights
}

// best are the words with the highest weights.
func (c *wordCounts) best(weights []float64) []int {
	words := make([]int, c.words)
	for w := range words {
		words[w] = w
	}
	slices.SortFunc(words, func(a, b int) int {
		return cmp.Or(cmp.Compare(weights[b], weights[a]), cmp.Compare(a, b))
	})
	return words[:min(feedbackWords, len(words))]
}

// stems returns the words of a text with a hash (FNV-1a) of their beginnings.
// Sixty chunks are read for each question, so that this is quicker than
// package terms, and blind to what isn't ASCII: such characters are letters.
// A text without spaces shares no words with others, and rerank does nothing.
func stems(text string) iter.Seq2[uint64, string] {
	const offset, prime = 14695981039346656037, 1099511628211
	return func(yield func(uint64, string) bool) {
		for i := 0; i < len(text); i++ {
			start, sum, runes := i, uint64(offset), 0
			for ; i < len(text) && letter[text[i]] != 0; i++ {
				if utf8.RuneStart(text[i]) {
					runes++
				}
				if runes <= stemRunes {
					sum = (sum ^ uint64(letter[text[i]])) * prime
				}
			}
			if i > start && !yield(sum, text[start:i]) {
				return
			}
		}
	}
}

// letter gives the bytes that words are made of, in lower case; 0 for others.
var letter = func() (t [256]byte) {
	for c := range 256 {
		switch {
		case 'A' <= c && c <= 'Z':
			t[c] = byte(c) | 0x20
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9', c >= utf8.RuneSelf:
			t[c] = byte(c)
		}
	}
	return t
}()

// lower is a word of stems in lower case, as far as it is ASCII.
func lower(word string) string {
	b := []byte(word)
	for i := range b {
		b[i] = letter[b[i]]
	}
	return string(b)
}
