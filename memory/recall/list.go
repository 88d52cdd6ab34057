package recall

import "encoding/binary"

// list holds the pieces that a term occurs in, and how often. About half of
// all terms occur in one piece only: the first stands in the struct, the others
// follow as varints of (distance to the one before)<<3 | times-1.
type list struct {
	data  []byte
	first uint32
	last  uint32
	live  uint32 // pieces that aren't removed
	times uint8  // in the first; 0: none
}

// maxTimes is as often as is told apart; BM25 hardly does.
const maxTimes = 8

// add appends a piece, and returns by how many bytes the data grew.
func (l *list) add(p uint32, times int) int {
	times = min(times, maxTimes)
	l.live++
	if l.times == 0 {
		l.first, l.last, l.times = p, p, uint8(times)
		return 0
	}
	size := cap(l.data)
	l.data = binary.AppendUvarint(l.data, uint64(p-l.last)<<3|uint64(times-1))
	l.last = p
	return cap(l.data) - size
}

// each calls f with the pieces, rising.
func (l *list) each(f func(p uint32, times int)) {
	if l.times == 0 {
		return
	}
	p := l.first
	f(p, int(l.times))
	for d := l.data; len(d) > 0; {
		v, n := binary.Uvarint(d)
		d = d[n:]
		p += uint32(v >> 3)
		f(p, int(v&7)+1)
	}
}

// pop takes the last piece off, which was removed and doesn't count any more.
func (l *list) pop() {
	if len(l.data) == 0 {
		l.times = 0
		return
	}
	p, size := l.first, 0
	for {
		v, n := binary.Uvarint(l.data[size:])
		if size+n == len(l.data) {
			l.data, l.last = l.data[:size], p
			return
		}
		p += uint32(v >> 3)
		size += n
	}
}
