package terms

import (
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// compose gives characters that look the same the same code points (NFKC):
// full-width letters, ligatures, superscripts, composed and decomposed accents.
func compose(s string) string {
	if ascii(s) {
		return s
	}
	return norm.NFKC.String(s)
}

// fold removes what doesn't tell words apart: case (fully, so that ß is ss),
// accents, the vowel points of Arabic and Hebrew, and invisible characters.
// Marks that are letters of their own, as in Devanagari, Thai and Japanese,
// stay.
func fold(s string) string {
	if ascii(s) {
		return strings.ToLower(s)
	}
	var b strings.Builder
	b.Grow(len(s))
	for _, r := range norm.NFKD.String(s) {
		if dropped(r) {
			continue
		}
		// By way of the capital, so that letters with two small forms, as
		// sigma, become one.
		switch r = unicode.ToLower(unicode.ToUpper(r)); r {
		case 'ß':
			b.WriteString("ss")
		default:
			b.WriteRune(r)
		}
	}
	return norm.NFKC.String(b.String())
}

// dropped reports whether fold removes a character.
func dropped(r rune) bool {
	switch {
	case r < 0x0300:
		return r == 0xad // soft hyphen
	case r <= 0x036f: // accents of Latin, Greek and Cyrillic
		return true
	case r < 0x0591:
		return false
	case r <= 0x05c7: // Hebrew points, among punctuation
		return unicode.Is(unicode.Mn, r)
	case r == 0x0640, 0x064b <= r && r <= 0x065f, r == 0x0670: // Arabic: tatweel and vowels
		return true
	case 0x1ab0 <= r && r <= 0x1aff, 0x1dc0 <= r && r <= 0x1dff, 0x20d0 <= r && r <= 0x20ff: // more accents
		return true
	case 0xfe00 <= r && r <= 0xfe0f, 0xe0100 <= r && r <= 0xe01ef: // variation selectors
		return true
	}
	return unicode.Is(unicode.Cf, r)
}

// ascii reports whether s has bytes of ASCII only.
func ascii(s string) bool {
	for i := range len(s) {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}
