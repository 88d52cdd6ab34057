package prompt

import (
	"slices"
	"strings"
)

// quote is a passage as it is quoted, or several that follow each other in a
// file: what one repeats of the one before it is quoted once, and so are the
// markers and the source.
type quote struct {
	passages []Passage // in the order of the file
	text     string
	tokens   int
}

// leastOverlap is how many bytes two passages have in common at least where one
// is held to repeat the end of the other: fewer may be the same by chance.
const leastOverlap = 16

// Behind returns what is quoted of a passage behind the one before it in the
// file. false: it isn't quoted there, since it doesn't follow, or stands in
// another section, and a quote tells one.
func (p *Passage) Behind(before *Passage) (rest string, follows bool) {
	if p.FileID != before.FileID || p.Chunk != before.Chunk+1 || p.Section != before.Section {
		return "", false
	}
	for n := min(len(before.Text), len(p.Text)); n >= leastOverlap; n-- {
		if strings.HasSuffix(before.Text, p.Text[:n]) {
			return p.Text[n:], true
		}
	}
	return "\n" + p.Text, true
}

// stitch makes quotes of passages, which come best first.
func stitch(passages []Passage) (quotes []quote) {
	for _, p := range passages {
		quotes, _, _ = insert(quotes, p)
	}
	return quotes
}

// insert returns the quotes with one more passage, where among them it is, and
// the tokens of those that it became a part of. Neighbours stand where the best
// of them stood.
func insert(quotes []quote, p Passage) (with []quote, at, replaced int) {
	q := quote{passages: []Passage{p}, text: p.Text}
	at = -1
	for _, other := range quotes {
		if !q.join(&other, &p) {
			with = append(with, other)
			continue
		}
		replaced += other.tokens
		if at < 0 {
			at = len(with)
			with = append(with, quote{}) // its place
		}
	}
	if at < 0 {
		at = len(with)
		with = append(with, quote{})
	}
	with[at] = q
	return with, at, replaced
}

// join adds another quote to one that holds p, where that stands next to it.
func (q *quote) join(other *quote, p *Passage) bool {
	first, last := &other.passages[0], &other.passages[len(other.passages)-1]
	if rest, ok := p.Behind(last); ok {
		q.text = other.text + rest + q.text[len(p.Text):]
		q.passages = slices.Concat(other.passages, q.passages)
		return true
	}
	if rest, ok := first.Behind(p); ok {
		q.text += rest + other.text[len(first.Text):]
		q.passages = slices.Concat(q.passages, other.passages)
		return true
	}
	return false
}

// inQuotes are the passages in the order in which they are quoted.
func inQuotes(quotes []quote) (passages []Passage) {
	for i := range quotes {
		passages = append(passages, quotes[i].passages...)
	}
	return passages
}
