package demo

import (
	"maps"
	"math"
	"slices"
)

// maxSentence is the most bytes of a sentence that the reply repeats.
const maxSentence = 400

const (
	// aroundWeight is how much a word counts that isn't in the sentence but
	// in its heading, or in its file's name.
	aroundWeight = 0.5
	// replyWeight is how much what the assistant said counts against what it
	// said it from.
	replyWeight = 0.8
)

// candidate is a sentence that may answer the question.
type candidate struct {
	sentence
	origin string // "From policy.md", "Earlier you said"
	around string // file name and section
	weight float64
}

// candidates returns every sentence that the request holds but those of the
// question itself: of the chunks first, then of the earlier messages, newest
// first, then of the quotes.
func (c *chat) candidates() []candidate {
	var all []candidate
	for _, chunk := range c.chunks {
		origin := "From the passages"
		if chunk.source != "" {
			origin = "From " + chunk.source
		}
		for _, s := range sentences(chunk.text) {
			all = append(all, candidate{s, origin, chunk.source + " " + chunk.section, 1})
		}
	}
	for i := len(c.messages) - 1; i >= 0; i-- {
		if i != c.lastUser {
			all = append(all, c.messages[i].candidates()...)
		}
	}
	for i := len(c.quotes) - 1; i >= 0; i-- {
		all = append(all, c.quotes[i].candidates()...)
	}
	return all
}

// candidates returns the sentences of an earlier message that tell something.
func (m *message) candidates() (all []candidate) {
	origin, weight := "Earlier you said", 1.0
	switch m.role {
	case "user":
	case "assistant":
		origin, weight = "Earlier I said", replyWeight
	default:
		return nil
	}
	_, own := cutBlocks(m.text)
	for _, s := range sentences(own) {
		if !isQuestion(s.text) && !isStock(s.text) {
			all = append(all, candidate{s, origin, "", weight})
		}
	}
	return all
}

// fittest returns the candidate that has most of the question's words, each
// weighted by how rare it is among the candidates; the first of several. One that
// says nothing beyond the question doesn't answer it.
func fittest(question string, all []candidate) (best candidate, found bool) {
	asked := set(terms(question))
	inOrder := slices.Sorted(maps.Keys(asked)) // so that equal sums are equal to the last bit
	inText := make([]map[string]bool, len(all))
	inAll := make([]map[string]bool, len(all))
	in := make(map[string]int) // how many candidates a word is in
	for i, c := range all {
		text := terms(c.text)
		inText[i] = set(text)
		inAll[i] = set(append(terms(c.heading+" "+c.around), text...))
		for w := range inAll[i] {
			in[w]++
		}
	}
	var top float64
	for i, c := range all {
		if !addsTo(asked, inText[i]) {
			continue
		}
		var score float64
		for _, w := range inOrder {
			rarity := math.Log(1 + float64(len(all))/float64(max(in[w], 1)))
			switch {
			case inText[i][w]:
				score += rarity
			case inAll[i][w]:
				score += aroundWeight * rarity
			}
		}
		if score *= c.weight; score > top {
			best, top, found = c, score, true
		}
	}
	return best, found
}

func addsTo(asked, text map[string]bool) bool {
	for w := range text {
		if !asked[w] {
			return true
		}
	}
	return false
}
