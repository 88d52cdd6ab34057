package tokens

import (
	"fmt"
	"math/bits"
	"math/rand/v2"
	"strings"
	"testing"
)

// hostile returns texts of n bytes that are slow for one kind of counter or
// another.
func hostile(n int) map[string]string {
	r := rand.New(rand.NewPCG(11, 12))
	repeat := func(s string) string { return strings.Repeat(s, n/len(s)+1)[:n/len(s)*len(s)] }
	random := func(alphabet string) string {
		runes := []rune(alphabet)
		var b strings.Builder
		for b.Len() < n {
			b.WriteRune(runes[r.IntN(len(runes))])
		}
		return b.String()
	}
	bytes := make([]byte, n)
	for i := range bytes {
		bytes[i] = byte(r.Uint32())
	}
	return map[string]string{
		"newline-space":     repeat("\n "),
		"space-newline":     repeat(" \n"),
		"spaces":            repeat(" "),
		"spaces-word":       repeat(" ")[1:] + "x",
		"newlines":          repeat("\n"),
		"tabs":              repeat("\t"),
		"nbsp":              repeat("\u00a0"),
		"mixed-blanks":      random(" \t\r\n\u00a0\u3000"),
		"one-letter":        repeat("a"),
		"one-capital":       repeat("A"),
		"two-letters":       repeat("ab"),
		"random-letters":    random("abcdefghijklmnopqrstuvwxyz"),
		"random-capitals":   random("ABCDEFGHIJKLMNOPQRSTUVWXYZ"),
		"camel":             repeat("aB"),
		"han-capitals":      repeat("中A"),
		"han-then-capitals": "中" + repeat("A"),
		"mark-capital":      repeat("\u0301A"),
		"mark-capitals":     repeat("\u0301" + strings.Repeat("A", 1000)),
		"marks-capitals":    repeat("\u0301") + repeat("A"),
		"one-han":           repeat("中"),
		"random-han":        random("的一是在不了有和人这中大为上个国我以要他时来用们生到作地于出就分对成会可主发年"),
		"kana":              random("あいうえおかきくけこさしすせそ"),
		"thai":              random("กขคงจชซดตทนบปพมยรลวสห"),
		"emoji-zwj":         repeat("👨‍👩‍👧‍👦"),
		"flags":             repeat("🇩🇪"),
		"combining":         repeat("\u0301"),
		"zalgo":             repeat("e\u0301\u0308\u0323"),
		"digits":            repeat("1"),
		"punctuation":       repeat("!"),
		"dashes":            repeat("-="),
		"slashes":           repeat("/\n"),
		"apostrophes":       repeat("'"),
		"contractions":      repeat("'s"),
		"random-bytes":      string(bytes),
		"invalid":           repeat("\xff"),
		"broken-runes":      repeat("\xe4\xb8"),
		"nul":               repeat("\x00"),
		"pieces-of-128":     repeat(strings.Repeat("q", 127) + "\n"),
		"pieces-of-129":     repeat(strings.Repeat("zx", 64) + "\n"),
	}
}

// maxSteps is what a merge of a short piece looks at, at most.
const maxSteps = maxShort/blockSize + 3*blockSize

// work counts the steps of counting: pieces, bytes given back by the scanner,
// and for merging the keys or the heap levels looked at.
func (e *Encoding) work(text string) int {
	steps := 0
	var sc scratch
	s := newScanner(e.split, text)
	for s.next() {
		for i := s.start; i < s.end; {
			j := partEnd(text, i, s.end)
			steps++
			part := strings.ToValidUTF8(text[i:j], "\ufffd")
			switch n := len(part); {
			case e.vocab.rank(part, 0, n) != noRank:
			case n <= maxShort: // every merge looks at all blocks and at the keys of three
				steps += n * maxSteps
			default:
				e.vocab.mergeLong(&sc, part)
				steps += n + sc.steps
			}
			i = j
		}
	}
	return steps + s.wasted
}

// TestNoTextIsSlow bounds the number of steps, which unlike time is the same
// on every machine, by the text's length with a constant.
func TestNoTextIsSlow(t *testing.T) {
	for _, e := range []*Encoding{O200K(), CL100K()} {
		worst, worstName := 0.0, ""
		for _, n := range []int{1 << 12, 1 << 16} {
			for name, text := range hostile(n) {
				limit := len(text) * (maxSteps + 4*bits.Len(maxPart))
				steps := e.work(text)
				if steps > limit {
					t.Errorf("%s: %s: %d steps for %d bytes, limit %d", e.Name(), name, steps, len(text), limit)
				}
				if share := float64(steps) / float64(limit); share > worst {
					worst, worstName = share, fmt.Sprintf("%s of %d bytes", name, n)
				}
			}
		}
		t.Logf("%s: at most %.0f %% of the limit: %s", e.Name(), 100*worst, worstName)
	}
}

func TestScannerGivesBackLittle(t *testing.T) {
	for _, e := range []*Encoding{O200K(), CL100K()} {
		for name, text := range hostile(1 << 14) {
			s := newScanner(e.split, text)
			at := 0
			for s.next() {
				if s.start != at || s.end <= at {
					t.Fatalf("%s: %s: piece %d:%d after %d", e.Name(), name, s.start, s.end, at)
				}
				at = s.end
			}
			if at != len(text) || s.wasted > len(text) {
				t.Errorf("%s: %s: scanned to %d of %d, gave back %d", e.Name(), name, at, len(text), s.wasted)
			}
		}
	}
}

// TestBothMergesAgree merges the same pieces both ways, beyond the lengths
// that the oracle can be asked about.
func TestBothMergesAgree(t *testing.T) {
	var (
		w  workspace
		sc scratch
	)
	for _, e := range []*Encoding{O200K(), CL100K()} {
		for name, text := range hostile(1 << 12) {
			for n := 2; n <= maxShort; n++ {
				i := (n * 31) % (len(text) - n)
				short, long := e.vocab.mergeShort(&w, text, i, i+n), e.vocab.mergeLong(&sc, text[i:i+n])
				if short != long {
					t.Fatalf("%s: %s: %q: %d and %d parts", e.Name(), name, text[i:i+n], short, long)
				}
			}
		}
	}
}

func TestLongPiecesEqualOracle(t *testing.T) {
	for _, p := range pairs() {
		for name, text := range hostile(1500) {
			if name != "random-bytes" {
				p.check(t, text)
			}
		}
	}
}

func BenchmarkHostile64KB(b *testing.B) {
	for _, e := range []*Encoding{O200K(), CL100K()} {
		for name, text := range hostile(64 << 10) {
			b.Run(e.Name()+"/"+name, func(b *testing.B) {
				b.SetBytes(int64(len(text)))
				for b.Loop() {
					e.Count(text)
				}
			})
		}
	}
}
