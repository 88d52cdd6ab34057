package extract

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// gap is what separates the columns of a page laid out as text.
var gap = regexp.MustCompile(` {3,}|\t+`)

const (
	// tableRows is the least number of lines of columns that make a page one
	// of tables.
	tableRows = 3
	// cellWords is the mean number of words in a cell up to which columns are
	// those of a table: the lines of columns of prose have more.
	cellWords = 3.5
)

// tabular reports whether a page, laid out as text, holds tables rather than
// columns of prose.
func tabular(page string) bool {
	rows, cells, words := 0, 0, 0
	for line := range strings.Lines(page) {
		line = strings.TrimSpace(line)
		if n := len(gap.FindAllStringIndex(line, -1)); n > 0 {
			rows++
			cells += n + 1
			words += len(strings.Fields(line))
		}
	}
	return rows >= tableRows && float64(words) <= cellWords*float64(cells)
}

// pageWriter emits pages, less the headers and footers that they repeat.
type pageWriter struct {
	before, last [2][]string // of the two pages before: what stood at the top and bottom
}

// edge is how many lines at the top and bottom of a page are looked at for
// what repeats.
const edge = 2

// strip returns a page without what the two pages before have in the same
// place, page numbers aside.
func (w *pageWriter) strip(page string) string {
	all := strings.Split(page, "\n")
	var filled []int // the lines that aren't blank
	for i, line := range all {
		if !blank(line) {
			filled = append(filled, i)
		}
	}
	var edges [2][]string
	drop := map[int]bool{}
	for side := range edges {
		for n := range min(edge, len(filled)) {
			at := filled[n]
			if side == 1 {
				at = filled[len(filled)-1-n]
			}
			line := strings.Join(strings.Fields(all[at]), " ")
			edges[side] = append(edges[side], line)
			if n >= len(w.last[side]) || n >= len(w.before[side]) {
				continue
			}
			one, two := w.before[side][n], w.last[side][n]
			// Only the last line may count: what counts at the top may be chapters.
			if one == two && two == line || side == 1 && n == 0 && counts(one, two) && counts(two, line) {
				drop[at] = true
			}
		}
	}
	w.before, w.last = w.last, edges
	// A page isn't all header: one of a single line may be a ticket or a label.
	if len(drop) == 0 || len(drop) == len(filled) {
		return page
	}
	kept := all[:0]
	for i, line := range all {
		if !drop[i] {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "\n")
}

var number = regexp.MustCompile(`\d{1,9}`)

// counts reports whether two lines are the same, but for numbers that go up by
// one from page to page.
func counts(a, b string) bool {
	if number.ReplaceAllString(a, "#") != number.ReplaceAllString(b, "#") {
		return false
	}
	before, after := number.FindAllString(a, -1), number.FindAllString(b, -1)
	return slices.EqualFunc(before, after, func(x, y string) bool {
		m, _ := strconv.Atoi(x)
		n, _ := strconv.Atoi(y)
		return n == m || n == m+1
	})
}

// prose emits a page of paragraphs, which blank lines separate.
func (w *pageWriter) prose(o *output, page string) error {
	for part := range strings.SplitSeq(w.strip(page), "\n\n") {
		if err := o.paragraph(part); err != nil {
			return err
		}
	}
	return nil
}

// table emits a page laid out as text: lines of columns are rows, the others
// paragraphs.
func (w *pageWriter) table(o *output, page string) error {
	var held []string
	flush := func() error {
		err := o.paragraph(strings.Join(held, "\n"))
		held = nil
		return err
	}
	first := true
	for line := range strings.SplitSeq(w.strip(page), "\n") {
		line = strings.TrimSpace(line)
		cells := gap.Split(line, -1)
		var err error
		switch {
		case line == "":
			err = flush()
			first = true
		case len(cells) < 2:
			held = append(held, line)
			first = true
		default:
			if err = flush(); err == nil {
				err = o.row(first, cells)
			}
			first = false
		}
		if err != nil {
			return err
		}
	}
	return flush()
}
