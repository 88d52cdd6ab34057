package recall

import (
	"unsafe"

	"github.com/backstory-proxy/backstory/memory/recall/internal/wordvec"
)

// Remove forgets an exchange. The newest ones vanish altogether; of one that
// others follow, the postings stay, and are skipped.
func (x *Index) Remove(seq int64) {
	for i := len(x.messages) - 1; i >= 0 && x.messages[i].seq >= seq; i-- {
		if x.messages[i].seq == seq {
			x.forget(i)
		}
	}
	for n := len(x.messages); n > 0 && x.dead(n-1); n-- {
		x.drop()
	}
}

// dead reports whether a message was removed.
func (x *Index) dead(m int) bool { return x.pieces[x.messages[m].first].flags&flagDead != 0 }

// forget takes a message out of the statistics.
func (x *Index) forget(m int) {
	if x.dead(m) {
		return
	}
	x.removed++
	for p := x.messages[m].first; p < x.end(m); p++ {
		pc := &x.pieces[p]
		pc.flags |= flagDead
		x.termsOf(p, func(id uint32) { x.lists[id].live-- })
		x.length -= int(pc.length)
		x.sittings[x.messages[m].sitting].length -= uint32(pc.length)
		x.live--
		x.sum.add(x.vector(int(p)), -1)
	}
}

// drop takes the last message, which was forgotten, out of the lists.
func (x *Index) drop() {
	last := &x.messages[len(x.messages)-1]
	for p := len(x.pieces) - 1; p >= int(last.first); p-- {
		x.termsOf(uint32(p), func(id uint32) { x.lists[id].pop() })
		x.forward = x.forward[:x.pieces[p].forward]
		x.pieces = x.pieces[:p]
		x.vectors = x.vectors[:p*wordvec.Dims]
	}
	x.messages = x.messages[:len(x.messages)-1]
	x.removed--
	if s := len(x.sittings) - 1; int(x.sittings[s].first) == len(x.messages) {
		x.sittings = x.sittings[:s]
	}
}

// Bytes is about what the index takes of memory.
func (x *Index) Bytes() int64 {
	const perID = 24 // of the map: a key and a value, and what is free
	n := cap(x.forward) + x.postings + 4*cap(x.scratch) + perID*len(x.ids) + cap(x.vectors) +
		cap(x.said)*int(unsafe.Sizeof(occurrence{})) +
		cap(x.lists)*int(unsafe.Sizeof(list{})) + cap(x.pieces)*int(unsafe.Sizeof(piece{})) +
		cap(x.messages)*int(unsafe.Sizeof(message{})) + cap(x.sittings)*int(unsafe.Sizeof(sitting{})) +
		len(x.speakers)*512
	return int64(n) + int64(unsafe.Sizeof(*x))
}
