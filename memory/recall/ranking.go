package recall

import (
	"cmp"
	"container/heap"
	"slices"
)

// Ranking is the result of a search. It refers to the Index, which must not change
// while the Ranking is in use.
type Ranking struct{ s *search }

// Pinned returns the pinned chunks: those that match, best first, and then the
// others, newest first.
func (r *Ranking) Pinned() []Hit {
	s := r.s
	var pinned []int
	for p := len(s.scores) - 1; p >= 0; p-- {
		if s.x.chunks[p].flags&(flagPinned|flagRemoved) == flagPinned {
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

// Matches yields the chunks that match, best first. It orders them as the caller
// takes them: of thousands, a caller needs some dozens.
func (r *Ranking) Matches(yield func(Hit) bool) {
	for o := r.s.order(); o.Len() > 0; {
		if !yield(r.hit(int(heap.Pop(o).(uint32)))) {
			return
		}
	}
}

func (r *Ranking) hit(p int) Hit {
	pc, m := &r.s.x.chunks[p], r.s.message(p)
	return Hit{
		Ref: m.ref(), From: int(pc.from), To: int(pc.to), Day: m.day(), Tokens: r.s.tokens(p),
		Pinned: pc.flags&flagPinned != 0, Score: r.s.scores[p],
	}
}

// quoteMarkTokens is what the marks around a quoted part of a message take.
const quoteMarkTokens = 6

// tokens returns what quoting a chunk takes.
func (s *search) tokens(p int) int {
	pc, m := &s.x.chunks[p], s.message(p)
	if pc.to-pc.from == m.size {
		return int(m.tokens)
	}
	return int(int64(m.tokens)*int64(pc.to-pc.from)/int64(m.size)) + quoteMarkTokens
}

func (m *message) ref() Ref { return Ref{m.seq, int(m.n)} }

// order is a heap of the chunks that match, best first.
type order struct {
	chunks []uint32
	scores []float64
}

func (s *search) order() *order {
	o := &order{scores: s.scores}
	for p, score := range s.scores {
		if score > 0 && s.x.chunks[p].flags&flagRemoved == 0 {
			o.chunks = append(o.chunks, uint32(p))
		}
	}
	heap.Init(o)
	return o
}

func (o *order) Len() int { return len(o.chunks) }

func (o *order) Less(i, j int) bool {
	a, b := o.chunks[i], o.chunks[j]
	if o.scores[a] != o.scores[b] {
		return o.scores[a] > o.scores[b]
	}
	return a > b // the newer one
}

func (o *order) Swap(i, j int) { o.chunks[i], o.chunks[j] = o.chunks[j], o.chunks[i] }

func (o *order) Push(any) {} // nothing is added

func (o *order) Pop() any {
	last := len(o.chunks) - 1
	p := o.chunks[last]
	o.chunks = o.chunks[:last]
	return p
}
