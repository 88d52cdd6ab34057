package recall

import "strings"

// The size of chunks in bytes. Assistant messages in BEAM have about 3,000: quoting
// them whole loses 2.4 points there. A maximum of 900 bytes loses one.
const (
	minChunk = 600
	maxChunk = 1200
)

// chunkEnds returns where the chunks of a text end. A text of up to maxChunk bytes is
// one chunk.
func chunkEnds(text string) []int {
	var ends []int
	from := 0
	for len(text)-from > maxChunk {
		from += breakAt(text[from : from+maxChunk])
		ends = append(ends, from)
	}
	return append(ends, len(text))
}

// breakAt returns the best place to cut, not before minChunk: after a blank line,
// else after a line, a sentence, a word or a character.
func breakAt(s string) int {
	for _, sep := range [...]string{"\n\n", "\n", ". ", "。", " "} {
		if i := strings.LastIndex(s[minChunk:], sep); i >= 0 {
			return minChunk + i + len(sep)
		}
	}
	// The last character may be cut off: it goes to the next chunk.
	i := len(s) - 1
	for i > len(s)-4 && s[i]&0xc0 == 0x80 {
		i--
	}
	return i
}
