package prompt

import (
	"strings"
	"unicode/utf8"

	"github.com/backstory-proxy/backstory/knowledge/terms"
)

// followUpHalves is how many words that matter a message has at most that
// follows up on what was said last, in halves. One question in thirty about long
// conversations has so few.
const followUpHalves = 5

// maxFollowUp is the length, in bytes, beyond which a message says enough by
// itself.
const maxFollowUp = 8 << 10

// FollowUp reports whether a message says so little by itself that it is likely to
// be about what was said last: "make it shorter", "and in French?".
func FollowUp(text string) bool {
	if len(text) > maxFollowUp {
		return false
	}
	halves, last := 0, ""
	for _, w := range terms.Query(text) {
		switch {
		case terms.SmallTalk[w], strings.HasPrefix(last, w): // a word's beginning is a term, too
		case len(w) >= 6 && utf8.RuneCountInString(w) == 2: // a pair of Chinese characters, say
			halves++
		default:
			halves += 2
		}
		last = w
	}
	return halves <= followUpHalves
}
