package prompt

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// What is quoted is what a person would see who looks at it. A file, a file's
// name or an older message may hold characters that nobody sees and a model reads
// all the same: a second text in tag characters or variation selectors, an order
// cut up by zero-width spaces so that no filter knows it, a line that runs
// backwards. They are taken out where text is quoted; what is stored keeps them.

// visible is a text without the characters that can't be seen, except where
// scripts and emoji need them.
func visible(s string) string {
	at := firstHidden(s)
	if at < 0 {
		return s
	}
	var b strings.Builder
	b.Grow(len(s))
	b.WriteString(s[:at])
	prev, _ := utf8.DecodeLastRuneInString(s[:at]) // of what is kept
	for i, size := at, 0; i < len(s); i += size {
		var r rune
		r, size = utf8.DecodeRuneInString(s[i:])
		if hidden(r) {
			if flag := flagTags(s[i:]); prev == blackFlag && flag != "" {
				b.WriteString(flag)
				prev, size = 0, len(flag)
				continue
			}
			if next, _ := utf8.DecodeRuneInString(s[i+size:]); !needed(r, prev, next) {
				continue
			}
		}
		b.WriteString(s[i : i+size])
		prev = r
	}
	return b.String()
}

// firstHidden is where a text's first hidden character is; -1: it has none.
func firstHidden(s string) int {
	for i := 0; i < len(s); i++ {
		if ' ' <= s[i] && s[i] < 0x7F || '\t' <= s[i] && s[i] <= '\r' {
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		if hidden(r) {
			return i
		}
		i += size - 1
	}
	return -1
}

const (
	zwnj, zwj          = '\u200C', '\u200D'
	textStyle, emojiVS = '\uFE0E', '\uFE0F'
	blackFlag          = '\U0001F3F4'
)

// hidden reports whether nobody sees the character by itself: controls but white
// space, formats, fillers, variation selectors and tags. By Unicode's properties
// Default_Ignorable_Code_Point and Cf, less the signs of Cf that are drawn.
func hidden(r rune) bool {
	switch {
	case r < ' ':
		return r < '\t' || r > '\r'
	case r < 0x7F:
		return false
	case r < 0xA0:
		return r != 0x85
	case r < 0x300:
		return r == '\u00AD'
	case 0x2070 <= r && r < 0xFE00: // most characters of most scripts, and quickly told
		return r == '\u3164'
	case unicode.Is(unicode.Cf, r):
		return !unicode.Is(unicode.Prepended_Concatenation_Mark, r) && !unicode.Is(unicode.Egyptian_Hieroglyphs, r)
	}
	return unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector) ||
		0xFFF0 <= r && r <= 0xFFF8 || 0xE0000 <= r && r <= 0xE0FFF
}

// needed reports whether a hidden character changes how its neighbours are drawn,
// or what they mean. One at a time does; a row of them says something of its own.
func needed(r, prev, next rune) bool {
	switch r {
	case zwnj, zwj: // Persian, the scripts of India, families of emoji
		return unicode.IsMark(prev) && !unicode.Is(unicode.Variation_Selector, prev) || (prev == emojiVS || joins(prev)) && joins(next)
	case textStyle, emojiVS:
		return unicode.In(prev, unicode.N, unicode.P, unicode.S) || prev == 'ℹ'
	case '\u180B', '\u180C', '\u180D', '\u180E', '\u180F':
		return unicode.Is(unicode.Mongolian, prev) && !hidden(prev)
	}
	return false
}

// joins reports whether a character may be drawn as one with its neighbour.
func joins(r rune) bool {
	return unicode.In(r, unicode.So, unicode.Sk, unicode.M) && !hidden(r) || unicode.IsLetter(r) && !unicode.Is(unicode.Latin, r)
}

// flagTags returns the tags that a text begins with, if they make one of the three
// flags of a black one that Unicode knows: England's, Scotland's and Wales's.
func flagTags(s string) string {
	for _, region := range []string{"gbeng", "gbsct", "gbwls"} {
		tags := strings.Map(func(r rune) rune { return 0xE0000 + r }, region) + "\U000E007F"
		if strings.HasPrefix(s, tags) {
			return tags
		}
	}
	return ""
}
