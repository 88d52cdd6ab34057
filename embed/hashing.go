package embed

import (
	"context"
	"fmt"
	"hash/fnv"
	"math"
	"unicode/utf8"

	"github.com/backstory-proxy/backstory/knowledge/terms"
)

// Hashing embeds without a model and without a network: words and their
// character n-grams are hashed into a vector. It knows nothing of meaning, but
// finds what word search misses: other forms of a word, compounds, typing
// errors.
type Hashing struct {
	dimensions int
}

// The shape of the vectors. Alone, at 1,024 dimensions, they hold all of the
// answer within 1,000 tokens for .87 of the questions over SQuAD, and .75 over
// Chroma's files; BM25 does for .93 and .87.
const (
	// minGram and maxGram are the lengths of the n-grams, characters. Only
	// 4, or up to 6, is worse by .01 to .03.
	minGram, maxGram = 3, 5
	// gramWeight is that of an n-gram of four characters beside a long word.
	gramWeight = 0.3
	// longWord is the length from which a word counts in full, bytes: short
	// words are common ones in every language.
	longWord = 8
	// hashingWeight: at .2 nDCG@10 rises by .017 on technical documentation
	// and .003 on Cranfield, falls by .003 on German paragraphs, and SQuAD
	// and Chroma stay where they are; above, Chroma loses.
	hashingWeight = 0.2
	// hashingFloor is about the median cosine of the tenth neighbour of
	// a question to documents that have nothing to do with it (.07 to .11);
	// that of the best chunk is above .2 for three in four questions that
	// have an answer.
	hashingFloor = 0.1
)

// NewHashing returns an offline embedder; dimensions must be positive. 1,024
// is a good number; 4,096 finds a little more at four times the memory.
func NewHashing(dimensions int) *Hashing { return &Hashing{dimensions: dimensions} }

// Model is "hashing/" and the dimension.
func (h *Hashing) Model() string { return fmt.Sprintf("hashing/%d", h.dimensions) }

// Dimensions is the length of the vectors.
func (h *Hashing) Dimensions() int { return h.dimensions }

// Weight is low: without idf, hashed vectors rank worse than BM25.
func (h *Hashing) Weight() float64 { return hashingWeight }

// Floor leaves out neighbours that share n-grams by chance only.
func (h *Hashing) Floor() float64 { return hashingFloor }

// Free is true: nothing is asked of anybody.
func (h *Hashing) Free() bool { return true }

// Embed hashes the texts. One without words, or with English stop words only,
// gets nil. It makes no calls.
func (h *Hashing) Embed(ctx context.Context, _ Caller, texts []string) ([][]float32, error) {
	vectors := make([][]float32, len(texts))
	for i, t := range texts {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if v := h.vector(t); normalise(v) {
			vectors[i] = v
		}
	}
	return vectors, nil
}

// bag counts the features of a text, in the order in which they come: sums of
// floats depend on it.
type bag struct {
	features []feature
	index    map[uint64]int
}

type feature struct {
	hash   uint64
	weight float64
	n      int
}

func (b *bag) add(hash uint64, weight float64, n int) {
	i, ok := b.index[hash]
	if !ok {
		i = len(b.features)
		b.index[hash] = i
		b.features = append(b.features, feature{hash: hash, weight: weight})
	}
	b.features[i].n += n
}

// vector sums up the features of a text; it isn't of unit length yet.
func (h *Hashing) vector(text string) []float32 {
	counts := make(map[string]int)
	var words []string
	for _, w := range terms.Of(text) {
		if terms.Stop(w) {
			continue
		}
		if counts[w]++; counts[w] == 1 {
			words = append(words, w)
		}
	}
	b := bag{index: make(map[uint64]int, 8*len(words))}
	for _, w := range words {
		b.add(hash('w', w), float64(min(len(w), longWord))/longWord, counts[w])
		grams("^"+w+"$", func(gram string, length int) {
			b.add(hash('g', gram), gramWeight*float64(length)/4, counts[w])
		})
	}
	v := make([]float32, h.dimensions)
	for _, f := range b.features {
		// A word said ten times isn't ten times as important.
		x := f.weight * (1 + math.Log(float64(f.n)))
		if f.hash>>63 == 1 { // the sign lets collisions cancel out on average
			x = -x
		}
		v[(f.hash>>16)%uint64(h.dimensions)] += float32(x)
	}
	return v
}

// grams calls add with the n-grams of a word and their lengths in characters.
func grams(w string, add func(gram string, length int)) {
	for start := 0; start < len(w); {
		end := start
		for length := 1; length <= maxGram && end < len(w); length++ {
			_, size := utf8.DecodeRuneInString(w[end:])
			end += size
			if length >= minGram {
				add(w[start:end], length)
			}
		}
		_, size := utf8.DecodeRuneInString(w[start:])
		start += size
	}
}

// hash is FNV-1a, with the high bits mixed in the end as they give the place
// and the sign. The vectors in stores depend on it, on the features and on
// terms.Of: whoever changes these changes Model too.
func hash(space byte, s string) uint64 {
	const golden = 0x9E3779B97F4A7C15
	h := fnv.New64a()
	_, _ = h.Write([]byte{space})
	_, _ = h.Write([]byte(s))
	sum := h.Sum64()
	return (sum ^ sum>>32) * golden
}

var _ Embedder = (*Hashing)(nil)
