package tokens

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"testing"
	"unicode"
)

// The hashes are those of OpenAI's files that its tiktoken checks its downloads
// with.
var files = map[string]struct {
	tokens int
	sha256 string
}{
	"o200k_base":  {199998, "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d"},
	"cl100k_base": {100256, "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7"},
}

func TestVocabularyHoldsEveryTokenOfTheFile(t *testing.T) {
	for _, e := range []*Encoding{O200K(), CL100K()} {
		published := sha256.New()
		n, missed := 0, 0
		for file := e.vocab.file; file != ""; n++ {
			text := file[1 : 1+file[0]]
			file = file[1+file[0]:]
			fmt.Fprintf(published, "%s %d\n", base64.StdEncoding.EncodeToString([]byte(text)), n)
			// At the start of a text, and inside one.
			if got := e.vocab.rank(text, 0, len(text)); got != uint32(n) {
				t.Fatalf("%s: rank(%q) = %d, want %d", e.Name(), text, got, n)
			}
			if got := e.vocab.rank("before it"+text+"behind", 9, 9+len(text)); got != uint32(n) {
				t.Fatalf("%s: rank(…%q…) = %d, want %d", e.Name(), text, got, n)
			}
			if e.vocab.rank(text+"\x00", 0, len(text)+1) != noRank && len(text) > 1 {
				missed++ // a token followed by NUL: none is known
			}
		}
		if n != files[e.Name()].tokens || missed > 0 {
			t.Errorf("%s: %d tokens, %d of them also with NUL", e.Name(), n, missed)
		}
		if sum := hex.EncodeToString(published.Sum(nil)); sum != files[e.Name()].sha256 {
			t.Errorf("%s isn't what OpenAI publishes: %s", e.Name(), sum)
		}
	}
}

func TestClassesAreUnicodes(t *testing.T) {
	table := classes()
	for r := rune(0); r <= unicode.MaxRune; r++ {
		var want class
		mark, both := unicode.Is(unicode.M, r), unicode.In(r, unicode.Lm, unicode.Lo)
		for _, c := range []struct {
			class class
			in    bool
		}{
			{upper, unicode.In(r, unicode.Lu, unicode.Lt) || both || mark},
			{lower, unicode.Is(unicode.Ll, r) || both || mark},
			{letter, unicode.IsLetter(r)},
			{number, unicode.IsNumber(r)},
			{space, unicode.IsSpace(r)},
			{newline, r == '\r' || r == '\n'},
			{punctuation, !unicode.IsSpace(r) && !unicode.IsLetter(r) && !unicode.IsNumber(r)},
			{prefix, r != '\r' && r != '\n' && !unicode.IsLetter(r) && !unicode.IsNumber(r)},
		} {
			if c.in {
				want |= c.class
			}
		}
		if got := table.of(r); got != want {
			t.Fatalf("%U: %08b, want %08b", r, got, want)
		}
		if r < 128 && table.ascii[r] != want {
			t.Fatalf("ASCII %q: %08b, want %08b", r, table.ascii[r], want)
		}
	}
}

func BenchmarkLoad(b *testing.B) {
	for name, load := range map[string]func() *vocab{
		"o200k_base":  func() *vocab { return newVocab(fileO200K, 19) },
		"cl100k_base": func() *vocab { return newVocab(fileCL100K, 18) },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				load()
			}
		})
	}
}
