package knowledge

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/backstory-proxy/backstory/knowledge/extract"
	"github.com/backstory-proxy/backstory/store"
)

// words counts a token per word and one per eight bytes of a long one.
func words(s string) int {
	n := 0
	for _, w := range strings.Fields(s) {
		n += 1 + len(w)/8
	}
	return n
}

func cut(t testing.TB, name, text string, c Chunking) []store.Chunk {
	t.Helper()
	doc, err := readDocument(name, text)
	if err != nil {
		t.Fatal(err)
	}
	chunks := chunksOf(doc, c, words)
	check(t, doc, c, words, chunks)
	return chunks
}

// readDocument reads a file into one document.
func readDocument(name, text string) (Document, error) {
	d := Document{Name: name}
	var b strings.Builder
	_, err := extract.Read(context.Background(), name, []byte(text), func(block extract.Block) error {
		d.add(&b, block)
		return nil
	})
	d.Text = b.String()
	return d, err
}

// chunksOf cuts a document.
func chunksOf(doc Document, c Chunking, count func(string) int) (chunks []store.Chunk) {
	newChunker(c, count, func(chunk store.Chunk) { chunks = append(chunks, chunk) }).document(&doc)
	return chunks
}

// check tests what holds for every document: no chunk is too long, they are
// numbered, and together they hold all of the text, in order.
func check(t testing.TB, doc Document, c Chunking, count func(string) int, chunks []store.Chunk) {
	t.Helper()
	limit := max(c.Size, minSize)
	if c.Size == 0 {
		limit = DefaultSize
	}
	covered := 0
	for i, chunk := range chunks {
		if chunk.N != i || chunk.Tokens != count(chunk.Text) || chunk.Tokens > limit {
			t.Fatalf("chunk %d of %d is number %d and has %d tokens (%d)", i, len(chunks), chunk.N, chunk.Tokens, count(chunk.Text))
		}
		if strings.TrimSpace(chunk.Text) == "" || !utf8.ValidString(chunk.Text) {
			t.Fatalf("chunk %d: %q", i, chunk.Text)
		}
		// It begins no later than where the one before ended, but for space.
		rest := doc.Text[covered:]
		gap := len(rest) - len(strings.TrimLeftFunc(rest, unicode.IsSpace))
		latest := covered + gap
		from := max(0, covered-len(chunk.Text))
		at := strings.LastIndex(doc.Text[from:min(len(doc.Text), latest+len(chunk.Text))], chunk.Text)
		if at < 0 || from+at > latest {
			t.Fatalf("text is missing ahead of chunk %d: %q", i, chunk.Text)
		}
		covered = max(covered, from+at+len(chunk.Text))
	}
	if rest := strings.TrimSpace(doc.Text[covered:]); rest != "" {
		t.Fatalf("text is missing at the end: %q", rest)
	}
}

// prose is n sentences of ten words.
func prose(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "Sentence %d goes on for just ten short words here. ", i)
	}
	return strings.TrimSpace(b.String())
}

func TestChunksKnowTheirHeadings(t *testing.T) {
	text := "# Policy\n\n" + prose(4) + "\n\n## Refunds ##\n\n" + prose(4) + "\n\n### **Deadlines**\n" + prose(4) +
		"\n\nContact\n-------\n\n" + prose(4) + "\n\n# Terms\n\n" + prose(4)
	chunks := cut(t, "a.md", text, Chunking{Size: 60})
	var sections []string
	for _, c := range chunks {
		sections = append(sections, c.Section)
	}
	want := "[Policy Policy > Refunds Policy > Refunds > Deadlines Policy > Contact Terms]"
	if got := fmt.Sprint(sections); got != want {
		t.Errorf("got %s", got)
	}
	if !strings.HasPrefix(chunks[1].Text, "## Refunds") {
		t.Errorf("the heading isn't with its section: %q", chunks[1].Text)
	}
	if c := cut(t, "refund-policy.md", text, Chunking{Size: 60})[2]; !strings.HasPrefix(c.Terms, "refund policy policy refunds deadlines") {
		t.Errorf("terms %q", c.Terms)
	}
}

func TestCommentsInSourceCodeAreNoHeadings(t *testing.T) {
	for _, c := range cut(t, "a.py", strings.Repeat("# comment\nx = 1\n\n", 50), Chunking{Size: 40}) {
		if c.Section != "" {
			t.Fatalf("section %q", c.Section)
		}
	}
}

func TestSmallSectionsShareAChunk(t *testing.T) {
	if got := cut(t, "a.md", "# A\n\none\n\n# B\n\ntwo\n\n# C\n\nthree\n", Chunking{}); len(got) != 1 {
		t.Errorf("%d chunks", len(got))
	}
}

func TestCutsFallBetweenParagraphsWhereTheyCan(t *testing.T) {
	chunks := cut(t, "a.md", prose(4)+"\n\n"+prose(4)+"\n\n"+prose(4), Chunking{Size: 50, Overlap: -1})
	if len(chunks) != 3 || chunks[1].Text != prose(4) {
		t.Errorf("got %d chunks: %+v", len(chunks), chunks)
	}
}

