package terms

import "unicode/utf8"

// queryEnd is how many bytes of a long query are searched at either end: whoever
// pastes a document asks before or after it. A query of a megabyte takes a second.
const queryEnd = 4 << 10

// Ends returns a query without the middle of a long one: that of Ends is the same.
func Ends(text string) string {
	if len(text) <= 2*queryEnd+1 {
		return text
	}
	head, tail := queryEnd, len(text)-queryEnd
	for head > 0 && !utf8.RuneStart(text[head]) {
		head--
	}
	for tail < len(text) && !utf8.RuneStart(text[tail]) {
		tail++
	}
	return text[:head] + "\n" + text[tail:]
}
