package recall

import (
	"cmp"
	"math"
	"slices"

	"github.com/backstory-proxy/backstory/knowledge/terms"
)

// The weights of the score. All stand on a plateau: a third more or less changes
// little, on either half of the conversations. In brackets, what each brings:
// the points of questions answered that are lost without it, means over four
// budgets, in LoCoMo, LoCoMo without names and times, BEAM and REALTALK.
const (
	// k1 and b are BM25's.
	k1, b = 1.2, .5
	// What a term of the message before counts, of the one after, and of
	// those two away (1.9, 7.4, 4.2, -.7).
	previousShare, nextShare, secondShare = .25, .15, .1
	// sittingShare is what the sitting's own BM25 counts (1.6, 1.0, .3, 2.3).
	sittingShare = .45
)

// search is one search under way.
type search struct {
	x      *Index
	q      Query
	scores []float64 // by piece, of those that may be found
	sits   []float64 // by sitting

	// For one term, zero between terms.
	times    []float32 // by piece: how often, neighbours' included
	sitTimes []float32
	touched  []uint32
	own      []float32
}

// term is a term to search for.
type term struct {
	id     uint32
	weight float64
}

// Search ranks the messages by how likely a user message is to be about them.
// Small talk matches nothing.
func (x *Index) Search(q Query) *Ranking {
	q.Text = ends(q.Text)
	n := x.before(q.Before)
	s := &search{x: x, q: q, scores: make([]float64, n), sits: make([]float64, len(x.sittings)),
		times: make([]float32, n), sitTimes: make([]float32, len(x.sittings))}
	words := s.words()
	if query := s.terms(words); len(query) > 0 {
		s.add(query, true)
		s.add(s.feedback(query), false)
		for p := range s.scores {
			if s.scores[p] > 0 {
				s.scores[p] += sittingShare * s.sits[s.message(p).sitting]
			}
		}
	}
	s.alike(words)
	s.dates()
	s.weigh()
	s.near()
	return s.rank()
}

// before is the number of pieces of the messages ahead of one; the zero Ref
// stands for all.
func (x *Index) before(end Ref) int {
	if end != (Ref{}) {
		i, _ := slices.BinarySearchFunc(x.messages, end, func(m message, end Ref) int {
			return cmp.Or(cmp.Compare(m.seq, end.Seq), cmp.Compare(int(m.n), end.N))
		})
		if i < len(x.messages) {
			return int(x.messages[i].first)
		}
	}
	return len(x.pieces)
}

// message is the one that a piece belongs to.
func (s *search) message(p int) *message { return &s.x.messages[s.x.pieces[p].message] }

// words returns the query's words; none where it is nothing but small talk.
func (s *search) words() []string {
	words := terms.Query(s.q.Text)
	if !slices.ContainsFunc(words, func(w string) bool { return !terms.SmallTalk[w] }) {
		return nil
	}
	return words
}

// terms returns what the session knows of the words.
func (s *search) terms(words []string) []term {
	var found []term
	for _, w := range words {
		id, ok := s.x.lookup(w)
		if ok && !has(found, id) && s.x.lists[id].live > 0 {
			found = append(found, term{id, s.x.idf(id)})
		}
	}
	return found
}

func has(terms []term, id uint32) bool {
	return slices.ContainsFunc(terms, func(t term) bool { return t.id == id })
}

// idf is the weight of a term by its rarity in the session.
func (x *Index) idf(id uint32) float64 {
	return rarity(float64(x.live), float64(x.lists[id].live))
}

// rarity is BM25's idf, in the form that is never negative.
func rarity(all, with float64) float64 { return math.Log(1 + (all-with+.5)/(with+.5)) }

// bm25 is what a term brings to a text that has it so often, of a length in
// proportion to the mean.
func bm25(times, length float64) float64 { return times * (k1 + 1) / (times + k1*(1-b+b*length)) }

// add adds what the terms bring, to pieces and to sittings.
func (s *search) add(query []term, lend bool) {
	x := s.x
	mean := float64(x.length)/float64(max(1, x.live)) + 1
	sitMean := float64(x.length)/float64(len(x.sittings)) + 1
	for _, t := range query {
		s.count(t.id, lend)
		for _, p := range s.touched {
			if n := s.times[p]; n > 0 {
				s.scores[p] += t.weight * bm25(float64(n), float64(x.pieces[p].length)/mean)
				s.times[p] = 0
			}
		}
		with := 0
		for _, n := range s.sitTimes {
			if n > 0 {
				with++
			}
		}
		// The term's weight holds its rarity among pieces; among sittings it
		// has another.
		weight := t.weight / x.idf(t.id) * rarity(float64(len(x.sittings)), float64(with))
		for i, n := range s.sitTimes {
			if n > 0 {
				s.sits[i] += weight * bm25(float64(n), float64(x.sittings[i].length)/sitMean)
				s.sitTimes[i] = 0
			}
		}
	}
}

// count sets how often a term occurs in each piece, its neighbours and its
// sitting.
func (s *search) count(id uint32, lend bool) {
	x := s.x
	s.touched, s.own = s.touched[:0], s.own[:0]
	x.lists[id].each(func(p uint32, times int) {
		if int(p) < len(s.scores) && x.pieces[p].flags&flagDead == 0 {
			s.touched, s.own = append(s.touched, p), append(s.own, float32(times))
			s.times[p] += float32(times)
			s.sitTimes[s.message(int(p)).sitting] += float32(times)
		}
	})
	if !lend {
		return
	}
	for i, n := 0, len(s.own); i < n; {
		m, most := x.pieces[s.touched[i]].message, s.own[i]
		for i++; i < n && x.pieces[s.touched[i]].message == m; i++ {
			most = max(most, s.own[i])
		}
		next, previous := x.beside(int(m), 1), x.beside(int(m), -1)
		s.lend(next, most*previousShare)
		s.lend(previous, most*nextShare)
		s.lend(x.beside(next, 1), most*secondShare)
		s.lend(x.beside(previous, -1), most*secondShare)
	}
}

// beside is the next message in a direction that wasn't removed.
func (x *Index) beside(m, step int) int {
	if x.removed == 0 {
		return m + step
	}
	for m += step; m >= 0 && m < len(x.messages) && x.dead(m); m += step {
	}
	return m
}

// lend counts a term for all pieces of a message, if there is such a message.
func (s *search) lend(m int, times float32) {
	if m < 0 || m >= len(s.x.messages) {
		return
	}
	for p := s.x.messages[m].first; p < s.x.end(m) && int(p) < len(s.scores); p++ {
		s.times[p] += times
		s.touched = append(s.touched, p)
	}
}
