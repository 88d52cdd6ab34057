package recall

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"

	"github.com/backstory-proxy/backstory/knowledge/terms"
)

// search is one search under way.
type search struct {
	x      *Index
	q      Query
	limit  uint32 // pieces before it may be found
	scores []float64
	// scratch, zero between terms
	tf      []float32
	touched []uint32
	sits    []float64 // scores of the sittings
}

// Search returns what to quote for a user message, best first: messages that
// it is about, the user's standing instructions, then, as fillers with Score
// 0, the newest.
func (x *Index) Search(q Query) []Hit {
	s := x.begin(q)
	if s.limit == 0 {
		return nil
	}
	query := s.terms()
	s.score(query, 1)
	if len(query) > 0 {
		s.score(s.feedback(query), Tune.FbWeight)
	}
	s.spread()
	s.adjust()
	s.dates()
	return s.pick()
}

func (x *Index) begin(q Query) *search {
	s := &search{x: x, q: q, limit: uint32(len(x.pieces))}
	if q.Before > 0 {
		i, _ := slices.BinarySearchFunc(x.messages, q.Before, func(m message, seq int64) int { return cmp.Compare(m.seq, seq) })
		if i < len(x.messages) {
			s.limit = x.messages[i].first
		}
	}
	s.scores = make([]float64, s.limit)
	s.tf = make([]float32, s.limit)
	s.sits = make([]float64, len(x.sittings))
	return s
}

// term is a term to search for.
type term struct {
	id     uint32
	weight float64
}

func (s *search) terms() []term {
	var found []term
	for _, w := range terms.Query(s.q.Text) {
		id, ok := s.x.lookup(w)
		if !ok {
			continue
		}
		if i := slices.IndexFunc(found, func(t term) bool { return t.id == id }); i >= 0 {
			continue
		}
		found = append(found, term{id, s.idf(id)})
	}
	return found
}

func (s *search) idf(id uint32) float64 {
	n, df := float64(s.x.live), float64(s.x.lists[id].df)
	return math.Log(1 + (n-df+.5)/(df+.5))
}

// score adds what each term contributes: BM25, where a term of a neighbour
// counts as part of one.
func (s *search) score(query []term, scale float64) {
	x := s.x
	mean := float64(x.length)/float64(max(1, x.live)) + 1
	meanSit := float64(x.length)/float64(len(x.sittings)) + 1
	sitTF := make([]float32, len(x.sittings))
	own := make([]float32, 0)
	for _, t := range query {
		s.touched = s.touched[:0]
		own = own[:0]
		x.lists[t.id].each(func(p uint32, tf int) {
			if p >= s.limit || x.pieces[p].flags&flagDead != 0 {
				return
			}
			s.touched = append(s.touched, p)
			own = append(own, float32(tf))
		})
		hits := len(s.touched)
		for i := range hits {
			p := s.touched[i]
			s.bump(p, own[i])
			sitTF[x.messages[x.pieces[p].message].sitting] += own[i]
		}
		for i := 0; i < hits; {
			m := x.pieces[s.touched[i]].message
			best := own[i]
			for i++; i < hits && x.pieces[s.touched[i]].message == m; i++ {
				best = max(best, own[i])
			}
			next, previous := x.beside(int(m), 1), x.beside(int(m), -1)
			s.neighbour(next, best*float32(Tune.Prev))
			s.neighbour(previous, best*float32(Tune.Next))
			s.neighbour(x.beside(next, 1), best*float32(Tune.Prev2))
			s.neighbour(x.beside(previous, -1), best*float32(Tune.Next2))
		}
		for _, p := range s.touched {
			if tf := float64(s.tf[p]); tf > 0 {
				s.scores[p] += scale * t.weight * saturate(tf, float64(x.pieces[p].length)/mean)
				s.tf[p] = 0
			}
		}
		df := 0
		for _, tf := range sitTF {
			if tf > 0 {
				df++
			}
		}
		n := float64(len(x.sittings))
		idf := math.Log(1 + (n-float64(df)+.5)/(float64(df)+.5))
		for i, tf := range sitTF {
			if tf > 0 {
				s.sits[i] += scale * idf * saturate(float64(tf), float64(x.sittings[i].length)/meanSit)
				sitTF[i] = 0
			}
		}
	}
}

