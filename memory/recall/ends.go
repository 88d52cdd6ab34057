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
	i, j := edge, len(text)-edge
	for i > 0 && !utf8.RuneStart(text[i]) {
		i--
	}
	for j < len(text) && !utf8.RuneStart(text[j]) {
		j++
	}
	return text[:i] + "\n" + text[j:]
}
