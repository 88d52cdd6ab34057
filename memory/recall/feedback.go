package recall

import (
	"cmp"
	"math"
	"slices"
)

const (
	// feedbackPieces is how many of the best pieces are read for more terms;
	// feedbackTerms how many of these are searched for, each at
	// feedbackWeight (.7, .4, 1.4, 2.6; with their neighbours counted -.3, .7,
	// -1.0, -.6).
	feedbackPieces = 8
	feedbackTerms  = 20
	feedbackWeight = .2
)

// feedback returns terms that the best pieces share and the query lacks.
func (s *search) feedback(query []term) []term {
	x := s.x
	best := s.top(feedbackPieces)
	shares := make(map[uint32]float64)
	for _, p := range best {
		share := s.scores[p] / s.scores[best[0]] / math.Sqrt(float64(x.pieces[p].length)+1)
		x.termsOf(p, func(id uint32) { shares[id] += share })
	}
	found := make([]term, 0, len(shares))
	for id, share := range shares {
		// What occurs once leads nowhere.
		if x.lists[id].live > 1 && !has(query, id) {
			found = append(found, term{id, share * x.idf(id)})
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

// top returns the n best pieces so far, best first.
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
