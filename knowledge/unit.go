package knowledge

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// border is how good a place for a cut is.
type border int

const (
	borderWord     border = iota // within a sentence or line: only for want of better
	borderSentence               // sentence, line of code, row of a table, item of a list
	borderBlock                  // paragraph, table, list, code block
	borderHeading                // section
	borderSheet                  // sheet of a spreadsheet
)

// unit is a stretch of the text that is never divided between chunks: a
// sentence, a row, a line of code. Units follow each other without a gap; white
// space belongs to the unit ahead of it.
type unit struct {
	start, end int    // in the text, bytes
	tokens     int    // at least 1
	border     border // at start
	heading    bool   // the unit is a heading line
	section    string // heading path
	page       int    // 0: none
}

// cutter cuts text into units of at most limit tokens.
type cutter struct {
	text    string
	count   func(string) int
	limit   int // tokens
	section string
	page    int
	emit    func(unit)
}

// add emits text[start:end] as a unit, or as several where it is too long.
func (c *cutter) add(start, end int, b border) {
	for start < end {
		n, tokens := c.fit(c.text[start:end])
		c.emit(unit{start: start, end: start + n, tokens: max(tokens, 1), border: b, section: c.section, page: c.page})
		start += n
		b = borderWord
	}
}

// maxTokenBytes bounds what is counted to find how much fits: tokens are
// hardly ever longer.
const maxTokenBytes = 8

// fit returns how many bytes of s fit into the limit, ending between words
// where possible, and how many tokens they are. It is at least one character.
func (c *cutter) fit(s string) (n, tokens int) {
	n = len(s)
	if most := c.limit * maxTokenBytes; n > most {
		n = wordBorder(s, most)
	}
	for {
		tokens = c.count(s[:n])
		if tokens <= c.limit {
			return n, tokens
		}
		_, first := utf8.DecodeRuneInString(s)
		if n <= first {
			return n, tokens
		}
		// In proportion, so that few rounds are needed.
		n = max(wordBorder(s, min(n-1, n*c.limit/tokens)), first)
	}
}

// wordBorder returns a place to cut s at or before n: a line end if one is in
// the second half, else white space, else between characters.
func wordBorder(s string, n int) int {
	for n > 0 && n < len(s) && !utf8.RuneStart(s[n]) {
		n--
	}
	half := s[n/2 : n]
	if i := strings.LastIndexByte(half, '\n'); i >= 0 {
		return n/2 + i + 1
	}
	if i := strings.LastIndexFunc(half, unicode.IsSpace); i >= 0 {
		_, size := utf8.DecodeRuneInString(half[i:])
		return n/2 + i + size
	}
	return n
}

// sentences emits text[start:end] sentence by sentence.
func (c *cutter) sentences(start, end int, b border) {
	from, i := start, start
	for i < end {
		next := sentenceEnd(c.text[i:end])
		i += next
		// Very short ones ("No. 5", "e.g. this") go with what follows.
		if i-from >= minSentence || i == end {
			c.add(from, i, b)
			from, b = i, borderSentence
		}
	}
}

const (
	// minSentence is the length below which a sentence isn't worth a unit,
	// bytes.
	minSentence = 24
	// longSentence is the length from which a line end is taken for the end
	// of a sentence, bytes: verse, logs and addresses have no full stops.
	longSentence = 160
)

// sentenceEnd returns the length of the first sentence of s with the white
// space after it.
func sentenceEnd(s string) int {
	ended := false // a full stop was seen, and since then closing marks only
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		i += size
		switch r {
		case '.', '!', '?', '…':
			ended = true
		case '。', '！', '？', '।', '؟':
			ended = true
			if next, _ := utf8.DecodeRuneInString(s[i:]); !closing(next) {
				return i + spaces(s[i:])
			}
		default:
			if (ended || r == '\n' && i >= longSentence) && unicode.IsSpace(r) {
				return i + spaces(s[i:])
			}
			if ended && unicode.In(r, unicode.Lo) { // 「…。」then the next sentence, without a space
				return i - size
			}
			ended = ended && closing(r)
		}
	}
	return len(s)
}

// closing reports whether a character may stand between the end of a sentence
// and the space after it.
func closing(r rune) bool {
	return r == '"' || r == '\'' || r == '*' || r == '_' || unicode.In(r, unicode.Pe, unicode.Pf)
}

// spaces is the length of the white space that s begins with.
func spaces(s string) int { return len(s) - len(strings.TrimLeftFunc(s, unicode.IsSpace)) }
