package demo

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// stopWords say nothing about what a sentence is about.
var stopWords = set(strings.Fields(`
	a about above after again all also am an and any are as at be because been
	before being below between both but by can could did do does doing don down
	during each few for from further had has have having he her here hers him his
	how i if in into is it its itself just let ll me more most my no nor not now of
	off on once only or other our ours out over own please re same she should so
	some such t tell than that the their theirs them then there these they this
	those through to too under until up us ve very was we were what when where
	which while who whom why will with would you your yours s d m`))

func set(words []string) map[string]bool {
	m := make(map[string]bool, len(words))
	for _, w := range words {
		m[w] = true
	}
	return m
}

// terms returns the stems of a text's words, without the stop words.
func terms(text string) []string {
	var stems []string
	for _, w := range words(text) {
		if !stopWords[w] {
			stems = append(stems, stem(w))
		}
	}
	return stems
}

// words returns the words of a text in lower case. Where a script doesn't put
// spaces between words, each character counts as one.
func words(text string) []string {
	var found []string
	start := -1
	end := func(at int) {
		if start >= 0 {
			found = append(found, strings.ToLower(text[start:at]))
			start = -1
		}
	}
	for i, r := range text {
		switch {
		case unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai):
			end(i)
			found = append(found, string(r))
		case unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r):
			if start < 0 {
				start = i
			}
		default:
			end(i)
		}
	}
	end(len(text))
	return found
}

// stem takes the commonest English endings off a word, so that "refunds" meets
// "refunded".
func stem(w string) string {
	switch {
	case len(w) > 4 && strings.HasSuffix(w, "ies"):
		return w[:len(w)-3] + "y"
	case len(w) > 5 && strings.HasSuffix(w, "ing"):
		w = undouble(w[:len(w)-3])
	case len(w) > 4 && strings.HasSuffix(w, "ed"):
		w = undouble(w[:len(w)-2])
	case len(w) > 3 && strings.HasSuffix(w, "s") && !strings.HasSuffix(w, "ss") && !strings.HasSuffix(w, "us"):
		w = w[:len(w)-1]
	}
	if len(w) > 4 {
		w = strings.TrimSuffix(w, "e")
	}
	return w
}

// undouble makes "stopp" of "stopped" into "stop".
func undouble(w string) string {
	n := len(w)
	if n > 3 && w[n-1] == w[n-2] && !strings.ContainsRune("aeiouls", rune(w[n-1])) {
		return w[:n-1]
	}
	return w
}

// splitWords cuts a text into words, each with the space before it, as a model
// sends them.
func splitWords(text string) []string {
	var cut []string
	start, inWord := 0, false
	for i, r := range text {
		space := unicode.IsSpace(r)
		if space && inWord {
			cut = append(cut, text[start:i])
			start = i
		}
		inWord = !space
	}
	if start < len(text) {
		cut = append(cut, text[start:])
	}
	return cut
}

// clip puts a text on one line of at most limit bytes, cut between words.
func clip(text string, limit int) string {
	text = strings.Join(strings.Fields(text), " ")
	if len(text) <= limit {
		return text
	}
	for limit > 0 && !utf8.RuneStart(text[limit]) {
		limit--
	}
	text = text[:limit]
	if i := strings.LastIndexByte(text, ' '); i > 0 {
		text = text[:i]
	}
	return text + " …"
}
