package extract

import (
	"strings"
	"unicode/utf8"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
	"golang.org/x/net/html/charset"
)

// readHTML reads a web page. encoding is what it is by its bytes; what the
// page says of itself counts, unless it says what can't be.
func readHTML(o *output, content []byte, encoding string) error {
	root, err := parseHTML(content, encoding)
	if err != nil {
		return err
	}
	if main := mainPart(root); main != nil {
		o.info.Reader = "go-readability"
		if err := emitTitle(o, root); err != nil {
			return err
		}
		root = main
	}
	return emitHTML(o, root)
}

func parseHTML(content []byte, encoding string) (*html.Node, error) {
	if encoding != utf8Name && !strings.HasPrefix(encoding, "utf-16") && !strings.HasPrefix(encoding, "utf-32") {
		if e, name, sure := charset.DetermineEncoding(content, ""); e != nil && (sure || name != "windows-1252") && plausible(name, content) {
			encoding = name
		}
	}
	return html.ParseWithOptions(decoder(encoding, content), html.ParseOptionEnableScripting(false))
}

// htmlWriter turns nodes into blocks.
type htmlWriter struct {
	o     *output
	text  strings.Builder // of the block under way
	kind  Kind
	level int
	err   error
	depth int
	table *htmlTable // the table under way

	looked int // how much of text is known to be blank
}

// maxDepth is how deep elements may stand in each other; what stands deeper is
// left out. The parser has a bound of its own.
const maxDepth = 1000

// emitHTML emits what stands in a node.
func emitHTML(o *output, n *html.Node) error {
	w := &htmlWriter{o: o, kind: Paragraph}
	w.node(n)
	w.flush()
	return w.err
}

// flush emits the block under way. All that stands in a cell is one text.
func (w *htmlWriter) flush() {
	kind, level := w.kind, w.level
	w.kind, w.level = Paragraph, 0
	if w.table != nil {
		if s := w.text.String(); s != "" && s[len(s)-1] != ' ' {
			w.text.WriteByte(' ')
		}
		return
	}
	s := w.take()
	switch {
	case w.err != nil:
	case kind == Heading:
		w.err = w.o.heading(level, s)
	case kind == Lines:
		if !blank(s) {
			w.err = w.o.add(Lines, 0, strings.Trim(s, "\n")+"\n\n")
		}
	default:
		w.err = w.o.add(kind, 0, squeeze(s))
	}
}

// take takes the text of the block under way.
func (w *htmlWriter) take() string {
	s := w.text.String()
	w.text.Reset()
	w.looked = 0
	return s
}

// unseen reports whether nothing of the block under way can be seen yet. What is
// known to be blank isn't looked at again.
func (w *htmlWriter) unseen() bool {
	s := w.text.String()[w.looked:]
	seen := strings.TrimLeft(s, blanks)
	w.looked += len(s) - len(seen)
	return seen == ""
}

// squeeze makes one space of each run of white space; line breaks stay where
// the page has them, as \v.
func squeeze(s string) string {
	var b strings.Builder
	for i, line := range strings.Split(s, "\v") {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(strings.Join(strings.Fields(line), " "))
	}
	return b.String()
}

// children writes what stands in a node, as a block of its own where kind says
// so.
func (w *htmlWriter) children(n *html.Node) {
	if w.depth++; w.depth < maxDepth && w.err == nil {
		for c := n.FirstChild; c != nil; c = c.NextSibling {
			w.node(c)
		}
	}
	w.depth--
}

func (w *htmlWriter) block(n *html.Node, kind Kind, level int) {
	w.flush()
	w.kind, w.level = kind, level
	w.children(n)
	w.flush()
}

