package tokens

import (
	"bufio"
	"encoding/base64"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strconv"

	"github.com/pkoukk/tiktoken-go-loader/assets"
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
	blob    []byte           // the bytes of the tokens longer than 8 bytes
	pairs   *[1 << 16]uint32 // the ranks of all pairs of bytes: where merging starts
	longest int              // the length of the longest token, in bytes
}

// slot is one token. A token of up to 8 bytes is its own key; a longer one is
// found by a hash of 64 bits and then compared with its bytes.
type slot struct {
	key  uint64
	at   uint32 // where its bytes are in blob, if it has more than 8
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
			string(v.blob[s.at:int(s.at)+len(token)]) == token {
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

// loadVocab reads a vocabulary into a table of 1<<tableBits slots. Each line of
// the file is a token in base64, a space, and its rank.
func loadVocab(file string, tableBits uint) (*vocab, error) {
	f, err := assets.Assets.Open(file) // unlike ReadFile, doesn't copy megabytes
	if err != nil {
		return nil, err
	}
	defer f.Close()
	v := &vocab{
		slots: make([]slot, 1<<tableBits),
		shift: 64 - tableBits,
		blob:  make([]byte, 0, 5<<tableBits/4), // enough for both vocabularies
		pairs: new([1 << 16]uint32),
	}
	for i := range v.pairs {
		v.pairs[i] = noRank
	}
	var buf []byte
	n, single := 0, 0
	lines := bufio.NewReader(f)
	for {
		line, err := lines.ReadSlice('\n')
		if len(line) == 0 {
			break
		}
		if err == nil {
			line = line[:len(line)-1]
		}
		space := slices.Index(line, ' ')
		if space < 0 {
			return nil, fmt.Errorf("%s: line %d: no rank", file, n+1)
		}
		if buf, err = base64.StdEncoding.AppendDecode(buf[:0], line[:space]); err != nil {
			return nil, fmt.Errorf("%s: line %d: %w", file, n+1, err)
		}
		rank, err := strconv.ParseUint(string(line[space+1:]), 10, 24)
		if err != nil {
			return nil, fmt.Errorf("%s: line %d: %w", file, n+1, err)
		}
		if len(buf) == 0 || len(buf) > 255 || n == len(v.slots)/2 {
			return nil, fmt.Errorf("%s: line %d: doesn't fit the table", file, n+1)
		}
		v.insert(buf, uint32(rank))
		if n++; len(buf) == 1 {
			single++
		}
	}
	if single != 256 {
		return nil, errors.New(file + ": not every byte is a token")
	}
	return v, nil
}

func (v *vocab) insert(token []byte, rank uint32) {
	s := slot{meta: rank<<8 | uint32(len(token))}
	if len(token) > 8 {
		s.key, s.at = digest(string(token)), uint32(len(v.blob))
		v.blob = append(v.blob, token...)
	} else {
		for i, b := range token {
			s.key |= uint64(b) << (8 * i)
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
