package terms

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"
)

const (
	// maxQuery is the number of terms of a query. RediSearch needs 7 ms of
	// its main thread for 20 terms over 100,000 chunks, and 30 for 100.
	maxQuery = 32
	// window is how many bytes are read at either end of a long text. Who
	// pastes a document asks before or after it.
	window = 16 << 10
)

// Query returns the words to search for: those of the text, each once, without
// English stop words; none where nothing is left. Of more than maxQuery, it keeps
// those that are likely to be rare, in their order. A long text is read at its
// start and at its end only.
func Query(text string) []string {
	type candidate struct {
		word            string
		position, score int
	}
	var found []candidate
	seen := make(map[string]int)
	head, tail := ends(text)
	for _, w := range append(Of(head), Of(tail)...) {
		if stop[w] {
			continue
		}
		if i, ok := seen[w]; ok {
			found[i].score++ // what is said again is what it is about
			continue
		}
		seen[w] = len(found)
		found = append(found, candidate{w, len(found), rarity(w)})
	}
	if len(found) > maxQuery {
		slices.SortStableFunc(found, func(a, b candidate) int { return cmp.Compare(b.score, a.score) })
		found = found[:maxQuery]
		slices.SortFunc(found, func(a, b candidate) int { return cmp.Compare(a.position, b.position) })
	}
	words := make([]string, len(found))
	for i, c := range found {
		words[i] = c.word
	}
	return words
}

// rarity guesses how rare a word is from its looks: long words are rarer than
// short ones, up to a point, and those with digits are names, dates or codes.
// Bytes count, not characters: a pair of Chinese ones is worth a word.
func rarity(w string) int {
	score := min(len(w), 10)
	if strings.ContainsAny(w, "0123456789") {
		score += 4
	}
	return score
}

// ends returns the text as head, or the two ends of a long one.
func ends(text string) (head, tail string) {
	if len(text) <= 2*window {
		return text, ""
	}
	i, j := window, len(text)-window
	for i > 0 && !utf8.RuneStart(text[i]) {
		i--
	}
	for j < len(text) && !utf8.RuneStart(text[j]) {
		j++
	}
	return text[:i], text[j:]
}
