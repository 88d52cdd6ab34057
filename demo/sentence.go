package demo

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// sentence is one sentence of a text, with the heading that it stands under.
type sentence struct {
	text, heading string
}

// lineOfItsOwn matches the lines that don't go on from the line before: list
// items, table rows, quotations, fences.
var lineOfItsOwn = regexp.MustCompile("^(?:[-*+|>•]|```|\\d+[.)]\\s)")

// sentences cuts a text into sentences. Markdown headings become the heading of
// what follows. A question and the sentence after it stay together, since the
// one answers the other.
func sentences(text string) []sentence {
	var (
		found     []sentence
		paragraph []string
		heading   string
	)
	flush := func() {
		for _, s := range split(strings.Join(paragraph, " ")) {
			found = append(found, sentence{text: s, heading: heading})
		}
		paragraph = paragraph[:0]
	}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		switch {
		case line == "":
			flush()
		case strings.HasPrefix(line, "#"):
			flush()
			heading = strings.TrimSpace(strings.TrimLeft(line, "#"))
		case lineOfItsOwn.MatchString(line):
			flush()
			paragraph = append(paragraph, line)
		default:
			paragraph = append(paragraph, line)
		}
	}
	flush()
	return answered(found)
}

// answered joins each question to the sentence that follows it.
func answered(in []sentence) []sentence {
	var out []sentence
	for _, s := range in {
		if last := len(out) - 1; last >= 0 && isQuestion(out[last].text) && out[last].heading == s.heading {
			out[last].text += " " + s.text
			continue
		}
		out = append(out, s)
	}
	return out
}

func isQuestion(s string) bool {
	return strings.HasSuffix(s, "?") || strings.HasSuffix(s, "？")
}

// split cuts a paragraph where a sentence ends: at a mark, with the quotes and
// brackets that close after it, if a space follows and no small letter (which
// is how "e.g. this" and "No. 5 of v1.2" mostly stay whole).
func split(paragraph string) []string {
	var found []string
	start := 0
	for i := 0; i < len(paragraph); {
		r, size := utf8.DecodeRuneInString(paragraph[i:])
		i += size
		if !strings.ContainsRune(".!?…。！？", r) {
			continue
		}
		rest := strings.TrimLeft(paragraph[i:], ".!?…。！？\"'”’»)]")
		end := len(paragraph) - len(rest)
		next, _ := utf8.DecodeRuneInString(strings.TrimLeftFunc(rest, unicode.IsSpace))
		spaced := rest == "" || strings.ContainsRune("。！？", r) || rest[0] == ' ' || rest[0] == '\t'
		if spaced && !unicode.IsLower(next) {
			found = append(found, strings.TrimSpace(paragraph[start:end]))
			start = end
		}
		i = end
	}
	if tail := strings.TrimSpace(paragraph[start:]); tail != "" {
		found = append(found, tail)
	}
	return found
}
