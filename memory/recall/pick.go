package recall

import (
	"cmp"
	"math"
	"slices"
)

// pick takes the best pieces that fit, then fillers.
func (s *search) pick() []Hit {
	x := s.x
	order := make([]uint32, 0, len(s.scores))
	for p, score := range s.scores {
		if score > 0 && x.pieces[p].flags&flagDead == 0 {
			order = append(order, uint32(p))
		}
	}
	rank := func(p uint32) float64 {
		if Tune.Density == 0 {
			return s.scores[p]
		}
		return s.scores[p] / math.Pow(float64(s.tokens(p))+10, Tune.Density)
	}
	slices.SortFunc(order, func(a, b uint32) int {
		return cmp.Or(cmp.Compare(rank(b), rank(a)), cmp.Compare(b, a))
	})
	t := &taken{s: s, left: s.q.Budget, in: make([]bool, s.limit), sits: make([]bool, len(x.sittings))}
	// standing instructions
	if s.q.Budget > 0 && Tune.Standing > 0 {
		room := min(Tune.Standing, Tune.StandingShare*float64(s.q.Budget))
		n := 0
		for p := int(s.limit) - 1; p >= 0; p-- {
			if x.pieces[p].flags&flagStanding != 0 && n+s.tokens(uint32(p)) <= int(room) {
				n += s.tokens(uint32(p))
				t.take(uint32(p), s.scores[p]+1e-9)
			}
		}
	}
	for _, p := range order {
		t.take(p, s.scores[p])
		if t.done() {
			return t.hits
		}
	}
	for p := int(s.limit) - 1; p >= 0 && !t.done(); p-- {
		t.take(uint32(p), 0)
	}
	return t.hits
}

type taken struct {
	s    *search
	left int
	hits []Hit
	in   []bool
	sits []bool
}

func (t *taken) done() bool {
	if t.s.q.Limit > 0 && len(t.hits) >= t.s.q.Limit {
		return true
	}
	return t.s.q.Budget > 0 && t.left < 8
}

func (t *taken) take(p uint32, score float64) {
	x := t.s.x
	if t.in[p] || x.pieces[p].flags&flagDead != 0 {
		return
	}
	m := &x.messages[x.pieces[p].message]
	cost := t.s.tokens(p)
	if t.s.q.Budget > 0 {
		all := cost
		if !t.sits[m.sitting] {
			all += t.s.q.Group
		}
		if all > t.left {
			return
		}
		t.left -= all
	}
	t.in[p] = true
	t.sits[m.sitting] = true
	pc := &x.pieces[p]
	t.hits = append(t.hits, Hit{Ref: Ref{m.seq, int(m.n)}, From: int(pc.from), To: int(pc.to), Score: score, Tokens: cost})
}

// tokens is what quoting a piece takes.
func (s *search) tokens(p uint32) int {
	x := s.x
	pc := &x.pieces[p]
	m := &x.messages[pc.message]
	total := x.pieces[x.end(int(pc.message))-1].to
	if pc.from == 0 && pc.to == total {
		return int(m.tokens)
	}
	return int(uint64(m.tokens)*uint64(pc.to-pc.from)/uint64(total)) + 6
}
func (s *search) dates() {}