func TestChunksOverlapWithinASectionOnly(t *testing.T) {
	one := cut(t, "a.md", prose(20), Chunking{Size: 60, Overlap: 15})
	for i := 1; i < len(one); i++ {
		first := one[i].Text[:strings.Index(one[i].Text, ".")+1]
		if !strings.HasSuffix(one[i-1].Text, first) {
			t.Errorf("chunk %d doesn't begin with the end of the one before: %q", i, first)
		}
	}
	two := cut(t, "a.md", prose(4)+"\n\n# Next\n\n"+prose(3), Chunking{Size: 60, Overlap: 15})
	if len(two) != 2 || !strings.HasPrefix(two[1].Text, "# Next") {
		t.Errorf("got %+v", two)
	}
}

func TestLinesOfCodeAndRowsOfTablesStayWhole(t *testing.T) {
	row := "| 1234567 | a b c d. E f g. | x |"
	line := "    if ready { return a. b, c }"
	for name, text := range map[string]string{
		"table":       "| A | B | C |\n|---|---|---|\n" + strings.Repeat(row+"\n", 40),
		"fenced code": "```go\n" + strings.Repeat(line+"\n\n", 40) + "```\n",
	} {
		t.Run(name, func(t *testing.T) {
			for _, c := range cut(t, "a.md", text, Chunking{Size: 50}) {
				for l := range strings.Lines(c.Text) {
					if l = strings.TrimSuffix(l, "\n"); len(l) > 13 && l != row && l != line {
						t.Errorf("line %q", l)
					}
				}
			}
		})
	}
}

func TestAHeadingInACodeBlockIsCode(t *testing.T) {
	chunks := cut(t, "a.md", "# Real\n\n```sh\n# not a heading\nmake\n```\n\ntext", Chunking{})
	if chunks[0].Section != "Real" {
		t.Errorf("section %q", chunks[0].Section)
	}
}

func TestEnormousLinesAreSplit(t *testing.T) {
	for name, text := range map[string]string{
		"sentences":   prose(5000),
		"words":       strings.Repeat("word ", 50_000),
		"one word":    strings.Repeat("x", 200_000),
		"ideographs":  strings.Repeat("語", 60_000),
		"white space": "a" + strings.Repeat(" ", 200_000) + "b",
	} {
		t.Run(name, func(t *testing.T) { cut(t, "a.md", text, Chunking{Size: 100}) })
	}
}

func TestHostileTextTakesLinearTime(t *testing.T) {
	const size = 1 << 20
	for name, unit := range map[string]string{
		"headings": "#\n", "deep headings": "###### a\n", "fences": "```\n~~~\n", "items": "- ", "rows": "|\n",
		"full stops": ". ", "blank lines": "\n \n", "underlines": "a\n=\n", "brackets": "[](", "one line": "a", "hashes": "#",
	} {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			cut(t, "a.md", "a"+strings.Repeat(unit, size/len(unit)), Chunking{})
			// Measured: under 1 s, also with the race detector on a busy
			// machine; what is quadratic takes minutes.
			if d := time.Since(start); d > 20*time.Second {
				t.Errorf("took %v", d)
			}
		})
	}
}

func TestAnEnormousHeadingDoesNotFillTheSections(t *testing.T) {
	for _, c := range cut(t, "a.md", "# "+strings.Repeat("tïtle ", 10_000)+"\n\n"+prose(10), Chunking{Size: 50}) {
		if len(c.Section) > maxTitle || !utf8.ValidString(c.Section) {
			t.Fatalf("%d bytes of section", len(c.Section))
		}
	}
}

func FuzzReadAndChunk(f *testing.F) {
	for _, s := range []string{
		"# A\n\ntext\n\n- item\n  more\n1. x\n", "```\ncode\n", "a\n===\nb\n---\n", "| a |\n|--|\n| b |\n", "\n \n# \n\n\n#x",
		"日本語。「引用。」次の文。", "a. b! c? \"d.\" e", "\u2028\u0085x\u00a0", "    code\n\n\ttab\n",
	} {
		f.Add(s, true, uint8(20), uint8(5))
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 20 { // longer ones, from the same alphabet
		var b strings.Builder
		for range 400 {
			b.WriteString([]string{"# ", "\n", "\n\n", "word ", "end. ", "- ", "```\n", "| x |\n", "語。", "  ", "\t", "==\n"}[r.IntN(12)])
		}
		f.Add(b.String(), r.IntN(2) == 0, uint8(r.IntN(100)), uint8(r.IntN(50)))
	}
	f.Fuzz(func(t *testing.T, text string, prose bool, size, overlap uint8) {
		name := "a.go"
		if prose {
			name = "a.md"
		}
		doc, err := readDocument(name, text)
		if err != nil {
			return
		}
		for _, count := range []func(string) int{words, func(s string) int { return len(s) }} {
			c := Chunking{Size: max(minSize, int(size)), Overlap: int(overlap)}
			check(t, doc, c, count, chunksOf(doc, c, count))
		}
	})
}
