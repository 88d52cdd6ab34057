package main

import (
	"math"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/language"
	"golang.org/x/text/unicode/norm"
)

// shingle is how many words in a row make a trace of a text.
const shingle = 5

// words is a text cut into words, so that markup, punctuation and line breaks
// don't matter: runs of letters and digits after NFKC and in lower case; a
// Chinese, Japanese, Korean or Thai character is a word by itself.
type words struct {
	text       string // all words, with a space ahead of and behind each
	start, end []int  // of each word in text
}

func wordsOf(s string) words {
	s = cases.Lower(language.Und).String(norm.NFKC.String(s))
	var b strings.Builder
	b.WriteByte(' ')
	var w words
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		end := i + size
		switch {
		case isSingle(r):
		case isWord(r):
			for end < len(s) {
				r, size := utf8.DecodeRuneInString(s[end:])
				if isSingle(r) || !isWord(r) {
					break
				}
				end += size
			}
		default:
			i = end
			continue
		}
		w.start = append(w.start, b.Len())
		b.WriteString(s[i:end])
		w.end = append(w.end, b.Len())
		b.WriteByte(' ')
		i = end
	}
	w.text = b.String()
	return w
}

// isSingle reports whether a character is a word by itself: kana, Han, Hangul,
// Thai.
func isSingle(r rune) bool {
	return 0x3040 <= r && r <= 0x30ff || 0x3400 <= r && r <= 0x9fff ||
		0xac00 <= r && r <= 0xd7af || 0x0e00 <= r && r <= 0x0e7f
}

func isWord(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) }

func (w *words) len() int { return len(w.start) }

// shingles calls f for every run of five words.
func (w *words) shingles(f func(string)) {
	for i := 0; i+shingle <= w.len(); i++ {
		f(w.text[w.start[i]:w.end[i+shingle-1]])
	}
}

// prompted is what stands in a prompt, ready to be asked what it holds.
type prompted struct {
	words    words
	shingles map[string]bool
}

func newPrompted(text string) *prompted {
	p := &prompted{words: wordsOf(text), shingles: make(map[string]bool)}
	p.words.shingles(func(s string) { p.shingles[s] = true })
	return p
}

// holds reports whether the words stand in it in one run.
func (p *prompted) holds(w *words) bool { return strings.Contains(p.words.text, w.text) }

// traces counts the shingles of w, and those of them that stand in it.
func (p *prompted) traces(w *words) (all, there int) {
	w.shingles(func(s string) {
		all++
		if p.shingles[s] {
			there++
		}
	})
	return all, there
}

// includes reports whether a message is in the prompt: a short one in one run,
// a longer one by half of its shingles, or by 150 of them.
func (p *prompted) includes(message *words) bool {
	const short, enough = 8, 150
	switch n := message.len(); {
	case n == 0:
		return false
	case n < short:
		return p.holds(message)
	}
	all, there := p.traces(message)
	return 2*there >= all || there >= enough
}

// includesExcerpt reports whether an excerpt of a file is in the prompt: in one
// run or, where it has twelve words or more, by nine tenths of its shingles, for
// the border of two chunks may go through it.
func (p *prompted) includesExcerpt(excerpt *words) bool {
	const long = 12
	if p.holds(excerpt) {
		return true
	}
	if excerpt.len() < long {
		return false
	}
	all, there := p.traces(excerpt)
	return 10*there >= 9*all
}

var photo = regexp.MustCompile(`\s*\[shares a photo:[^\]]*\]`)

// withoutPhoto is a message without the description of the photo that it
// shares, unless that is all of it.
func withoutPhoto(text string) string {
	if rest := photo.ReplaceAllString(text, ""); rest != "" {
		return rest
	}
	return text
}

var hyphenated = regexp.MustCompile(`[-\x{00ad}\x{2010}]\s*\n\s*`)

// extracted is the text that came out of a file. A word that is cut at a line's
// end counts as cut, and as whole.
type extracted [2]words

func newExtracted(text string) extracted {
	return extracted{wordsOf(text), wordsOf(hyphenated.ReplaceAllString(text, ""))}
}

// holds reports whether a snippet's words stand in the text in one run.
func (e *extracted) holds(snippet string) bool {
	w := wordsOf(snippet)
	return strings.Contains(e[0].text, w.text) || strings.Contains(e[1].text, w.text)
}

// recallAt is the share of the relevant documents among the first k found.
func recallAt(k int, found []string, relevant map[string]bool) float64 {
	n := 0
	for _, d := range found[:min(k, len(found))] {
		if relevant[d] {
			n++
		}
	}
	return float64(n) / float64(len(relevant))
}

// ndcg10 is the normalised discounted cumulative gain of the first ten found;
// a document is relevant or it isn't.
func ndcg10(found []string, relevant map[string]bool) float64 {
	const k = 10
	var gain, ideal float64
	for i := range k {
		discount := 1 / math.Log2(float64(i+2))
		if i < len(found) && relevant[found[i]] {
			gain += discount
		}
		if i < len(relevant) {
			ideal += discount
		}
	}
	return gain / ideal
}