func saturate(tf, length float64) float64 {
	return tf * (Tune.K1 + 1) / (tf + Tune.K1*(1-Tune.B+Tune.B*length))
}

func (s *search) bump(p uint32, tf float32) { s.tf[p] += tf }

// neighbour gives the pieces of a message what the message beside it says.
func (s *search) neighbour(m int, tf float32) {
	x := s.x
	if tf == 0 || m < 0 || m >= len(x.messages) {
		return
	}
	end := x.end(m)
	for p := x.messages[m].first; p < end && p < s.limit; p++ {
		s.tf[p] += tf
		s.touched = append(s.touched, p)
	}
}

// beside is the message beside m that wasn't removed.
func (x *Index) beside(m, step int) int {
	for m += step; m >= 0 && m < len(x.messages) && x.pieces[x.messages[m].first].flags&flagDead != 0; m += step {
	}
	return m
}

func (x *Index) end(m int) uint32 {
	if m+1 < len(x.messages) {
		return x.messages[m+1].first
	}
	return uint32(len(x.pieces))
}

// feedback returns terms that the best pieces share and the query lacks.
func (s *search) feedback(query []term) []term {
	x := s.x
	best := s.top(Tune.FbDocs)
	weights := make(map[uint32]float64)
	for _, p := range best {
		w := s.scores[p] / s.scores[best[0]] / math.Sqrt(float64(x.pieces[p].length)+1)
		x.termsOf(p, func(id uint32) { weights[id] += w })
	}
	var found []term
	for id, w := range weights {
		if x.lists[id].df < 2 || slices.ContainsFunc(query, func(t term) bool { return t.id == id }) {
			continue
		}
		found = append(found, term{id, w * s.idf(id)})
	}
	slices.SortFunc(found, func(a, b term) int {
		return cmp.Or(cmp.Compare(b.weight, a.weight), cmp.Compare(a.id, b.id))
	})
	found = found[:min(len(found), Tune.FbTerms)]
	for i := range found {
		found[i].weight = s.idf(found[i].id)
	}
	return found
}

// top returns the n best pieces so far.
func (s *search) top(n int) []uint32 {
	var best []uint32
	for p, score := range s.scores {
		if score <= 0 {
			continue
		}
		if len(best) == n && score <= s.scores[best[n-1]] {
			continue
		}
		i := 0
		for i < len(best) && s.scores[best[i]] >= score {
			i++
		}
		best = slices.Insert(best, i, uint32(p))
		best = best[:min(n, len(best))]
	}
	return best
}

// termsOf calls f with the ids of a piece's terms.
func (x *Index) termsOf(p uint32, f func(id uint32)) {
	end := uint32(len(x.forward))
	if int(p)+1 < len(x.pieces) {
		end = x.pieces[p+1].forward
	}
	id := uint32(0)
	for d := x.forward[x.pieces[p].forward:end]; len(d) > 0; {
		v, n := binary.Uvarint(d)
		d = d[n:]
		id += uint32(v)
		f(id)
	}
}

// spread adds the sittings' scores.
func (s *search) spread() {
	for p := range s.scores {
		if s.scores[p] > 0 {
			s.scores[p] += Tune.Sitting * s.sits[s.x.messages[s.x.pieces[p].message].sitting]
		}
	}
}

// adjust weighs who says it, how long it is, and whether it names a time.
func (s *search) adjust() {
	x := s.x
	named, one := s.named()
	when := asksWhen(s.q.Text)
	for p := range s.scores {
		if s.scores[p] == 0 {
			continue
		}
		m := &x.messages[x.pieces[p].message]
		f := 1.0
		if one && m.speaker == named {
			f *= Tune.Named
		}
		if m.role == roleAssistant {
			if t := float64(m.tokens); t > Tune.LongFrom {
				f *= math.Pow(Tune.LongFrom/t, Tune.LongPow)
			}
		}
		if when && x.pieces[p].flags&flagTime != 0 {
			f *= Tune.Timed
		}
		s.scores[p] *= f
	}
}

// named is the speaker that the query names, if it names one only.
func (s *search) named() (speaker uint16, one bool) {
	words := terms.Of(s.q.Text)
	n := 0
	for i := range s.x.names {
		for _, w := range words {
			if id, ok := s.x.lookup(w); ok && slices.Contains(s.x.names[i].terms, id) {
				speaker = uint16(i)
				n++
				break
			}
		}
	}
	return speaker, n == 1
}
