package knowledge

import (
	"hash/maphash"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/backstory-proxy/backstory/store"
)

// repeats finds the chunks of a file that repeat an earlier one: the same
// section, and the same letters and digits in the same order. What differs is
// case, punctuation and white space; a single other number is enough to keep
// both.
type repeats struct {
	hash maphash.Hash
	seen map[uint64]bool
	n    int // chunks that were kept
}

// repeated reports whether a chunk repeats an earlier one. One that doesn't gets
// its number.
func (r *repeats) repeated(c *store.Chunk) bool {
	r.hash.Reset()
	_, _ = r.hash.WriteString(c.Section)
	empty, space := true, true
	for _, char := range c.Text {
		if !unicode.IsLetter(char) && !unicode.IsNumber(char) && !unicode.IsMark(char) {
			space = true
			continue
		}
		if space {
			_ = r.hash.WriteByte(0)
		}
		empty, space = false, false
		var b [utf8.UTFMax]byte
		_, _ = r.hash.Write(b[:utf8.EncodeRune(b[:], unicode.ToLower(char))])
	}
	if empty { // symbols only, such as a drawing
		_, _ = r.hash.WriteString(strings.TrimSpace(c.Text))
	}
	sum := r.hash.Sum64()
	if r.seen[sum] {
		return true
	}
	r.seen[sum] = true
	c.N = r.n
	r.n++
	return false
}
