package knowledge

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/backstory-proxy/backstory/knowledge/extract"
	"github.com/backstory-proxy/backstory/store"
)

// chunksOfBlocks cuts blocks as Ingest does.
func chunksOfBlocks(t *testing.T, c Chunking, blocks ...extract.Block) (chunks []store.Chunk) {
	t.Helper()
	err := chunkBlocks("a.bin", func(yield func(extract.Block, error) bool) {
		for _, b := range blocks {
			if !yield(b, nil) {
				return
			}
		}
	}, c, words, func(chunk store.Chunk) error {
		chunks = append(chunks, chunk)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range chunks {
		if c.N != i || c.Tokens != words(c.Text) {
			t.Fatalf("chunk %d: %+v", i, c)
		}
	}
	return chunks
}

func TestBlocksBecomeChunksWithTheirPlace(t *testing.T) {
	chunks := chunksOfBlocks(t, Chunking{Size: 60, Overlap: -1},
		extract.Block{Kind: extract.Heading, Level: 1, Page: 1, Text: "Policy"},
		extract.Block{Kind: extract.Paragraph, Page: 1, Text: prose(4)},
		extract.Block{Kind: extract.Heading, Level: 2, Page: 2, Text: "Refunds"},
		extract.Block{Kind: extract.Item, Page: 2, Text: "- " + prose(3)},
		extract.Block{Kind: extract.Paragraph, Page: 3, Text: prose(5)},
	)
	var got []string
	for _, c := range chunks {
		got = append(got, fmt.Sprintf("%s @%d", c.Section, c.Page))
	}
	if want := "[Policy @1 Policy > Refunds @2 Policy > Refunds @3]"; fmt.Sprint(got) != want {
		t.Errorf("got %v", got)
	}
	if !strings.HasPrefix(chunks[1].Text, "## Refunds\n\n- Sentence 0") {
		t.Errorf("text %q", chunks[1].Text)
	}
}

func TestAChunkIsOfThePageThatItIsCitedBy(t *testing.T) {
	var got []string
	for _, c := range chunksOfBlocks(t, Chunking{Size: 60, Overlap: 20},
		extract.Block{Kind: extract.Paragraph, Page: 1, Text: "One."},
		extract.Block{Kind: extract.Heading, Level: 1, Page: 2, Text: "Two"},
		extract.Block{Kind: extract.Paragraph, Page: 2, Text: "Second."},
		extract.Block{Kind: extract.Heading, Level: 1, Page: 3, Text: "Three"},
		extract.Block{Kind: extract.Paragraph, Page: 4, Text: "Fourth."},
		extract.Block{Kind: extract.Paragraph, Page: 5, Text: "Last."},
	) {
		got = append(got, fmt.Sprintf("%d: %s", c.Page, strings.ReplaceAll(c.Text, "\n\n", " ")))
	}
	want := []string{"1: One.", "2: # Two Second.", "4: # Three Fourth.", "5: Last."}
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}

func TestAChunkIsOfTheSheetThatItIsCitedBy(t *testing.T) {
	var got []string
	for _, c := range chunksOfBlocks(t, Chunking{Size: 60, Overlap: 20},
		extract.Block{Kind: extract.Sheet, Level: 1, Text: "Prices"},
		extract.Block{Kind: extract.Row, Level: 1, Text: "lamp | 30"},
		extract.Block{Kind: extract.Sheet, Level: 1, Text: "Stock"},
		extract.Block{Kind: extract.Row, Level: 1, Text: "lamp | 7"},
		extract.Block{Kind: extract.Row, Text: "desk | 2"},
		extract.Block{Kind: extract.Sheet, Level: 1, Text: "Empty"},
		extract.Block{Kind: extract.Sheet, Level: 1, Text: "Notes"},
		extract.Block{Kind: extract.Paragraph, Text: "Comment on A1: old"},
	) {
		got = append(got, fmt.Sprintf("%s: %s", c.Section, strings.Join(strings.Fields(c.Text), " ")))
	}
	want := []string{"Prices: # Prices lamp | 30", "Stock: # Stock lamp | 7 desk | 2", "Notes: # Empty # Notes Comment on A1: old"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}

func TestRowsAndLinesStayWhole(t *testing.T) {
	for kind, line := range map[extract.Kind]string{extract.Row: "one | two. | three! | four", extract.Lines: "if (a) { b. c! d }\n"} {
		var blocks []extract.Block
		for i := range 50 {
			blocks = append(blocks, extract.Block{Kind: kind, Text: fmt.Sprintf("%d %s", i, line)})
		}
		chunks := chunksOfBlocks(t, Chunking{Size: 40, Overlap: 10}, blocks...)
		if len(chunks) < 5 {
			t.Errorf("%d chunks", len(chunks))
		}
		for _, c := range chunks {
			for l := range strings.Lines(c.Text) {
				if _, rest, _ := strings.Cut(strings.TrimSpace(l), " "); rest != strings.TrimSpace(line) {
					t.Errorf("line %q", l)
				}
			}
		}
	}
}

func TestAChunkThatRepeatsAnotherIsLeftOut(t *testing.T) {
	p := func(text string) extract.Block { return extract.Block{Kind: extract.Paragraph, Text: text} }
	long := strings.Repeat("The terms of sale apply to all orders. ", 4)
	for name, c := range map[string]struct {
		second string
		want   int
	}{
		"the same":                 {long, 1},
		"other spaces and symbols": {strings.ToUpper(strings.ReplaceAll(long, " ", ",\n")), 1},
		"another number":           {long + "7", 2},
		"one word more":            {long + "not", 2},
	} {
		t.Run(name, func(t *testing.T) {
			if got := chunksOfBlocks(t, Chunking{Size: 45, Overlap: -1}, p(long), p(c.second)); len(got) != c.want {
				t.Errorf("%d chunks: %+v", len(got), got)
			}
		})
	}
	heading := func(s string) extract.Block { return extract.Block{Kind: extract.Heading, Level: 1, Text: s} }
	if got := chunksOfBlocks(t, Chunking{Size: 45}, heading("Shoes"), p(long), heading("Hats"), p(long)); len(got) != 2 {
		t.Errorf("what stands in another section is another thing: %+v", got)
	}
}

func TestALongFileIsCutDocumentByDocument(t *testing.T) {
	var blocks []extract.Block
	for i := range 3 * documentSize / 1000 {
		blocks = append(blocks, extract.Block{Kind: extract.Prose, Text: fmt.Sprintf("## Part %d\n\n%s\n\n", i/100, strings.Repeat(fmt.Sprintf("word%d ", i), 140))})
	}
	seen := map[string]bool{}
	for _, c := range chunksOfBlocks(t, Chunking{Overlap: -1}, blocks...) {
		if !strings.HasPrefix(c.Section, "Part ") {
			t.Fatalf("chunk %d has lost its heading", c.N)
		}
		for _, w := range strings.Fields(c.Text) {
			seen[w] = true
		}
	}
	for i := range blocks {
		if !seen[fmt.Sprintf("word%d", i)] {
			t.Fatalf("block %d is in no chunk", i)
		}
	}
}

func TestHyphenatedWordsAreIndexedWhole(t *testing.T) {
	c := chunksOfBlocks(t, Chunking{}, extract.Block{Kind: extract.Paragraph, Text: "what be-\ncame of the well-\nKnown"})[0]
	if !strings.Contains(c.Text, "be-\ncame") || !strings.Contains(c.Terms, "became") || strings.Contains(c.Terms, "wellknown") {
		t.Errorf("text %q, terms %q", c.Text, c.Terms)
	}
}

func TestAnErrorEndsTheCutting(t *testing.T) {
	broken := errors.New("broken")
	err := chunkBlocks("a", func(yield func(extract.Block, error) bool) {
		_ = yield(extract.Block{Kind: extract.Paragraph, Text: "text"}, nil) && yield(extract.Block{}, broken)
	}, Chunking{}, words, func(store.Chunk) error { return nil })
	if !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	full := errors.New("full")
	err = chunkBlocks("a", func(yield func(extract.Block, error) bool) {
		yield(extract.Block{Kind: extract.Paragraph, Text: "text"}, nil)
	}, Chunking{}, words, func(store.Chunk) error { return full })
	if !errors.Is(err, full) {
		t.Errorf("got %v", err)
	}
}
