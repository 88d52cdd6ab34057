package recall

import (
	"cmp"
	"math"
	"slices"
)

const (
	// feedbackChunks is how many of the best chunks are read for more terms.
	// feedbackTerms is how many of those are searched for, each with the weight
	// feedbackWeight (.7, .4, 1.4, 2.6; with neighbours of their matches counted, too:
	// -.3, .7, -1.0, -.6).
	feedbackChunks = 8
	feedbackTerms  = 20
	feedbackWeight = .2
)

// feedback returns terms that the best chunks share and the query lacks.
func (s *search) feedback(query []term) []term {
	x := s.x
	best := s.top(feedbackChunks)
	scores := make(map[uint32]float64)
	for _, p := range best {
		score := s.scores[p] / s.scores[best[0]] / math.Sqrt(float64(x.chunks[p].length)+1)
		x.termsOf(p, func(id uint32) { scores[id] += score })
	}
	found := make([]term, 0, len(scores))
	for id, score := range scores {
		// A term of a single chunk leads to no other.
		if x.postings[id].live > 1 && !has(query, id) {
			found = append(found, term{id, score * x.idf(id)})
		}
	}
	slices.SortFunc(found, func(a, b term) int {
		return cmp.Or(cmp.Compare(b.weight, a.weight), cmp.Compare(a.id, b.id))
	})
	found = found[:min(len(found), feedbackTerms)]
	for i := range found {
		found[i].weight = feedbackWeight * x.idf(found[i].id)
	}
	return found
}

// top returns the n best chunks so far, best first.
func (s *search) top(n int) []uint32 {
	best := make([]uint32, 0, n+1)
	for p, score := range s.scores {
		if score <= 0 || len(best) == n && score <= s.scores[best[n-1]] {
			continue
		}
		i := len(best)
		for i > 0 && s.scores[best[i-1]] < score {
			i--
		}
		best = slices.Insert(best, i, uint32(p))
		best = best[:min(n, len(best))]
	}
	return best
}
