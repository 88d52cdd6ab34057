package recall

import "strings"

// cut returns where the pieces of a text end. A text of up to maxPiece bytes
// is one; of a longer one, pieces end at a blank line, else at a line, else
// after a sentence, else between words.
func cut(text string) []int {
	var ends []int
	from := 0
	for len(text)-from > Tune.MaxPiece {
		end := from + breakAt(text[from:from+Tune.MaxPiece], Tune.MinPiece)
		ends = append(ends, end)
		from = end
	}
	return append(ends, len(text))
}

// breakAt returns the best place to cut, after least bytes.
func breakAt(s string, least int) int {
	for _, sep := range []string{"\n\n", "\n", ". ", " "} {
		if i := strings.LastIndex(s[least:], sep); i >= 0 {
			return least + i + len(sep)
		}
	}
	i := len(s)
	for i > least && s[i-1]&0xc0 == 0x80 { // not within a character
		i--
	}
	if i > least && s[i-1] >= 0xc0 {
		i--
	}
	return i
}
