package recall

import "encoding/binary"

// postingList holds the chunks that a term occurs in, and how often. About half of
// all terms occur in a single chunk: the first stands in the struct. Others follow as
// varints of (distance to the previous one)<<3 | frequency-1.
type postingList struct {
	data      []byte
	first     uint32
	last      uint32
	live      uint32 // chunks that aren't removed
	firstFreq uint8  // in the first chunk; 0 if the list is empty
}

// maxFreq is the highest frequency that is kept. BM25 hardly tells higher ones apart.
const maxFreq = 8

// add appends a chunk, and returns by how many bytes the data grew.
func (l *postingList) add(p uint32, freq int) int {
	freq = min(freq, maxFreq)
	l.live++
	if l.firstFreq == 0 {
		l.first, l.last, l.firstFreq = p, p, uint8(freq)
		return 0
	}
	size := cap(l.data)
	l.data = binary.AppendUvarint(l.data, uint64(p-l.last)<<3|uint64(freq-1))
	l.last = p
	return cap(l.data) - size
}

// each calls f with the chunks, in order.
func (l *postingList) each(f func(p uint32, freq int)) {
	if l.firstFreq == 0 {
		return
	}
	p := l.first
	f(p, int(l.firstFreq))
	for d := l.data; len(d) > 0; {
		v, n := binary.Uvarint(d)
		d = d[n:]
		p += uint32(v >> 3)
		f(p, int(v&7)+1)
	}
}

// pop removes the last chunk, which was marked removed before.
func (l *postingList) pop() {
	if len(l.data) == 0 {
		l.firstFreq = 0
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