func (w *htmlWriter) node(n *html.Node) {
	switch n.Type {
	case html.TextNode:
		w.text.WriteString(n.Data)
		return
	case html.DocumentNode:
		w.children(n)
		return
	case html.ElementNode:
	default:
		return
	}
	if hidden(n) {
		return
	}
	switch n.DataAtom {
	case atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6:
		w.block(n, Heading, int(n.Data[1]-'0'))
	case atom.Title:
		// The title names the whole page.
		if n.Parent != nil && n.Parent.DataAtom == atom.Head {
			w.block(n, Heading, 1)
		}
	case atom.Li, atom.Dt, atom.Dd, atom.Option:
		w.block(n, Item, 0)
	case atom.Pre, atom.Textarea:
		w.block(n, Lines, 0)
	case atom.Br:
		if w.kind == Lines {
			w.text.WriteByte('\n')
		} else {
			w.text.WriteByte('\v')
		}
	case atom.Table:
		w.tableOf(n)
	case atom.Tr:
		w.row(n)
	case atom.Td, atom.Th:
		w.cell(n)
	case atom.A:
		w.link(n)
	case atom.Input:
		if v := attribute(n, "value"); v != "" && attribute(n, "type") != "hidden" {
			w.text.WriteString(" " + v + " ")
		}
	default:
		if inline(n.DataAtom) {
			w.children(n)
			return
		}
		// The first paragraph of an item or heading is that.
		kind, level := Paragraph, 0
		if (w.kind == Item || w.kind == Heading) && w.unseen() {
			kind, level = w.kind, w.level
		}
		w.block(n, kind, level)
	}
}

// hidden reports whether an element is never shown.
func hidden(n *html.Node) bool {
	switch n.DataAtom {
	case atom.Script, atom.Style, atom.Template, atom.Iframe, atom.Object, atom.Svg, atom.Audio, atom.Video, atom.Canvas, atom.Datalist:
		return true
	}
	for _, a := range n.Attr {
		if a.Key == "hidden" || a.Key == "style" && strings.Contains(strings.ReplaceAll(a.Val, " ", ""), "display:none") {
			return true
		}
	}
	return false
}

// inline reports whether an element runs along in its line.
func inline(a atom.Atom) bool {
	switch a {
	case atom.Abbr, atom.B, atom.Bdi, atom.Bdo, atom.Big, atom.Cite, atom.Code, atom.Data, atom.Del, atom.Dfn, atom.Em, atom.Font, atom.I,
		atom.Ins, atom.Kbd, atom.Label, atom.Mark, atom.Math, atom.Meter, atom.Nobr, atom.Noscript, atom.Output, atom.Picture, atom.Q, atom.Ruby,
		atom.S, atom.Samp, atom.Small, atom.Span, atom.Strike, atom.Strong, atom.Sub, atom.Sup, atom.Time, atom.Tt, atom.U, atom.Var, atom.Wbr,
		atom.Img, atom.Html, atom.Head, 0:
		return true
	}
	return false
}

// link writes a link; of one around a picture, what the picture stands for.
func (w *htmlWriter) link(n *html.Node) {
	before := w.text.Len()
	w.children(n)
	if blank(w.text.String()[min(before, w.text.Len()):]) {
		if img := find(n, atom.Img, 0); img != nil {
			w.text.WriteString(" " + attribute(img, "alt") + " ")
		}
	}
}

// find returns the first element of its kind in a node, or nil.
func find(n *html.Node, a atom.Atom, depth int) *html.Node {
	for c := n.FirstChild; c != nil && depth < maxDepth; c = c.NextSibling {
		if c.DataAtom == a {
			return c
		}
		if found := find(c, a, depth+1); found != nil {
			return found
		}
	}
	return nil
}

func attribute(n *html.Node, key string) string {
	for _, a := range n.Attr {
		if a.Key == key {
			return a.Val
		}
	}
	return ""
}

// textLength counts the characters that a node shows, and those of them in
// links.
func textLength(n *html.Node, depth int) (all, linked int) {
	if n.Type == html.TextNode {
		return utf8.RuneCountInString(strings.Join(strings.Fields(n.Data), " ")), 0
	}
	if depth > maxDepth || n.Type == html.ElementNode && hidden(n) {
		return 0, 0
	}
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		a, l := textLength(c, depth+1)
		all, linked = all+a, linked+l
	}
	if n.DataAtom == atom.A {
		linked = all
	}
	return all, linked
}

// emitChapter emits a chapter of a book: its title counts only where it has no
// heading.
func emitChapter(o *output, root *html.Node) error {
	body := find(root, atom.Body, 0)
	if body == nil {
		body = root
	}
	for _, a := range []atom.Atom{atom.H1, atom.H2, atom.H3} {
		if find(body, a, 0) != nil {
			return emitHTML(o, body)
		}
	}
	if err := emitTitle(o, root); err != nil {
		return err
	}
	return emitHTML(o, body)
}
