package demo

import (
	"regexp"
	"strings"
)

// passage is a text that was quoted in a user message, and what its first line
// says of where it is from: a file, or earlier in the conversation.
type passage struct {
	source, section, text string
	recalled              bool
}

var (
	passageStart = regexp.MustCompile(`^<<<passage\s+(\S+)(.*?)(?:>>>)?$`)
	attribute    = regexp.MustCompile(`(\w+):\s*"([^"]*)"`)
)

// cutPassages parts a user message into the passages quoted in it and the user's
// own words after them:
//
//	<<<passage 396021174055 1 | source: "policy.md" | section: "Refunds">>>
//	text of the passage …
//	<<<end 396021174055>>>
//
//	What is the refund window?
//
// Only the end with the same tag closes a passage, so that a document can't
// close it. A message without a closed passage is all the user's own.
func cutPassages(message string) (quoted []passage, own string) {
	var (
		open *passage
		tag  string
		body int // where the open passage's text begins
		at   int
	)
	own = message
	for line := range strings.Lines(message) {
		start := at
		at += len(line)
		line = strings.TrimSpace(line)
		if open == nil {
			if m := passageStart.FindStringSubmatch(line); m != nil {
				open, tag, body = newPassage(m[2]), strings.TrimSuffix(m[1], ">>>"), at
			} else if m := recalledStart.FindStringSubmatch(line); m != nil {
				open, tag, body = &passage{recalled: true}, m[1], at
			}
			continue
		}
		if closes(line, tag) {
			open.text = strings.TrimSpace(message[body:start])
			quoted = append(quoted, *open)
			open, own = nil, message[at:]
		}
	}
	return quoted, strings.TrimSpace(own)
}

func closes(line, tag string) bool {
	rest, ok := strings.CutPrefix(line, "<<<end")
	return ok && strings.TrimSpace(strings.TrimSuffix(rest, ">>>")) == tag
}

func newPassage(attributes string) *passage {
	p := new(passage)
	for _, m := range attribute.FindAllStringSubmatch(attributes, -1) {
		switch m[1] {
		case "source":
			p.source = m[2]
		case "section":
			p.section = m[2]
		}
	}
	return p
}
