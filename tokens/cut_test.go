package tokens

import (
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"
)

// boundaries returns all places between two characters, an invalid byte being
// a character.
func boundaries(text string) map[int]bool {
	at := map[int]bool{len(text): true}
	for i := range text {
		at[i] = true
	}
	return at
}

func checkCut(t *testing.T, e *Encoding, text string, n int) (string, int) {
	t.Helper()
	prefix, count := e.Cut(text, n)
	switch {
	case !strings.HasPrefix(text, prefix):
		t.Fatalf("%s: Cut(%q, %d) = %q: not a prefix", e.Name(), text, n, prefix)
	case !boundaries(text)[len(prefix)]:
		t.Fatalf("%s: Cut(%q, %d) = %q: inside a character", e.Name(), text, n, prefix)
	case count != e.Count(prefix):
		t.Fatalf("%s: Cut(%q, %d) = %q, %d: it has %d", e.Name(), text, n, prefix, count, e.Count(prefix))
	case count > max(n, 0):
		t.Fatalf("%s: Cut(%q, %d) = %q, %d: too many", e.Name(), text, n, prefix, count)
	}
	return prefix, count
}

func TestCutReturnsTheLongestPrefixThatFits(t *testing.T) {
	for _, p := range pairs() {
		r := rand.New(rand.NewPCG(5, 6))
		for range 4000 {
			text := generate(r, 16)
			n := r.IntN(p.Count(text) + 2)
			prefix, _ := checkCut(t, p.Encoding, text, n)
			for end := range boundaries(text) {
				if end > len(prefix) && p.Count(text[:end]) <= n {
					t.Fatalf("%s: Cut(%q, %d) = %q, but %q fits too", p.Name(), text, n, prefix, text[:end])
				}
			}
		}
	}
}

func TestCutOfWhiteSpaceRuns(t *testing.T) {
	for _, p := range pairs() {
		for _, text := range []string{
			"a" + strings.Repeat(" ", 90) + "b", "   1", "\n   1", "\t\t\tx", " \n  \n   z", "a \u00a0\u00a0 b", "  \u3000x",
		} {
			for n := -1; n <= p.Count(text)+1; n++ {
				checkCut(t, p.Encoding, text, n)
			}
		}
	}
}

func TestCutInsideLongPieces(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	random := func(n int, alphabet string) string {
		runes := []rune(alphabet)
		var b strings.Builder
		for range n {
			b.WriteRune(runes[r.IntN(len(runes))])
		}
		return b.String()
	}
	texts := []string{
		random(5000, "abcdefghijklmnopqrstuvwxyz"),
		random(2000, "的一是在不了有和人这中大为上个国我以要他时来用们生到作地于出就"),
		random(3000, "中AБ"), // cut short, the words split differently
		strings.Repeat(" ", 3000) + "x",
		strings.Repeat("\n ", 2000) + "x",
		"x" + strings.Repeat("\xff", 2000) + "y",
		random(2000, "👩💻🎉"),
		strings.Repeat("a\u0301", 1000) + "A",
		"word " + strings.Repeat("\u0301", 1000) + "A",
	}
	for _, p := range pairs() {
		for _, text := range texts {
			total := p.Count(text)
			for _, n := range []int{0, 1, 2, 7, 50, total / 2, total - 1, total, total + 1} {
				_, count := checkCut(t, p.Encoding, text, n)
				if count < min(n, total)-3 {
					t.Errorf("%s: Cut(%.20q…, %d) used only %d", p.Name(), text, n, count)
				}
			}
		}
	}
}

func TestCutReturnsTheWholeTextIfItFits(t *testing.T) {
	const text = "Straßenbahn – 中文 and more"
	for _, p := range pairs() {
		n := p.Count(text)
		if prefix, count := p.Cut(text, n); prefix != text || count != n {
			t.Errorf("%s: Cut(…, %d) = %q, %d", p.Name(), n, prefix, count)
		}
		if prefix, count := p.Cut("", 0); prefix != "" || count != 0 {
			t.Errorf("%s: Cut of nothing = %q, %d", p.Name(), prefix, count)
		}
		if prefix, _ := p.Cut(text, n-1); !utf8.ValidString(prefix) {
			t.Errorf("%s: cut inside a character: %q", p.Name(), prefix)
		}
	}
}
