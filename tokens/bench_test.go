package tokens

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/tiktoken-go/tokenizer"
)

// sample reads a text of testdata and repeats it, with variation, up to size
// bytes: words are swapped at random, so that it isn't the same text again,
// and cut at a rune.
func sample(tb testing.TB, name string, size int) string {
	tb.Helper()
	data, err := os.ReadFile("testdata/" + name + ".txt")
	if err != nil {
		tb.Fatal(err)
	}
	text := string(data)
	sep := " "
	if strings.Count(text, " ") < len(text)/20 {
		sep = "的" // Chinese has no spaces; any frequent character will do
	}
	words := strings.SplitAfter(text, sep)
	r := rand.New(rand.NewPCG(3, 4))
	var b strings.Builder
	b.WriteString(text)
	for b.Len() < size {
		for range 20 {
			i, j := r.IntN(len(words)), r.IntN(len(words))
			words[i], words[j] = words[j], words[i]
		}
		b.WriteString(strings.Join(words, ""))
	}
	return strings.ToValidUTF8(b.String()[:size], "")
}

// BenchmarkCount compares with the oracle and with tiktoken-go, in the same run.
func BenchmarkCount(b *testing.B) {
	for _, p := range pairs() {
		for _, name := range []string{"english", "code", "chinese"} {
			text := sample(b, name, 32<<10)
			oracle := p.oracle()
			b.Run(fmt.Sprintf("%s/%s/ours", p.Name(), name), func(b *testing.B) {
				b.SetBytes(int64(len(text)))
				b.ReportAllocs()
				for b.Loop() {
					p.Count(text)
				}
			})
			b.Run(fmt.Sprintf("%s/%s/pkoukk", p.Name(), name), func(b *testing.B) {
				b.SetBytes(int64(len(text)))
				b.ReportAllocs()
				for b.Loop() {
					oracle.EncodeOrdinary(text)
				}
			})
			other, err := tokenizer.Get(tokenizer.Encoding(p.Name()))
			if err != nil {
				b.Fatal(err)
			}
			b.Run(fmt.Sprintf("%s/%s/tiktoken-go", p.Name(), name), func(b *testing.B) {
				b.SetBytes(int64(len(text)))
				b.ReportAllocs()
				for b.Loop() {
					if _, err := other.Count(text); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
