package tokens

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestCountEqualsOracleOnGeneratedTexts(t *testing.T) {
	for _, p := range pairs() {
		t.Run(p.Name(), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(1, 2))
			for range 60_000 {
				p.check(t, generate(r, 32))
			}
		})
	}
}

func TestCountEqualsOracleOnRealTexts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) < 17 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			text := string(data)
			for _, p := range pairs() {
				p.check(t, text)
				p.check(t, strings.ToUpper(text))
				p.check(t, strings.ReplaceAll(text, "\n", "\r\n"))
				p.check(t, strings.ReplaceAll(text, " ", "  "))
				p.check(t, strings.ReplaceAll(text, " ", "")[:300]) // cut inside characters, too
				for i := 0; i < len(text); i += 97 {
					p.check(t, text[i:])
				}
			}
		})
	}
}

func TestCountEqualsOracleOnEdgeCases(t *testing.T) {
	texts := []string{
		"", " ", "a", "\n", "\x00", "\xff", "a\n \nb", "  \n  x", "x \n", "x\n ", "x  ", " \r\n\r\n a",
		"don't DON'T Don'T we'll WE'LL we'Ll I'm 'tis 's'S x'sx", "a'", "'", "''s", "'l", "'r e", "5's",
		"HTTPServer iPhone XMLHttp ABC中DEF aB中C", "\u0301A", "\u0301a", " \u0301", "\u0301\u0301AB", "A\u0301B", "1\u0301",
		"1234567890", "1 234,567.89", "٣٤٥٦", "Ⅷ½²³", "a//b\n//\r\n/", "!\n\n/x", " /\n", "  !", "\u00a0!", "\u3000中",
		"<|endoftext|>", "<|im_start|>user<|im_sep|>", strings.Repeat("ab", 300), strings.Repeat("中", 300), strings.Repeat(" ", 300),
	}
	for _, p := range pairs() {
		for _, text := range texts {
			p.check(t, text)
		}
	}
}

// TestLongSIsAnS checks the one deliberate difference from the oracle.
func TestLongSIsAnS(t *testing.T) {
	const text = "don'ſx 'ſaint"
	if got, want := O200K().pieces(text), []string{"don'ſ", "x", " '", "ſaint"}; !slices.Equal(got, want) {
		t.Errorf("o200k: %q, want %q", got, want)
	}
	if got, want := CL100K().pieces(text), []string{"don", "'ſ", "x", " '", "ſaint"}; !slices.Equal(got, want) {
		t.Errorf("cl100k: %q, want %q", got, want)
	}
	for _, p := range pairs() {
		for _, text := range []string{"don'ſ", "'ſo", "'ſaint", "A'ſ b", "x'ſ's", "ſ'ſſ", "中'ſ", "'ſ名", "'ſង", "a'ſ名", "'\xc5"} {
			p.check(t, text)
		}
	}
	// If they ever agree, the second oracle and the difference can go.
	const differs = "'M'ſ'rEK'm"
	if a, b := oracleO200K().EncodeOrdinary(differs), foldingO200K().EncodeOrdinary(differs); len(a) == len(b) {
		t.Errorf("%q: both oracles say %d", differs, len(a))
	}
}

func TestCountDoesNotAllocate(t *testing.T) {
	texts := map[string]string{
		"english": sample(t, "english", 8<<10),
		"chinese": sample(t, "chinese", 8<<10),
		"code":    sample(t, "code", 8<<10),
		"long":    strings.Repeat("x", 8<<10),
		"invalid": "abc \xff\xfe " + strings.Repeat("\x80", 1000),
	}
	for _, p := range pairs() {
		for name, text := range texts {
			if raceEnabled && (name == "long" || name == "invalid") {
				continue // under the race detector sync.Pool drops items at random
			}
			p.Count(text) // fills the pool
			if n := testing.AllocsPerRun(100, func() { p.Count(text) }); n != 0 {
				t.Errorf("%s: %s: %v allocations", p.Name(), name, n)
			}
		}
	}
}

func FuzzCount(f *testing.F) {
	r := rand.New(rand.NewPCG(9, 10))
	for range 300 {
		f.Add(generate(r, 40))
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 1<<10 {
			return // the oracle is quadratic
		}
		for _, p := range pairs() {
			p.check(t, text)
			checkCut(t, p.Encoding, text, p.Count(text)/2)
		}
	})
}
