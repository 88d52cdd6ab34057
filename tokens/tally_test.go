package tokens

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// near reports whether a count is within a share of what it should be.
func near(got, want int, share float64) bool {
	return float64(max(got-want, want-got)) <= share*float64(want)
}

// TestMergingIsBounded counts the bytes that are merged, whatever the text.
func TestMergingIsBounded(t *testing.T) {
	const n = 3 * maxMerged
	for _, e := range []*Encoding{O200K(), CL100K()} {
		texts := hostile(64 << 10)
		for _, name := range []string{"random-letters", "invalid", "pieces-of-128"} {
			tally := e.NewTally()
			for range n / len(texts[name]) {
				tally.Count(texts[name])
			}
			if tally.merged > maxMerged+3*maxPart {
				t.Errorf("%s: %s: %d bytes were merged", e.Name(), name, tally.merged)
			}
		}
		tally := e.NewTally()
		tally.Count(strings.Repeat("A", n)) // in one piece
		if tally.merged != maxMerged || tally.Exact() {
			t.Errorf("%s: %d bytes of one piece were merged", e.Name(), tally.merged)
		}
	}
	for range 100 {
		sc := scratches.Get().(*scratch)
		if most := 3 * maxPart; cap(sc.next) > 2*most || cap(sc.heap) > 4*most || cap(sc.text) > 2*most {
			t.Fatalf("scratch of %d, %d and %d", cap(sc.next), cap(sc.heap), cap(sc.text))
		}
	}
}

// TestBeyondTheBoundCountsAreNear compares with counts of parts, each exact.
func TestBeyondTheBoundCountsAreNear(t *testing.T) {
	for name, c := range map[string]struct {
		text  string
		share float64
	}{
		"code":           {sample(t, "code", 20<<20), .01},
		"chinese":        {sample(t, "chinese", 3<<20), .03},
		"random letters": {hostile(3 << 20)["random-letters"], .01},
		"random words":   {strings.Repeat(hostile(64 << 10)["random-letters"]+" ", 48), .01},
	} {
		exact := 0
		for rest := c.text; rest != ""; {
			n := min(len(rest), 512<<10)
			for n < len(rest) && !utf8.RuneStart(rest[n]) {
				n++
			}
			exact += O200K().Count(rest[:n])
			rest = rest[n:]
		}
		tally := O200K().NewTally()
		if got := tally.Count(c.text); !near(got, exact, c.share) || tally.Exact() {
			t.Errorf("%s: %d tokens, want about %d; exact %t", name, got, exact, tally.Exact())
		}
	}
}

func TestNothingMakesWhatFollowsCheap(t *testing.T) {
	tally := O200K().NewTally()
	tally.Count(strings.Repeat(" ", 2<<20)) // 128 to a token
	words := hostile(64 << 10)["random-letters"]
	if n := tally.Count(words); n < len(words)/bytesPerToken {
		t.Errorf("%d tokens for %d bytes", n, len(words))
	}
	if n, want := tally.Count("The quick brown fox"), O200K().Count("The quick brown fox"); n != want {
		t.Errorf("words that are tokens count %d, want %d", n, want)
	}
}

// TestLongPiecesCountAsIfWhole bounds what it costs in accuracy to merge them in
// parts.
func TestLongPiecesCountAsIfWhole(t *testing.T) {
	var sc scratch
	for _, e := range []*Encoding{O200K(), CL100K()} {
		for name, text := range hostile(64 << 10) {
			s := newScanner(e.split, text)
			if s.next(); !utf8.ValidString(text) || s.end < len(text)-1 {
				continue // not one piece
			}
			if whole := e.vocab.mergeLong(&sc, text); !near(e.Count(text), whole, .02) {
				t.Errorf("%s: %s: %d tokens in parts, %d as a whole", e.Name(), name, e.Count(text), whole)
			}
		}
	}
}

func TestACacheKeepsNoEstimate(t *testing.T) {
	c, tally := NewCache(4), O200K().NewTally()
	const text = "Donaudampfschifffahrtsgesellschaft"
	tally.Count(strings.Repeat("x", 2*maxMerged))
	c.Count(tally, [16]byte{1}, func() string { return text })
	if c.Len() != 0 {
		t.Error("an estimate was kept")
	}
	if got, want := c.Count(O200K().NewTally(), [16]byte{1}, func() string { return text }), O200K().Count(text); got != want {
		t.Errorf("got %d, want %d", got, want)
	}
}

// FuzzLongTexts repeats a text until its pieces are long.
func FuzzLongTexts(f *testing.F) {
	for _, text := range []string{"a", "A", " ", "\n ", "中", "\xff", "กข", "x1", "\xe4\xb8", "'s", "👨‍👩‍👧", "-="} {
		f.Add(text, uint16(3*maxPart), uint16(100))
	}
	f.Fuzz(func(t *testing.T, text string, size, budget uint16) {
		if text == "" {
			return
		}
		long := strings.Repeat(text, int(size)%(4*maxPart)/len(text)+1)
		for _, e := range []*Encoding{O200K(), CL100K()} {
			tally := e.NewTally()
			n := tally.Count(long)
			// An invalid byte counts as the three of U+FFFD.
			if n < 1 || n > 3*len(long) || !tally.Exact() || n != e.Count(long) {
				t.Fatalf("%s: %d tokens for %d bytes of %q, exact %t", e.Name(), n, len(long), text, tally.Exact())
			}
			checkCut(t, e, long, int(budget))
			tally.merged, tally.made = maxMerged, maxMerged/3
			if estimate := tally.Count(long); estimate < 1 || estimate > 3*len(long) {
				t.Fatalf("%s: estimated %d tokens for %d bytes of %q", e.Name(), estimate, len(long), text)
			}
		}
	})
}
