package knowledge

import (
	"cmp"
	"slices"

	"github.com/backstory-proxy/backstory/store"
)

// rankConstant is the k of reciprocal rank fusion; 60 is what Cormack, Clarke
// and Büttcher propose (SIGIR 2009), and everybody uses.
const rankConstant = 60

// chunkID identifies a passage.
type chunkID struct {
	file string
	n    int
}

// fuse merges two rankings: a passage's score is the sum of 1/(k + rank) over
// the rankings it is in, the second counting by its weight, scaled so that the
// best possible is 1. Ranks are fused and not scores, as BM25 scores of
// different stores and terms can't be compared with each other or with a cosine.
// words are those of the question, for diverse.
func fuse(lexical, near []store.Hit, weight float64, words []string, limit int) []store.Hit {
	best := 0.0
	scores := make(map[chunkID]float64, len(lexical)+len(near))
	hits := make([]store.Hit, 0, len(lexical)+len(near))
	rank := func(ranking []store.Hit, weight float64) {
		if len(ranking) == 0 || weight <= 0 {
			return
		}
		best += weight / (rankConstant + 1)
		for i, h := range ranking {
			id := chunkID{h.FileID, h.Chunk.N}
			if _, ok := scores[id]; !ok {
				hits = append(hits, h)
			}
			scores[id] += weight / float64(rankConstant+i+1)
		}
	}
	rank(lexical, 1)
	rank(near, weight)
	for i := range hits {
		hits[i].Score = scores[chunkID{hits[i].FileID, hits[i].Chunk.N}] / best
	}
	slices.SortStableFunc(hits, func(a, b store.Hit) int { return cmp.Compare(b.Score, a.Score) })
	return diverse(hits, words, limit)
}
