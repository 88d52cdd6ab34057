package demo

import (
	"regexp"
	"strings"
)

// recalledStart is the line in front of older messages that are quoted in a
// user message; they end as a passage does.
var recalledStart = regexp.MustCompile(`^<<<earlier\s+(\S+?)(?:>>>)?$`)

// speaker is who said what follows, or the line that says on which day it was
// said.
var speaker = regexp.MustCompile(`(?m)^(?:\[\d\d? \pL+(?: \d{4})?\]$|(user|assistant): )`)

// cutMessages parts quoted messages, each behind its speaker. One with a name in
// place of the role is taken for the user's.
func cutMessages(text string) []message {
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
