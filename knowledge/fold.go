package knowledge

import (
	"hash/maphash"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/backstory-proxy/backstory/store"
)

// folder finds the passages of a file that repeat an earlier one: the same
// section, and the same letters and digits in the same order. What differs is
// case, punctuation and white space; a single other number is enough to keep
// both.
type folder struct {
	hash maphash.Hash
	seen map[uint64]bool
	n    int // passages that were kept
}

// repeats reports whether a passage says nothing new, and numbers it if it
// does.
func (f *folder) repeats(c *store.Chunk) bool {
	f.hash.Reset()
	_, _ = f.hash.WriteString(c.Section)
	empty, space := true, true
	for _, r := range c.Text {
		if !unicode.IsLetter(r) && !unicode.IsNumber(r) && !unicode.IsMark(r) {
			space = true
			continue
		}
		if space {
			_ = f.hash.WriteByte(0)
		}
		empty, space = false, false
		var b [utf8.UTFMax]byte
		_, _ = f.hash.Write(b[:utf8.EncodeRune(b[:], unicode.ToLower(r))])
	}
	if empty { // symbols only, such as a drawing
		_, _ = f.hash.WriteString(strings.TrimSpace(c.Text))
	}
	sum := f.hash.Sum64()
	if f.seen[sum] {
		return true
	}
	f.seen[sum] = true
	c.N = f.n
	f.n++
	return false
}
