package tokens

import (
	"sync"
	"unicode"
	"unicode/utf8"
)

// class says to which of the split patterns' character classes a rune belongs,
// one bit each. The names in brackets are the patterns' own.
type class uint8

const (
	upper       class = 1 << iota // [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]
	lower                         // [\p{Ll}\p{Lm}\p{Lo}\p{M}]
	letter                        // \p{L}
	number                        // \p{N}
	space                         // \s
	newline                       // [\r\n]
	punctuation                   // [^\s\p{L}\p{N}]: marks too
	prefix                        // [^\r\n\p{L}\p{N}]: what a word may start with
)

// classTable maps runes to classes: runes of a page share an index entry, and
// equal pages are stored once. 50 KB, of which ordinary text touches little.
type classTable struct {
	ascii [utf8.RuneSelf]class
	index [(unicode.MaxRune + 1) / pageSize]uint16
	pages [][pageSize]class
}

const pageSize = 128

func (t *classTable) of(r rune) class {
	return t.pages[t.index[uint32(r)/pageSize]][uint32(r)%pageSize]
}

// classes is built on first use from Go's Unicode tables, the ones that the
// oracle's regexp engine uses: a few milliseconds.
var classes = sync.OnceValue(func() *classTable {
	all := make([]class, unicode.MaxRune+1)
	set := func(rt *unicode.RangeTable, c class) {
		for _, r := range rt.R16 {
			for k := rune(r.Lo); k <= rune(r.Hi); k += rune(r.Stride) {
				all[k] |= c
			}
		}
		for _, r := range rt.R32 {
			for k := rune(r.Lo); k <= rune(r.Hi); k += rune(r.Stride) {
				all[k] |= c
			}
		}
	}
	set(unicode.Lu, upper|letter)
	set(unicode.Lt, upper|letter)
	set(unicode.Ll, lower|letter)
	set(unicode.Lm, upper|lower|letter)
	set(unicode.Lo, upper|lower|letter)
	set(unicode.M, upper|lower)
	set(unicode.N, number)
	set(unicode.White_Space, space)
	all['\r'] |= newline
	all['\n'] |= newline

	t := &classTable{}
	seen := make(map[[pageSize]class]uint16)
	for i := range t.index {
		page := [pageSize]class(all[i*pageSize:])
		for k, c := range page {
			if c&(space|letter|number) == 0 {
				page[k] |= punctuation
			}
			if c&(newline|letter|number) == 0 {
				page[k] |= prefix
			}
		}
		at, ok := seen[page]
		if !ok {
			at = uint16(len(t.pages))
			seen[page] = at
			t.pages = append(t.pages, page)
		}
		t.index[i] = at
	}
	t.ascii = t.pages[t.index[0]]
	return t
})
