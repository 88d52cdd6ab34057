package recall

import "unicode/utf8"

// runeBoundary returns the length of the whole characters within the first n bytes of
// a text.
func runeBoundary(text string, n int) int {
	if n >= len(text) {
		return len(text)
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return n
}
