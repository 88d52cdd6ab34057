package recall

import "unicode/utf8"

// edge is how much of a long query is read at either end, bytes: who pastes
// a document asks before or after it.
const edge = 4 << 10

// ends returns a query's text, or the two ends of a long one.
func ends(text string) string {
	if len(text) <= 2*edge {
		return text
	}
	return text[:whole(text, edge)] + "\n" + text[whole(text, len(text)-edge):]
}

// whole is the length of the whole characters in the first n bytes of a text;
// of all of it where that is shorter.
func whole(text string, n int) int {
	if n >= len(text) {
		return len(text)
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return n
}
