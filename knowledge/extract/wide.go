package extract

import (
	"encoding/binary"
	"slices"
	"unicode"
	"unicode/utf16"
)

// wideScripts are the scripts other than Latin that UTF-16 without a byte
// order mark is known by. Pairs of ASCII letters would pass for the eastern
// ones.
var (
	wideScripts   = [][]*unicode.RangeTable{{unicode.Cyrillic}, {unicode.Greek}, {unicode.Arabic}, {unicode.Hebrew}, {unicode.Devanagari}, {unicode.Thai}}
	easternScript = [][]*unicode.RangeTable{{unicode.Han, unicode.Hiragana, unicode.Katakana}, {unicode.Hangul}}
)

// wideScript recognises UTF-16 without a byte order mark, in scripts other than
// Latin: read in the right order of bytes it is characters throughout, of one
// script nearly all, with spaces, line ends or full stops in between. No text
// in another encoding has the bytes of these.
func wideScript(content []byte) string {
	if len(content)%2 != 0 {
		return ""
	}
	sample := content[:min(len(content), headLength)]
	scripts := wideScripts
	if !isUTF8(content) {
		scripts = slices.Concat(scripts, easternScript)
	}
	little, big := wideBreaks(sample, binary.LittleEndian, scripts), wideBreaks(sample, binary.BigEndian, scripts)
	switch {
	case little > big:
		return "utf-16le"
	case big > little:
		return "utf-16be"
	}
	return ""
}

// wideBreaks is how many spaces, line ends and full stops a text in UTF-16
// has; 0 where it is none in one of these scripts.
func wideBreaks(sample []byte, order binary.ByteOrder, scripts [][]*unicode.RangeTable) int {
	units := make([]uint16, len(sample)/2)
	for i := range units {
		units[i] = order.Uint16(sample[2*i:])
	}
	if n := len(units); n > 0 && utf16.IsSurrogate(rune(units[n-1])) { // the sample may end within a pair
		units = units[:n-1]
	}
	breaks, letters := 0, 0
	of := make([]int, len(scripts))
	for _, r := range utf16.Decode(units) {
		switch {
		case r == ' ' || r == '\n' || r == '\r' || r == '\t' || r == '\u3000' || r == '\u3001' || r == '\u3002':
			breaks++
		case r == unicode.ReplacementChar || !unicode.IsGraphic(r) && !unicode.Is(unicode.Cf, r):
			return 0
		case unicode.IsLetter(r):
			letters++
			for i, script := range scripts {
				if unicode.In(r, script...) {
					of[i]++
				}
			}
		}
	}
	for _, n := range of {
		if n > 0 && n*10 >= letters*8 {
			return breaks
		}
	}
	return 0
}
