package recall

import (
	"cmp"
	"container/heap"
	"slices"
)

const (
	// standingTokens is the most that standing instructions get, and
	// standingShare the most they get of the budget. It brings BEAM, whose
	// users give such, 3 points, and costs LoCoMo .3.
	standingTokens = 500
	standingShare  = .15
	// pieceTokens is what the marks around a piece take.
	pieceTokens = 6
	// least is a budget that isn't worth filling, tokens.
	least = 8
	// maxMisses is how many matches in a row may be too long for what is left
	// of the budget.
	maxMisses = 64
)

// choice is what was taken so far.
type choice struct {
	*search
	hits []Hit
	left int // of the budget
	best float64
	in   []bool         // by piece
	days map[int64]bool // whose header is paid
}

// pick takes what fits, best first.
func (s *search) pick() []Hit {
	order := s.order()
	c := &choice{search: s, left: s.q.Budget, in: make([]bool, len(s.scores)), days: map[int64]bool{noTime: true}}
	if len(order.pieces) > 0 {
		c.best = s.scores[order.pieces[0]]
	}
	c.standing()
	for misses := 0; order.Len() > 0 && misses < maxMisses && !c.full(); {
		p := heap.Pop(order).(uint32)
		if c.in[p] || c.take(int(p), Match) {
			misses = 0
		} else {
			misses++
		}
	}
	return c.hits
}

// standing takes standing instructions: of more than there is room for, those
// that match, and then the newest.
func (c *choice) standing() {
	room := standingTokens
	if c.q.Budget > 0 {
		room = min(room, int(standingShare*float64(c.q.Budget)))
	}
	var standing []int
	for p := len(c.scores) - 1; p >= 0; p-- {
		if c.x.pieces[p].flags&(flagStanding|flagDead) == flagStanding {
			standing = append(standing, p)
		}
	}
	slices.SortStableFunc(standing, func(a, b int) int { return cmp.Compare(c.scores[b], c.scores[a]) })
	for _, p := range standing {
		if room < least || c.full() {
			return
		}
		if c.tokens(p) <= room && c.take(p, Standing) {
			room -= c.tokens(p)
		}
	}
}

// full reports whether nothing more is to be taken.
func (c *choice) full() bool {
	return c.q.Budget > 0 && c.left < least || c.q.Limit > 0 && len(c.hits) >= c.q.Limit
}

// take takes a piece if it fits.
func (c *choice) take(p int, kind Kind) bool {
	pc, m := &c.x.pieces[p], c.message(p)
	if pc.flags&flagDead != 0 {
		return false
	}
	tokens := c.tokens(p)
	if c.q.Budget > 0 {
		all := tokens
		if !c.days[m.day()] {
			all += c.q.Header
		}
		if all > c.left {
			return false
		}
		c.left -= all
	}
	h := Hit{Ref: m.ref(), From: int(pc.from), To: int(pc.to), Kind: kind, Tokens: tokens}
	if c.best > 0 {
		h.Score = c.scores[p] / c.best
	}
	c.in[p], c.days[m.day()] = true, true
	c.hits = append(c.hits, h)
	return true
}

// tokens is what quoting a piece takes.
func (s *search) tokens(p int) int {
	pc, m := &s.x.pieces[p], s.message(p)
	if pc.to-pc.from == m.size {
		return int(m.tokens)
	}
	return int(int64(m.tokens)*int64(pc.to-pc.from)/int64(m.size)) + pieceTokens
}

func (m *message) ref() Ref { return Ref{m.seq, int(m.n)} }

// order is a heap of the pieces that match, best first. Of thousands, some
// dozens are needed.
type order struct {
	pieces []uint32
	scores []float64
}

func (s *search) order() *order {
	o := &order{scores: s.scores}
	for p, score := range s.scores {
		if score > 0 && s.x.pieces[p].flags&flagDead == 0 {
			o.pieces = append(o.pieces, uint32(p))
		}
	}
	heap.Init(o)
	return o
}

func (o *order) Len() int { return len(o.pieces) }

func (o *order) Less(i, j int) bool {
	a, b := o.pieces[i], o.pieces[j]
	if o.scores[a] != o.scores[b] {
		return o.scores[a] > o.scores[b]
	}
	return a > b // the newer one
}

func (o *order) Swap(i, j int) { o.pieces[i], o.pieces[j] = o.pieces[j], o.pieces[i] }

func (o *order) Push(any) {} // nothing is added

func (o *order) Pop() any {
	last := len(o.pieces) - 1
	p := o.pieces[last]
	o.pieces = o.pieces[:last]
	return p
}
