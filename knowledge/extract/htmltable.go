package extract

import (
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// htmlTable is the row under way of the outermost table.
type htmlTable struct {
	cells []string
	first bool // the next row is the first
	inner int  // how many tables within it are under way
}

// layoutCell is the text of a cell above which a table is there for the layout
// of the page, and no table, characters.
const layoutCell = 600

// tableOf writes a table; one within a cell is text of the cell.
func (w *htmlWriter) tableOf(n *html.Node) {
	if w.table != nil {
		w.table.inner++
		w.text.WriteByte(' ')
		w.children(n)
		w.text.WriteByte(' ')
		w.table.inner--
		return
	}
	w.flush()
	if cells, longest := sizeUp(n, 0); cells < 2 || longest > layoutCell {
		w.children(n)
		return
	}
	w.table = &htmlTable{first: true}
	w.children(n)
	w.endRow()
	w.table = nil
	w.take()
}

// row writes a row of the table under way.
func (w *htmlWriter) row(n *html.Node) {
	if w.table == nil || w.table.inner > 0 {
		w.children(n)
		return
	}
	w.endRow()
	w.children(n)
	w.endRow()
}

func (w *htmlWriter) cell(n *html.Node) {
	if w.table == nil || w.table.inner > 0 {
		w.flush()
		w.children(n)
		w.flush()
		return
	}
	w.take()
	w.children(n)
	w.table.cells = append(w.table.cells, w.take())
}

// endRow emits the row under way. What stands in a table beside its cells,
// such as a caption, is a row too.
func (w *htmlWriter) endRow() {
	if s := w.take(); !blank(s) {
		w.table.cells = append(w.table.cells, s)
	}
	if w.err == nil && len(w.table.cells) > 0 {
		w.err = w.o.row(w.table.first, w.table.cells)
		w.table.first = false
	}
	w.table.cells = w.table.cells[:0]
}

// sizeUp counts the cells of a table, and the characters of the longest.
func sizeUp(n *html.Node, depth int) (cells, longest int) {
	for c := n.FirstChild; c != nil && depth < maxDepth; c = c.NextSibling {
		if c.DataAtom == atom.Td || c.DataAtom == atom.Th {
			length, _ := textLength(c, 0)
			cells, longest = cells+1, max(longest, length)
		} else if c.DataAtom != atom.Table {
			more, long := sizeUp(c, depth+1)
			cells, longest = cells+more, max(longest, long)
		}
	}
	return cells, longest
}
