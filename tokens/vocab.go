package tokens

import (
	"math"
	"math/bits"
)

// noRank is the rank of what isn't a token: it sorts behind every rank.
const noRank = math.MaxUint32

// vocab holds the ranks of an encoding's tokens in a flat open-addressing hash
// table: one cache miss per lookup, nothing for the garbage collector to
// trace. It is never written after loading. Nor can a hostile text make it
// slow: whatever it hashes to, a probe ends at the next empty slot, and the
// table is at most 39 % full.
type vocab struct {
	slots   []slot
	shift   uint             // a hash's upper 64-shift bits are its slot
	file    string           // all tokens, as newVocab reads them
	pairs   *[1 << 16]uint32 // the ranks of all pairs of bytes: where merging starts
	longest int              // the length of the longest token, in bytes
}

// slot is one token. A token of up to 8 bytes is its own key; a longer one is
// found by a hash of 64 bits and then compared with its bytes.
type slot struct {
	key  uint64
	at   uint32 // where its bytes are in the file
	meta uint32 // rank<<8 | length; 0: empty slot
}

// rank returns the rank of the token text[i:j], or noRank. The text around it
// lets short tokens be read as one word.
func (v *vocab) rank(text string, i, j int) uint32 {
	n := j - i
	if n > 8 {
		return v.rankLong(text[i:j])
	}
	var key uint64
	if j >= 8 {
		key = word(text, j-8) >> (64 - 8*uint(n))
	} else {
		for k := j - 1; k >= i; k-- {
			key = key<<8 | uint64(text[k])
		}
	}
	mask := uint64(len(v.slots) - 1)
	for h := spread(key, n) >> v.shift; ; h++ {
		s := &v.slots[h&mask]
		if s.key == key && s.meta&0xff == uint32(n) {
			return s.meta >> 8
		}
		if s.meta == 0 {
			return noRank
		}
	}
}

func (v *vocab) rankLong(token string) uint32 {
	if len(token) > v.longest {
		return noRank
	}
	key := digest(token)
	mask := uint64(len(v.slots) - 1)
	for h := spread(key, len(token)) >> v.shift; ; h++ {
		s := &v.slots[h&mask]
		if s.key == key && s.meta&0xff == uint32(len(token)) &&
			v.file[s.at:int(s.at)+len(token)] == token {
			return s.meta >> 8
		}
		if s.meta == 0 {
			return noRank
		}
	}
}

// word reads 8 bytes, the first being the least significant. The compiler
// makes one load of it.
func word(s string, i int) uint64 {
	s = s[i : i+8]
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
		uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
}

// golden is 2^64 divided by the golden ratio: multiplying by it spreads keys
// over the upper bits (Knuth, TAOCP 6.4).
const golden = 0x9e3779b97f4a7c15

func spread(key uint64, n int) uint64 {
	return (key ^ uint64(n)<<56) * golden
}

// digest hashes a token of more than 8 bytes.
func digest(token string) uint64 {
	h := uint64(len(token))
	for i := 0; i+8 < len(token); i += 8 {
		hi, lo := bits.Mul64(h^word(token, i), golden)
		h = hi ^ lo
	}
	hi, lo := bits.Mul64(h^word(token, len(token)-8), golden) // overlaps the word before
	return hi ^ lo
}

// newVocab makes a table of 1<<tableBits slots from tokens in the order of their
// ranks, each behind its length in a byte.
func newVocab(file string, tableBits uint) *vocab {
	v := &vocab{
		slots: make([]slot, 1<<tableBits),
		shift: 64 - tableBits,
		file:  file,
		pairs: new([1 << 16]uint32),
	}
	for i := range v.pairs {
		v.pairs[i] = noRank
	}
	for at, rank := 0, uint32(0); at < len(file); rank++ {
		start := at + 1
		at = start + int(file[at])
		v.insert(file[start:at], uint32(start), rank)
	}
	return v
}

func (v *vocab) insert(token string, at, rank uint32) {
	s := slot{at: at, meta: rank<<8 | uint32(len(token))}
	if len(token) > 8 {
		s.key = digest(token)
	} else {
		for i := range len(token) {
			s.key |= uint64(token[i]) << (8 * i)
		}
	}
	if len(token) == 2 {
		v.pairs[int(token[0])<<8|int(token[1])] = rank
	}
	v.longest = max(v.longest, len(token))
	mask := uint64(len(v.slots) - 1)
	h := spread(s.key, len(token)) >> v.shift
	for v.slots[h&mask].meta != 0 {
		h++
	}
	v.slots[h&mask] = s
}
