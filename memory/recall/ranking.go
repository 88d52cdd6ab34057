package recall

import (
	"cmp"
	"container/heap"
	"slices"
)

// Ranking is what a search found. It refers to the Index, which must not change
// as long as it is read.
type Ranking struct {
	s    *search
	best float64 // the best score
}

// rank ends a search.
func (s *search) rank() *Ranking {
	r := &Ranking{s: s}
	for p, score := range s.scores {
		if score > r.best && s.x.pieces[p].flags&flagDead == 0 {
			r.best = score
		}
	}
	return r
}

// Pinned are the pieces that were added as pinned: those that match, best first,
// and then the newest.
func (r *Ranking) Pinned() []Hit {
	s := r.s
	var pinned []int
	for p := len(s.scores) - 1; p >= 0; p-- {
		if s.x.pieces[p].flags&(flagPinned|flagDead) == flagPinned {
			pinned = append(pinned, p)
		}
	}
	slices.SortStableFunc(pinned, func(a, b int) int { return cmp.Compare(s.scores[b], s.scores[a]) })
	hits := make([]Hit, len(pinned))
	for i, p := range pinned {
		hits[i] = r.hit(p)
	}
	return hits
}

// Matches yields the pieces that match, best first. Of thousands, the caller
// needs some dozens: they are ordered as they are asked for.
func (r *Ranking) Matches(yield func(Hit) bool) {
	for o := r.s.order(); o.Len() > 0; {
		if !yield(r.hit(int(heap.Pop(o).(uint32)))) {
			return
		}
	}
}

func (r *Ranking) hit(p int) Hit {
	pc, m := &r.s.x.pieces[p], r.s.message(p)
	h := Hit{
		Ref: m.ref(), From: int(pc.from), To: int(pc.to), Day: m.day(), Tokens: r.s.tokens(p),
		Pinned: pc.flags&flagPinned != 0,
	}
	if r.best > 0 {
		h.Score = r.s.scores[p] / r.best
	}
	return h
}

// pieceTokens is what the marks around a piece take.
const pieceTokens = 6

// tokens is what quoting a piece takes.
func (s *search) tokens(p int) int {
	pc, m := &s.x.pieces[p], s.message(p)
	if pc.to-pc.from == m.size {
		return int(m.tokens)
	}
	return int(int64(m.tokens)*int64(pc.to-pc.from)/int64(m.size)) + pieceTokens
}

func (m *message) ref() Ref { return Ref{m.seq, int(m.n)} }

// order is a heap of the pieces that match, best first.
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
