package recall

import "strings"

// The size of pieces, bytes. BEAM's assistant messages have 3,000: quoting whole
// ones loses 2.4 points there; 900 bytes are a point worse.
const (
	minPiece = 600
	maxPiece = 1200
)

// cut returns where the pieces of a text end. One of up to maxPiece bytes is a
// piece.
func cut(text string) []int {
	var ends []int
	from := 0
	for len(text)-from > maxPiece {
		from += breakAt(text[from : from+maxPiece])
		ends = append(ends, from)
	}
	return append(ends, len(text))
}

// breakAt returns the best place to cut, not before minPiece: after a blank
// line, else a line, a sentence, a word, a character.
func breakAt(s string) int {
	for _, sep := range [...]string{"\n\n", "\n", ". ", "。", " "} {
		if i := strings.LastIndex(s[minPiece:], sep); i >= 0 {
			return minPiece + i + len(sep)
		}
	}
	// The last character may be cut already: it goes to what follows.
	i := len(s) - 1
	for i > len(s)-4 && s[i]&0xc0 == 0x80 {
		i--
	}
	return i
}
