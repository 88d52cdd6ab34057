package knowledge

import (
	"cmp"
	"slices"

	"github.com/backstory-proxy/backstory/store"
)

// rankConstant is the k of reciprocal rank fusion; 60 is what Cormack, Clarke
// and Büttcher propose (SIGIR 2009), and everybody uses.
const rankConstant = 60

// chunkID identifies a chunk.
type chunkID struct {
	file string
	n    int
}

// ranking is a list of hits, best first, and how much it counts.
type ranking struct {
	hits   []store.Hit
	weight float64
}

// fuse merges rankings: a chunk's score is the sum of weight/(k + rank) over
// those that it is in, scaled so that the best possible is 1. Ranks are fused
// and not scores, as BM25 scores of different stores and terms can't be compared
// with each other or with a cosine. words are those of the question, for deduplicate.
func fuse(words []string, limit int, rankings ...ranking) []store.Hit {
	best := 0.0
	scores := make(map[chunkID]float64)
	var hits []store.Hit
	for _, r := range rankings {
		if len(r.hits) == 0 || r.weight <= 0 {
			continue
		}
		best += r.weight / (rankConstant + 1)
		for i, h := range r.hits {
			id := chunkID{h.FileID, h.Chunk.N}
			if _, known := scores[id]; !known {
				hits = append(hits, h)
			}
			scores[id] += r.weight / float64(rankConstant+i+1)
		}
	}
	for i := range hits {
		hits[i].Score = scores[chunkID{hits[i].FileID, hits[i].Chunk.N}] / best
	}
	slices.SortStableFunc(hits, func(a, b store.Hit) int { return cmp.Compare(b.Score, a.Score) })
	return deduplicate(hits, words, limit)
}
