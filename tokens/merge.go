package tokens

const (
	// maxShort is the length in bytes up to which a piece is merged by scanning
	// for the best pair: quadratic, but with a bound this low the fastest.
	maxShort = 128
	// blockSize is the number of keys whose lowest is kept.
	blockSize = 16
)

// workspace is mergeShort's memory. It lives on the stack of Count, so that it
// is cleared once per text instead of once per piece.
type workspace struct {
	keys       [maxShort]uint32
	lows       [maxShort / blockSize]uint32
	next, prev [maxShort + 1]uint8 // part k ends where part next[k] starts
}

// mergeShort counts the tokens that byte pair encoding makes of the piece
// text[i:j], of 2 to maxShort bytes: starting from single bytes, the pair of
// neighbours whose union has the lowest rank is merged, the leftmost of equals
// first, until no pair is a token.
//
// A part is known by its offset. The candidate keys[k], rank<<8 | k, stands
// for the union of part k and the next; the lowest key is the pair to merge.
// The lowest of each block of keys is kept, so that a merge costs one look at
// every block and at the keys of those it has changed.
func (v *vocab) mergeShort(w *workspace, text string, i, j int) int {
	keys, lows, next, prev := &w.keys, &w.lows, &w.next, &w.prev
	n := j - i
	blocks := (n + blockSize - 1) / blockSize
	for k := range blocks * blockSize {
		keys[k] = noKey
		if k < n {
			next[k], prev[k+1] = uint8(k+1), uint8(k)
		}
		if k < n-1 {
			keys[k] = v.pairs[int(text[i+k])<<8|int(text[i+k+1])]<<8 | uint32(k)
		}
	}
	for b := range blocks {
		lows[b] = lowest(keys, b)
	}
	for parts := n; ; parts-- {
		low := uint32(noKey)
		for _, l := range lows[:blocks] {
			low = min(low, l)
		}
		if low >= noKey {
			return parts
		}
		k := uint8(low)
		gone := next[k] % maxShort // always below it, but the compiler can't know
		after := next[gone]
		next[k], prev[after] = after, k
		keys[gone], keys[k] = noKey, noKey
		if int(after) < n {
			keys[k] = v.rank(text, i+int(k), i+int(next[after]))<<8 | uint32(k)
		}
		b := gone / blockSize
		lows[b] = lowest(keys, int(b))
		if k > 0 {
			p := prev[k]
			keys[p] = v.rank(text, i+int(p), i+int(after))<<8 | uint32(p)
			if b = p / blockSize; b != k/blockSize {
				lows[b] = lowest(keys, int(b))
			}
		}
		b = k / blockSize
		lows[b] = lowest(keys, int(b))
	}
}

// noKey is the lowest of the keys that noRank makes; that of a token is far
// below, its rank having 18 bits.
const noKey = noRank << 8 & 0xffffffff

// lowest returns the lowest key of a block. Four chains of comparisons run
// side by side, without branches.
func lowest(keys *[maxShort]uint32, block int) uint32 {
	k := (*[blockSize]uint32)(keys[block*blockSize:])
	return min(
		min(k[0], k[1], k[2], k[3]), min(k[4], k[5], k[6], k[7]),
		min(k[8], k[9], k[10], k[11]), min(k[12], k[13], k[14], k[15]))
}
