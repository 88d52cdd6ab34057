package tokens

import "sync"

// scratch is the memory for merging a long piece: per byte 4 for each of the
// three slices and up to 16 for the heap. Parts have maxPart bytes, or three times
// as many where all are invalid.
type scratch struct {
	next, prev []uint32 // the parts: part i ends where part next[i] starts
	ranks      []uint32 // ranks[i]: the rank of part i and the next in one
	heap       []uint64 // candidates, rank<<32 | part: a binary heap, the lowest on top
	steps      int      // heap levels passed in the last merge, for the tests
	text       []byte   // a repaired piece
}

var scratches = sync.Pool{New: func() any { return new(scratch) }}

// mergeLong is mergeShort for a piece of any length, in O(n log n):
// the parts are a linked list, the pairs wait in a heap. What a merge
// invalidates stays in the heap until it comes up, and is recognised by a rank
// that is no longer its part's.
func (v *vocab) mergeLong(sc *scratch, piece string) int {
	n := len(piece)
	sc.grow(n)
	next, prev, ranks := sc.next, sc.prev, sc.ranks
	for i := range n {
		next[i], prev[i], ranks[i] = uint32(i+1), uint32(i-1), noRank
		if i+1 < n {
			if r := v.pairs[int(piece[i])<<8|int(piece[i+1])]; r != noRank {
				ranks[i] = r
				sc.heap = append(sc.heap, uint64(r)<<32|uint64(i))
			}
		}
	}
	for i := len(sc.heap)/2 - 1; i >= 0; i-- {
		sc.down(i)
	}
	parts := n
	for len(sc.heap) > 0 {
		top := sc.heap[0]
		i := uint32(top)
		if ranks[i] != uint32(top>>32) {
			sc.pop()
			continue
		}
		gone := next[i]
		after := next[gone]
		next[i], ranks[gone] = after, noRank
		parts--
		ranks[i] = noRank
		if int(after) < n {
			prev[after] = i
			ranks[i] = v.rank(piece, int(i), int(next[after]))
		}
		if r := ranks[i]; r != noRank {
			sc.heap[0] = uint64(r)<<32 | uint64(i)
			sc.down(0)
		} else {
			sc.pop()
		}
		if i > 0 {
			before := prev[i]
			r := v.rank(piece, int(before), int(after))
			if ranks[before] = r; r != noRank {
				sc.push(uint64(r)<<32 | uint64(before))
			}
		}
	}
	return parts
}

// grow makes room for a piece of n bytes.
func (sc *scratch) grow(n int) {
	if cap(sc.next) < n {
		n := max(n, 2*cap(sc.next))
		sc.next, sc.prev, sc.ranks = make([]uint32, n), make([]uint32, n), make([]uint32, n)
		// A merge takes one candidate away and adds up to two.
		sc.heap = make([]uint64, 0, 2*n)
	}
	sc.next, sc.prev, sc.ranks = sc.next[:n], sc.prev[:n], sc.ranks[:n]
	sc.heap, sc.steps = sc.heap[:0], 0
}

func (sc *scratch) push(x uint64) {
	sc.heap = append(sc.heap, x)
	h := sc.heap
	i := len(h) - 1
	for i > 0 {
		up := (i - 1) / 2
		if h[up] <= x {
			break
		}
		h[i] = h[up]
		i = up
		sc.steps++
	}
	h[i] = x
}

func (sc *scratch) pop() {
	last := len(sc.heap) - 1
	sc.heap[0] = sc.heap[last]
	sc.heap = sc.heap[:last]
	if last > 0 {
		sc.down(0)
	}
}

// down moves the candidate at i down to its place.
func (sc *scratch) down(i int) {
	h := sc.heap
	x := h[i]
	for {
		child := 2*i + 1
		if child >= len(h) {
			break
		}
		if child+1 < len(h) && h[child+1] < h[child] {
			child++
		}
		if h[child] >= x {
			break
		}
		h[i] = h[child]
		i = child
		sc.steps++
	}
	h[i] = x
}
