package recall

import (
	"cmp"
	"math"
	"slices"

	"github.com/backstory-proxy/backstory/knowledge/terms"
)

// The weights of the score. Each stands on a plateau: a third more or less changes
// little, on either half of the conversations. The numbers in brackets are the
// points of questions answered that are lost without it: means over four token budgets,
// in LoCoMo, LoCoMo without names and times, BEAM and REALTALK.
const (
	// k1 and b are BM25's.
	k1, b = 1.2, .5
	// What a term counts for a message if it occurs in the previous message, in the
	// next one, or in one that is two away (1.9, 7.4, 4.2, -.7).
	previousWeight, nextWeight, secondWeight = .25, .15, .1
	// segmentWeight is the weight of the segment's own BM25 (1.6, 1.0, .3, 2.3).
	segmentWeight = .45
)

// search is the state of one search.
type search struct {
	x             *Index
	q             Query
	scores        []float64 // by chunk, of those that may be found
	segmentScores []float64 // by segment

	// For one term; zero between terms.
	freq        []float32 // by chunk, with what its neighbours add
	segmentFreq []float32
	touched     []uint32
	ownFreq     []float32
}

// term is a term to search for.
type term struct {
	id     uint32
	weight float64
}

// Search ranks the messages by how likely a user message is to be about them. Small
// talk matches nothing.
func (x *Index) Search(q Query) *Ranking {
	q.Text = terms.Ends(q.Text)
	n := x.before(q.Before)
	s := &search{x: x, q: q, scores: make([]float64, n), segmentScores: make([]float64, len(x.segments)),
		freq: make([]float32, n), segmentFreq: make([]float32, len(x.segments))}
	words := s.words()
	if query := s.terms(words); len(query) > 0 {
		s.add(query, true)
		s.add(s.feedback(query), false)
		for p := range s.scores {
			if s.scores[p] > 0 {
				s.scores[p] += segmentWeight * s.segmentScores[s.message(p).segment]
			}
		}
	}
	s.addSimilar(words)
	s.addDates()
	s.rerank()
	s.fuseSemantic()
	return &Ranking{s}
}

// before returns the number of chunks of the messages ahead of one. The zero Ref
// means all messages.
func (x *Index) before(end Ref) int {
	if end != (Ref{}) {
		i, _ := slices.BinarySearchFunc(x.messages, end, func(m message, end Ref) int {
			return cmp.Or(cmp.Compare(m.seq, end.Seq), cmp.Compare(int(m.n), end.N))
		})
		if i < len(x.messages) {
			return int(x.messages[i].first)
		}
	}
	return len(x.chunks)
}

// message returns the message of a chunk.
func (s *search) message(p int) *message { return &s.x.messages[s.x.chunks[p].message] }

// words returns the query's words; none where it is nothing but small talk.
func (s *search) words() []string {
	words := terms.Query(s.q.Text)
	if !slices.ContainsFunc(words, func(w string) bool { return !terms.SmallTalk[w] }) {
		return nil
	}
	return words
}

// terms returns those of the words that the session holds.
func (s *search) terms(words []string) []term {
	var found []term
	for _, w := range words {
		id, ok := s.x.lookup(w)
		if ok && !has(found, id) && s.x.postings[id].live > 0 {
			found = append(found, term{id, s.x.idf(id)})
		}
	}
	return found
}

func has(terms []term, id uint32) bool {
	return slices.ContainsFunc(terms, func(t term) bool { return t.id == id })
}

// idf returns the weight of a term by its rarity in the session.
func (x *Index) idf(id uint32) float64 {
	return rarity(float64(x.live), float64(x.postings[id].live))
}

// rarity is BM25's idf, in the form that is never negative.
func rarity(all, with float64) float64 { return math.Log(1 + (all-with+.5)/(with+.5)) }

// bm25 is the score of a term that occurs freq times in a text. length is relative to
// the mean length.
func bm25(freq, length float64) float64 { return freq * (k1 + 1) / (freq + k1*(1-b+b*length)) }

// add adds the scores of the terms, to chunks and to segments.
func (s *search) add(query []term, neighbours bool) {
	x := s.x
	mean := float64(x.length)/float64(max(1, x.live)) + 1
	segmentMean := float64(x.length)/float64(len(x.segments)) + 1
	for _, t := range query {
		s.count(t.id, neighbours)
		for _, p := range s.touched {
			if n := s.freq[p]; n > 0 {
				s.scores[p] += t.weight * bm25(float64(n), float64(x.chunks[p].length)/mean)
				s.freq[p] = 0
			}
		}
		with := 0
		for _, n := range s.segmentFreq {
			if n > 0 {
				with++
			}
		}
		// The term's weight holds its rarity among chunks. Among segments it
		// has another.
		weight := t.weight / x.idf(t.id) * rarity(float64(len(x.segments)), float64(with))
		for i, n := range s.segmentFreq {
			if n > 0 {
				s.segmentScores[i] += weight * bm25(float64(n), float64(x.segments[i].length)/segmentMean)
				s.segmentFreq[i] = 0
			}
		}
	}
}

// count counts a term in each chunk and in each segment. With neighbours, messages
// around a match count it in part.
func (s *search) count(id uint32, neighbours bool) {
	x := s.x
	s.touched, s.ownFreq = s.touched[:0], s.ownFreq[:0]
	x.postings[id].each(func(p uint32, freq int) {
		if int(p) < len(s.scores) && x.chunks[p].flags&flagRemoved == 0 {
			s.touched, s.ownFreq = append(s.touched, p), append(s.ownFreq, float32(freq))
			s.freq[p] += float32(freq)
			s.segmentFreq[s.message(int(p)).segment] += float32(freq)
		}
	})
	if !neighbours {
		return
	}
	for i, n := 0, len(s.ownFreq); i < n; {
		m, most := x.chunks[s.touched[i]].message, s.ownFreq[i]
		for i++; i < n && x.chunks[s.touched[i]].message == m; i++ {
			most = max(most, s.ownFreq[i])
		}
		next, previous := x.neighbour(int(m), 1), x.neighbour(int(m), -1)
		s.addFreq(next, most*previousWeight)
		s.addFreq(previous, most*nextWeight)
		s.addFreq(x.neighbour(next, 1), most*secondWeight)
		s.addFreq(x.neighbour(previous, -1), most*secondWeight)
	}
}

// neighbour returns the next message in a direction, skipping removed ones.
func (x *Index) neighbour(m, step int) int {
	if x.removed == 0 {
		return m + step
	}
	for m += step; m >= 0 && m < len(x.messages) && x.isRemoved(m); m += step {
	}
	return m
}

// addFreq counts a term in all chunks of a message, if there is such a message.
func (s *search) addFreq(m int, freq float32) {
	if m < 0 || m >= len(s.x.messages) {
		return
	}
	for p := s.x.messages[m].first; p < s.x.end(m) && int(p) < len(s.scores); p++ {
		s.freq[p] += freq
		s.touched = append(s.touched, p)
	}
}
