package recall

import (
	"cmp"
	"math"
	"slices"

	"github.com/backstory-proxy/backstory/memory/recall/internal/wordvec"
)

const (
	// similarWeight is what a chunk with the meaning of the query counts, relative
	// to the best match of words (1.6, 1.8, 1.4, 3.0).
	similarWeight = .45
	// similarCandidates is how many of the best matches are compared. 250 are too
	// few for 8,000 tokens, and 1,000 find no more. Where fewer match, the newest
	// chunks are compared too, up to similarNewest in all, since the question may use
	// other words. That takes less than a millisecond.
	similarCandidates, similarNewest = 500, 10_000
	// Chunks that share no word with the query are found from a cosine of similarMin
	// on. The best similarTop of them are found from similarTopMin on.
	similarMin, similarTopMin = .35, .2
	similarTop                = 8
)

// vectorSum is a sum of vectors.
type vectorSum [wordvec.Dims]float32

func (d *vectorSum) add(vector []int8, factor float32) {
	vector = vector[:wordvec.Dims]
	for i := range d {
		d[i] += factor * float32(vector[i])
	}
}

// occurrence is a word of a text.
type occurrence struct {
	id     uint32
	vector wordvec.ID
}

// vector returns the vector of a chunk: the sum of its words' vectors, each weighted
// by its rarity in the session so far. Its length is wordvec.Unit if all words are
// known. Each unknown word counts as a direction of its own, so that it makes the
// vector shorter.
func (x *Index) vector(p int) []int8 { return x.vectors[p*wordvec.Dims : (p+1)*wordvec.Dims] }

// addVector appends the vector of the newest chunk.
func (x *Index) addVector(occurrences []occurrence) {
	var sum vectorSum
	rest := float32(0)
	for _, o := range occurrences {
		rest += sum.addWord(o.vector, x.idf(o.id))
	}
	sum.scale(rest)
	for _, v := range sum {
		x.vectors = append(x.vectors, int8(math.Round(float64(max(-127, min(127, v))))))
	}
	x.sum.add(x.vector(len(x.chunks)-1), 1)
}

// addWord adds a word's vector. For an unknown word it returns the square of the
// length that it would have added.
func (d *vectorSum) addWord(id wordvec.ID, weight float64) (rest float32) {
	v, w := id.Vector(), float32(weight)
	if v == "" {
		return w * w * wordvec.Unit * wordvec.Unit
	}
	v = v[:wordvec.Dims]
	for i := range d {
		d[i] += w * float32(int8(v[i]))
	}
	return 0
}

// scale scales the sum, together with the unknown rest, to wordvec.Unit.
func (d *vectorSum) scale(rest float32) {
	square := d.dot(d) + rest
	if square == 0 {
		return
	}
	f := wordvec.Unit / float32(math.Sqrt(float64(square)))
	for i := range d {
		d[i] *= f
	}
}

func (d *vectorSum) dot(e *vectorSum) float32 {
	var sum float32
	for i := range d {
		sum += d[i] * e[i]
	}
	return sum
}

// addSimilar raises the chunks that say much the same as the query in other words.
func (s *search) addSimilar(words []string) {
	q, ok := s.queryVector(words)
	if !ok || len(s.scores) == 0 {
		return
	}
	best := slices.Max(s.scores)
	if best == 0 {
		best = 1
	}
	var others []neighbour // chunks without a word of the query
	for _, p := range s.candidates(best) {
		if l := q.cosine(int(p)); s.scores[p] > 0 {
			s.scores[p] += similarWeight * best * max(0, l)
		} else if l > similarTopMin {
			others = append(others, neighbour{p, l})
		}
	}
	slices.SortFunc(others, func(a, b neighbour) int {
		return cmp.Or(cmp.Compare(b.cosine, a.cosine), cmp.Compare(b.chunk, a.chunk))
	})
	for i, o := range others {
		if i < similarTop || o.cosine > similarMin {
			s.scores[o.chunk] = similarWeight * best * o.cosine
		}
	}
}

type neighbour struct {
	chunk  uint32
	cosine float64
}

// queryVector compares a query with chunks.
type queryVector struct {
	x                         *Index
	direction                 vectorSum // of the query, without the mean, of length 1
	mean                      vectorSum // of the session's chunks: what all share tells none apart
	directionMean, meanSquare float32   // products of direction and mean with mean
}

// queryVector returns false where no word of the query is known.
func (s *search) queryVector(words []string) (q queryVector, ok bool) {
	x := s.x
	if x.live == 0 {
		return q, false
	}
	rest := float32(0)
	for _, w := range words {
		known, weight := analyse(w), rarity(float64(x.live), 0)
		if id, ok := x.ids[known.hash]; ok {
			weight = x.idf(id)
		}
		rest += q.direction.addWord(known.vector, weight)
	}
	if q.direction == (vectorSum{}) {
		return q, false
	}
	q.direction.scale(rest)
	for i := range q.mean {
		q.mean[i] = x.sum[i] / float32(x.live)
	}
	q.x, q.meanSquare = x, q.mean.dot(&q.mean)
	known, length := q.removeMean(q.direction.dot(&q.direction), q.direction.dot(&q.mean))
	for i := range q.direction {
		q.direction[i] = (q.direction[i] - known*q.mean[i]) / length
	}
	q.directionMean = q.direction.dot(&q.mean)
	return q, true
}

// removeMean returns how much of the mean is in a vector, given its square and its
// product with the mean, and the length of what remains without it. The mean is in
// the known words only. The unknown ones still count for the length.
func (q *queryVector) removeMean(square, product float32) (known, length float32) {
	const all = wordvec.Unit * wordvec.Unit
	known = min(1, square/all)
	rest := max(square, all) - 2*known*product + known*known*q.meanSquare
	return known, float32(math.Sqrt(float64(max(1, rest))))
}

// cosine returns the cosine of the query and a chunk, from -1 to 1; 0 where no word
// of the chunk is known.
func (q *queryVector) cosine(p int) float64 {
	var dot, mean, square float32
	v := q.x.vector(p)[:wordvec.Dims]
	for i := range v {
		f := float32(v[i])
		dot += q.direction[i] * f
		mean += q.mean[i] * f
		square += f * f
	}
	known, length := q.removeMean(square, mean)
	return float64((dot - known*q.directionMean) / length)
}

// candidates returns the chunks with the highest scores, up to similarCandidates, or
// up to similarNewest where fewer have a score. Of chunks with about the same score,
// it returns the newest.
func (s *search) candidates(best float64) []uint32 {
	const buckets = 256
	var histogram [buckets]int
	bucket := func(p int) int { return int(s.scores[p] / best * (buckets - 1)) }
	for p := range s.scores {
		if s.x.chunks[p].flags&flagRemoved == 0 {
			histogram[bucket(p)]++
		}
	}
	least, room := buckets-1, similarCandidates
	for least > 0 && histogram[least] <= room {
		room -= histogram[least]
		least--
	}
	if least == 0 {
		room += similarNewest - similarCandidates
	}
	found := make([]uint32, 0, similarCandidates)
	for p := len(s.scores) - 1; p >= 0; p-- {
		if s.x.chunks[p].flags&flagRemoved != 0 {
			continue
		}
		b := bucket(p)
		if b == least && room > 0 {
			room--
			found = append(found, uint32(p))
		} else if b > least {
			found = append(found, uint32(p))
		}
	}
	return found
}
