package extract

import (
	"context"
	"fmt"
	"strings"
	"testing"
)

// pagesOf emits pages laid out as text.
func pagesOf(t testing.TB, pages ...string) string {
	var b strings.Builder
	o := &output{ctx: context.Background(), most: maxText, emit: func(block Block) error {
		fmt.Fprintf(&b, "%d:%s\n", block.Kind, strings.ReplaceAll(block.Text, "\n", "⏎"))
		return nil
	}}
	var w pageWriter
	for _, p := range pages {
		write := w.prose
		if tabular(p) {
			write = w.table
		}
		if err := write(o, p); err != nil {
			t.Fatal(err)
		}
	}
	return b.String()
}

func TestTablesOnAPageBecomeRowsAndColumnsOfProseDoNot(t *testing.T) {
	table := "Our prices\n\n  Item      Price    Stock\n  Shoe        5.00     10\n  Red hat     7.50      2\n\nThank you.\n"
	if got := pagesOf(t, table); got != "3:Our prices\n5:Item | Price | Stock\n5:Shoe | 5.00 | 10\n5:Red hat | 7.50 | 2\n3:Thank you.\n" {
		t.Errorf("got %s", got)
	}
	line := "The left column goes on for a while     and the right one does so as well\n"
	if tabular(strings.Repeat(line, 20)) {
		t.Error("columns of prose are taken for a table")
	}
}

func TestWhatPagesRepeatIsLeftOutButNotData(t *testing.T) {
	var pages []string
	for i := range 5 {
		pages = append(pages, fmt.Sprintf("ACME Inc.\n\nText %d of its own\n\nTotal %d\nPage %d of 5", i, 10+i*i*7, i+1))
	}
	got := pagesOf(t, pages...)
	for what, want := range map[string]int{"ACME": 2, "Page ": 2, "Total": 5, "Text": 5} {
		if n := strings.Count(got, what); n != want {
			t.Errorf("%q is there %d times, not %d:\n%s", what, n, want, got)
		}
	}
}

func TestAPageThatIsOneLineKeepsIt(t *testing.T) {
	var pages []string
	for i := range 5 {
		pages = append(pages, fmt.Sprintf("Ticket %d to Zwolle\n", 100+i))
	}
	if got := pagesOf(t, pages...); !strings.Contains(got, "Ticket 104") {
		t.Errorf("got %s", got)
	}
}

func FuzzPages(f *testing.F) {
	f.Add("a   b\nc   d\ne   f\n", "x\n\n1", "x\n\n2")
	f.Fuzz(func(t *testing.T, a, b, c string) { pagesOf(t, a, b, c, c) })
}
