package main

import (
	"math"
	"strings"
	"testing"
)

func TestWords(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"Don’t stop_now: ½ ﬁne Ⅷ x²", "don t stop now 1 2 fine viii x2"},
		{"東京タワー and ก่อน 한국", "東 京 タ ワ ー and ก ่ อ น 한 국"},
		{"ΟΔΟΣ Straße É", "οδος straße é"},
		{"naïve cafe\u0301 3.14", "naïve café 3 14"},
		{"हिन्दी है", "ह न द ह"},
		{"İstanbul ①②", "i stanbul 12"},
		{" — **!** ", ""},
	} {
		w := wordsOf(c.text)
		if got := strings.TrimSpace(w.text); got != c.want || w.len() != len(strings.Fields(c.want)) {
			t.Errorf("%q: %d words %q, want %q", c.text, w.len(), got, c.want)
		}
	}
}

// numbered is a text of the words from first to last.
func numbered(first, last int) string {
	var b strings.Builder
	for i := first; i <= last; i++ {
		b.WriteString("w" + strings.Repeat("x", i%7) + string(rune('a'+i%26)) + string(rune('a'+i/26)) + " ")
	}
	return b.String()
}

func TestIncludesAMessage(t *testing.T) {
	for _, c := range []struct {
		name, message, prompt string
		want                  bool
	}{
		{"nothing", "…", "…", false},
		{"a short one in one run", "I live in Lisbon.", "she said: i LIVE in **Lisbon**, by the sea", true},
		{"a short one in pieces", "I live in Lisbon.", "I live by the sea in Lisbon", false},
		{"not as part of a word", "on Monday", "button mondayish", false},
		{"half of the shingles", "a b c d e f g h", "a b c d e f y", true}, // 2 of 4
		{"fewer than half", "a b c d e f g h i", "a b c d e f y", false},   // 2 of 5
		{"150 shingles of a long one", numbered(1, 600), numbered(1, 154), true},
		{"149 shingles of a long one", numbered(1, 600), numbered(1, 153), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := wordsOf(c.message)
			if got := newPrompted(c.prompt).includes(&w); got != c.want {
				t.Errorf("got %t", got)
			}
		})
	}
}

func TestIncludesAnExcerpt(t *testing.T) {
	long := numbered(1, 44) // 40 shingles
	for _, c := range []struct {
		name, excerpt, prompt string
		want                  bool
	}{
		{"in one run", "the refund window", "… The *refund* window is", true},
		{"a short one in pieces", "a b c d e f g h i j k", "a b c d e f g h i j / b c d e f g h i j k", false},
		{"a long one that a border cuts", "a b c d e f g h i j k l", "a b c d e f g h i j / d e f g h i j k l", true},
		{"nine tenths of the shingles", long, numbered(1, 40), true}, // 36 of 40
		{"fewer", long, numbered(1, 39), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := wordsOf(c.excerpt)
			if got := newPrompted(c.prompt).includesExcerpt(&w); got != c.want {
				t.Errorf("got %t", got)
			}
		})
	}
}

func TestWithoutPhoto(t *testing.T) {
	for text, want := range map[string]string{
		"Look! [shares a photo: a dog, asleep]":    "Look!",
		"Look! [shares a photo: a dog] And this.":  "Look! And this.",
		"[shares a photo: a dog]":                  "[shares a photo: a dog]",
		"I like [square brackets] in a sentence.":  "I like [square brackets] in a sentence.",
		"One [shares a photo: a] [shares a photo:": "One [shares a photo:",
	} {
		if got := withoutPhoto(text); got != want {
			t.Errorf("%q: got %q", text, got)
		}
	}
}

func TestExtracted(t *testing.T) {
	x := newExtracted("The trans-\n  mitter over\u00ad\nheats.\nIt is a well-\nknown fault.")
	for snippet, want := range map[string]bool{
		"the transmitter overheats": true,
		"a wellknown fault":         true,
		"a well-known fault":        true, // as it stands
		"The trans mitter":          true,
		"overheats at once":         false,
	} {
		if x.holds(snippet) != want {
			t.Errorf("%q: want %t", snippet, want)
		}
	}
}

func TestRanking(t *testing.T) {
	relevant := map[string]bool{"a": true, "b": true, "c": true}
	for _, c := range []struct {
		name         string
		found        []string
		at2, at5, dg float64
	}{
		{"all first", []string{"a", "b", "c", "x"}, 2. / 3, 1, 1},
		{"none", []string{"x", "y"}, 0, 0, 0},
		{"nothing found", nil, 0, 0, 0},
		// (1/log2(3) + 1/log2(5)) / (1 + 1/log2(3) + 1/log2(4))
		{"second and fourth", []string{"x", "a", "y", "b"}, 1. / 3, 2. / 3, 0.498},
		{"too late for ten", strings.Fields("x x x x x x x x x x a b c"), 0, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			at2, at5, dg := recallAt(2, c.found, relevant), recallAt(5, c.found, relevant), ndcg10(c.found, relevant)
			if math.Abs(at2-c.at2) > 1e-9 || math.Abs(at5-c.at5) > 1e-9 || math.Abs(dg-c.dg) > 5e-4 {
				t.Errorf("recall@2 %.3f, recall@5 %.3f, nDCG@10 %.3f", at2, at5, dg)
			}
		})
	}
	many := make(map[string]bool)
	for _, d := range strings.Fields("a b c d e f g h i j k l") {
		many[d] = true
	}
	if got := ndcg10(strings.Fields("a b c d e f g h i j"), many); got != 1 {
		t.Errorf("ten of twelve: nDCG@10 is %.3f", got)
	}
}
