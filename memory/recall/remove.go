package recall

import (
	"unsafe"

	"github.com/backstory-proxy/backstory/memory/recall/internal/wordvec"
)

// Remove removes an exchange. The newest ones vanish altogether. If others follow,
// the exchange's postings stay, and searches skip them.
func (x *Index) Remove(seq int64) {
	for i := len(x.messages) - 1; i >= 0 && x.messages[i].seq >= seq; i-- {
		if x.messages[i].seq == seq {
			x.markRemoved(i)
		}
	}
	for n := len(x.messages); n > 0 && x.isRemoved(n-1); n-- {
		x.dropLast()
	}
}

// isRemoved reports whether a message was removed.
func (x *Index) isRemoved(m int) bool { return x.chunks[x.messages[m].first].flags&flagRemoved != 0 }

// markRemoved takes a message out of the statistics.
func (x *Index) markRemoved(m int) {
	if x.isRemoved(m) {
		return
	}
	x.removed++
	for p := x.messages[m].first; p < x.end(m); p++ {
		pc := &x.chunks[p]
		pc.flags |= flagRemoved
		x.termsOf(p, func(id uint32) { x.postings[id].live-- })
		x.length -= int(pc.length)
		x.segments[x.messages[m].segment].length -= uint32(pc.length)
		x.live--
		x.sum.add(x.vector(int(p)), -1)
	}
}

// dropLast takes the last message, which was marked removed, out of the index.
func (x *Index) dropLast() {
	last := &x.messages[len(x.messages)-1]
	for p := len(x.chunks) - 1; p >= int(last.first); p-- {
		x.termsOf(uint32(p), func(id uint32) { x.postings[id].pop() })
		x.forward = x.forward[:x.chunks[p].forward]
		x.chunks = x.chunks[:p]
		x.vectors = x.vectors[:p*wordvec.Dims]
	}
	x.messages = x.messages[:len(x.messages)-1]
	x.removed--
	if s := len(x.segments) - 1; int(x.segments[s].first) == len(x.messages) {
		x.segments = x.segments[:s]
	}
}

// Bytes returns about how much memory the index takes.
func (x *Index) Bytes() int64 {
	const perID = 24 // of the map: a key, a value and free slots
	n := cap(x.forward) + x.postingBytes + 4*cap(x.scratch) + perID*len(x.ids) + cap(x.vectors) +
		cap(x.occurrences)*int(unsafe.Sizeof(occurrence{})) +
		cap(x.postings)*int(unsafe.Sizeof(postingList{})) + cap(x.chunks)*int(unsafe.Sizeof(chunk{})) +
		cap(x.messages)*int(unsafe.Sizeof(message{})) + cap(x.segments)*int(unsafe.Sizeof(segment{})) +
		len(x.speakers)*512
	return int64(n) + int64(unsafe.Sizeof(*x))
}
