package recall

import "unsafe"

// Remove forgets an exchange. Adding what replaces it is up to the caller.
func (x *Index) Remove(seq int64) {
	for i := len(x.messages) - 1; i >= 0 && x.messages[i].seq >= seq; i-- {
		if x.messages[i].seq == seq {
			x.remove(i)
		}
	}
	if x.live == 0 {
		x.reset()
	}
}

// remove takes a message's terms out of the statistics. Its postings stay, and
// are skipped.
func (x *Index) remove(i int) {
	for p := x.messages[i].first; p < x.end(i); p++ {
		pc := &x.pieces[p]
		if pc.flags&flagDead != 0 {
			continue
		}
		pc.flags |= flagDead
		x.termsOf(p, func(id uint32) { x.lists[id].df-- })
		x.length -= int(pc.length)
		x.sittings[x.messages[i].sitting].length -= uint32(pc.length)
		x.live--
	}
}

// reset empties the index.
func (x *Index) reset() { *x = *New() }

// Bytes is about what the index takes of memory.
func (x *Index) Bytes() int64 {
	const perID = 18 // a key and a value in a map that is three quarters full, or less
	n := cap(x.forward) + x.postings + cap(x.scratch)*4 + len(x.ids)*perID +
		cap(x.lists)*int(unsafe.Sizeof(list{})) + cap(x.pieces)*int(unsafe.Sizeof(piece{})) +
		cap(x.messages)*int(unsafe.Sizeof(message{})) + cap(x.sittings)*int(unsafe.Sizeof(sitting{}))
	return int64(n) + int64(unsafe.Sizeof(*x))
}
