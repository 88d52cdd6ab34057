package demo

import (
	"regexp"
	"strings"
)

// quotesStart is the line ahead of quotes of earlier messages; they end as a
// chunk does.
var quotesStart = regexp.MustCompile(`^<<<earlier\s+(\S+?)(?:>>>)?$`)

// speaker is who said what follows, or the line that says on which day it was
// said.
var speaker = regexp.MustCompile(`(?m)^(?:\[\d\d? \pL+(?: \d{4})?\]$|(user|assistant)(?: "[^"\n]*")?: )`)

// cutQuotes splits quotes into messages, each behind its speaker.
func cutQuotes(text string) []message {
	var said []message
	role, from := "user", 0
	add := func(to int) {
		if t := strings.TrimSpace(text[from:to]); t != "" {
			said = append(said, message{role: role, text: t})
		}
	}
	for _, m := range speaker.FindAllStringSubmatchIndex(text, -1) {
		add(m[0])
		role, from = "user", m[1]
		if m[2] >= 0 {
			role = text[m[2]:m[3]]
		}
	}
	add(len(text))
	return said
}
