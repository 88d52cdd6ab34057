package demo

import (
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"
)

const (
	maxWords = 100_000
	maxSlow  = 10 * time.Second
)

// directives are what the user's own words ask of the demo router; see the
// package's documentation.
type directives struct {
	status   int // answer with this error; 0: none
	breakOff bool
	errorMid bool
	comment  bool
	slow     time.Duration // before each word
	words    int           // in the reply; 0: the reply as it comes
}

var directive = regexp.MustCompile(
	`\bdemo:(?:(break|comment|error-midstream)\b|(error)\b(?:\s+(\d{3})\b)?|(slow)\b(?:\s+([\d.]+(?:ms|s)))?|(words)\b(?:\s+(\d+))?)`)

// cutDirectives finds the directives in a text and takes them out of it.
func cutDirectives(text string) (d directives, rest string) {
	for _, m := range directive.FindAllStringSubmatch(text, -1) {
		switch {
		case m[1] == "break":
			d.breakOff = true
		case m[1] == "comment":
			d.comment = true
		case m[1] == "error-midstream":
			d.errorMid = true
		case m[2] != "":
			d.status = http.StatusInternalServerError
			if n, err := strconv.Atoi(m[3]); err == nil && n >= 400 && n <= 599 {
				d.status = n
			}
		case m[4] != "":
			d.slow = 50 * time.Millisecond
			if v, err := time.ParseDuration(m[5]); err == nil {
				d.slow = min(v, maxSlow)
			}
		case m[6] != "":
			d.words = 100
			if n, err := strconv.Atoi(m[7]); err == nil {
				d.words = min(max(n, 1), maxWords)
			}
		}
	}
	return d, strings.TrimSpace(directive.ReplaceAllString(text, ""))
}
