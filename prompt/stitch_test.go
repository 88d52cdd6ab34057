package prompt_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/backstory-proxy/backstory/prompt"
)

// sentence n of a file; each has 20 words.
func sentence(n int) string { return strings.Repeat(fmt.Sprint("word", n, " "), 19) + "end." }

// chunk n of a file of sentences holds three of them; the first is the last one
// of the chunk before.
func chunk(file string, n int) prompt.Chunk {
	return prompt.Chunk{
		FileID: file, Filename: file + ".txt", Section: "S", N: n, Page: n + 1,
		Text: sentence(2*n) + " " + sentence(2*n+1) + "\n" + sentence(2*n+2),
	}
}

func TestNeighboursAreQuotedAsOne(t *testing.T) {
	elsewhere := chunk("a", 2)
	elsewhere.Section = "T"
	apart := chunk("a", 2)
	apart.Text = "Another text.\n"
	for name, c := range map[string]struct {
		found []prompt.Chunk // best first
		want  []string       // headers and texts
	}{
		"in the order of the file, where the best one stands": {
			[]prompt.Chunk{chunk("b", 7), chunk("a", 1), chunk("c", 3), chunk("a", 0)},
			[]string{`"b.txt" | section: "S" | page: 8`, chunk("b", 7).Text,
				`"a.txt" | section: "S" | pages: 1-2`, chunk("a", 0).Text + " " + sentence(3) + "\n" + sentence(4),
				`"c.txt" | section: "S" | page: 4`, chunk("c", 3).Text},
		},
		"the one between them joins two": {
			[]prompt.Chunk{chunk("a", 2), chunk("b", 1), chunk("a", 0), chunk("a", 1)},
			[]string{`"a.txt" | section: "S" | pages: 1-3`, chunk("a", 0).Text + " " + sentence(3) + "\n" + sentence(4) + " " + sentence(5) + "\n" + sentence(6),
				`"b.txt" | section: "S" | page: 2`, chunk("b", 1).Text},
		},
		"what isn't repeated follows on a line of its own": {
			[]prompt.Chunk{chunk("a", 1), apart},
			[]string{`"a.txt" | section: "S" | pages: 2-3`, chunk("a", 1).Text + "\nAnother text."},
		},
		"another section is told apart": {
			[]prompt.Chunk{chunk("a", 1), elsewhere},
			[]string{`"a.txt" | section: "S" | page: 2`, chunk("a", 1).Text, `"a.txt" | section: "T" | page: 3`, elsewhere.Text},
		},
		"the next of another file isn't a neighbour": {
			[]prompt.Chunk{chunk("a", 1), chunk("b", 2)},
			[]string{`"a.txt" | section: "S" | page: 2`, chunk("a", 1).Text, `"b.txt" | section: "S" | page: 3`, chunk("b", 2).Text},
		},
	} {
		t.Run(name, func(t *testing.T) {
			headers, texts := unquote(t, quote(c.found...))
			var got []string
			for i := range headers {
				got = append(got, strings.TrimPrefix(headers[i], "source: "), strings.TrimSuffix(texts[i], "\n"))
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(c.want, "\n"))
			}
		})
	}
}

// Whatever is found in whatever order: it fits, all that is told as included is
// in the prompt, and the turn that goes on gets the same again.
func TestWhatIsJoinedFitsAndComesAgain(t *testing.T) {
	joined := 0
	for seed := range uint64(500) {
		rnd := rand.New(rand.NewPCG(seed, 3))
		var found []prompt.Chunk
		for _, i := range rnd.Perm(20)[:rnd.IntN(20)] {
			found = append(found, chunk(string(rune('a'+i/8)), i%8))
		}
		budget := rnd.IntN(1200)
		in := prompt.Input{
			Limits:   prompt.Limits{Context: 9000, Added: 4000, Chunks: budget},
			Searches: true,
		}
		p := plan(in, nil, found)
		if p.ChunkTokens > budget || p.ChunkTokens != count(p.Text) {
			t.Fatalf("seed %d: %d tokens of %d, said to be %d", seed, count(p.Text), budget, p.ChunkTokens)
		}
		for _, chunk := range p.Chunks {
			for _, s := range strings.SplitAfter(chunk.Text, "end.") {
				if strings.Count(p.Text, strings.TrimSpace(s)) < 1 || !slices.Contains(found, chunk) {
					t.Fatalf("seed %d: chunk %d of %s isn't all there", seed, chunk.N, chunk.FileID)
				}
			}
		}
		if again := plan(prompt.Input{Continues: true}, nil, p.Chunks); again.Text != p.Text || !slices.Equal(again.Chunks, p.Chunks) {
			t.Fatalf("seed %d: the turn that goes on gets\n%s\nand not\n%s", seed, again.Text, p.Text)
		}
		if strings.Contains(p.Text, "pages: ") {
			joined++
		}
	}
	if joined < 100 {
		t.Errorf("only %d prompts had neighbours", joined)
	}
}
