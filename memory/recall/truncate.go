package recall

import "unicode/utf8"

// queryEnd is how many bytes of a long query are searched at either end: whoever
// pastes a document asks before or after it.
const queryEnd = 4 << 10

// truncateMiddle returns a query's text without the middle of a long one.
func truncateMiddle(text string) string {
	if len(text) <= 2*queryEnd {
		return text
	}
	return text[:runeBoundary(text, queryEnd)] + "\n" + text[runeBoundary(text, len(text)-queryEnd):]
}

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
