package demo

import (
	"regexp"
	"strings"
)

// block is what Backstory has put into a user message between markers: a chunk of
// a file, with what the first line says of its source, or quotes of earlier
// messages.
type block struct {
	source, section, text string
	quotes                bool
}

var (
	chunkStart = regexp.MustCompile(`^<<<passage\s+(\S+)(.*?)(?:>>>)?$`)
	attribute  = regexp.MustCompile(`(\w+):\s*"([^"]*)"`)
)

// cutBlocks splits a user message into its blocks and the user's own words after
// them:
//
//	<<<passage 396021174055 1 | source: "policy.md" | section: "Refunds">>>
//	text of the chunk …
//	<<<end 396021174055>>>
//
//	What is the refund window?
//
// Only the end with the same tag closes a block, so that a document can't close
// it. A message without a closed block is all the user's own.
func cutBlocks(message string) (blocks []block, own string) {
	var (
		open *block
		tag  string
		body int // where the open block's text begins
		at   int
	)
	own = message
	for line := range strings.Lines(message) {
		start := at
		at += len(line)
		line = strings.TrimSpace(line)
		if open == nil {
			if m := chunkStart.FindStringSubmatch(line); m != nil {
				open, tag, body = newChunk(m[2]), strings.TrimSuffix(m[1], ">>>"), at
			} else if m := quotesStart.FindStringSubmatch(line); m != nil {
				open, tag, body = &block{quotes: true}, m[1], at
			}
			continue
		}
		if closes(line, tag) {
			open.text = strings.TrimSpace(message[body:start])
			blocks = append(blocks, *open)
			open, own = nil, message[at:]
		}
	}
	return blocks, strings.TrimSpace(own)
}

func closes(line, tag string) bool {
	rest, ok := strings.CutPrefix(line, "<<<end")
	return ok && strings.TrimSpace(strings.TrimSuffix(rest, ">>>")) == tag
}

func newChunk(attributes string) *block {
	b := new(block)
	for _, m := range attribute.FindAllStringSubmatch(attributes, -1) {
		switch m[1] {
		case "source":
			b.source = m[2]
		case "section":
			b.section = m[2]
		}
	}
	return b
}
