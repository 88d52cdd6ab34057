package recall

import "encoding/binary"

// list holds the pieces that a term occurs in, and how often, as varints of
// (delta<<3 | times-1). Half of all terms occur once: their only posting is
// kept in the struct.
type list struct {
	data  []byte
	last  uint32 // the newest piece
	df    uint32 // pieces that aren't removed
	first uint32
	tf    uint8
}

const maxTF = 8

// add appends a piece, and returns by how many bytes the list grew.
func (l *list) add(p uint32, tf int) int {
	tf = min(tf, maxTF)
	l.df++
	if l.tf == 0 {
		l.first, l.last, l.tf = p, p, uint8(tf)
		return 0
	}
	size := cap(l.data)
	l.data = binary.AppendUvarint(l.data, uint64(p-l.last)<<3|uint64(tf-1))
	l.last = p
	return cap(l.data) - size
}

func (l *list) each(yield func(p uint32, tf int)) {
	if l.tf == 0 {
		return
	}
	p := l.first
	yield(p, int(l.tf))
	for d := l.data; len(d) > 0; {
		v, n := binary.Uvarint(d)
		d = d[n:]
		p += uint32(v >> 3)
		yield(p, int(v&7)+1)
	}
}
