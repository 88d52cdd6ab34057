package knowledge

import (
	"strings"
	"unicode/utf8"

	"github.com/backstory-proxy/backstory/knowledge/extract"
)

// outline walks over a document block by block, and over text line by line, and
// hands the units to a cutter: headings, sentences of paragraphs, items of
// lists, rows of tables and lines of code.
type outline struct {
	cutter
	path [6]string // the headings that what comes next stands under, by level

	paragraph int    // where the paragraph under way began; -1: none
	fence     string // the mark that ends the code block under way; empty: none
	next      border // of the unit that comes next
	last      lineKind
}

type lineKind int

const (
	lineBlank lineKind = iota
	lineText
	lineItem
	lineRow
	lineCode
	lineHeading
)

// document hands the units of a document on, in order.
func (o *outline) document(d *Document) {
	o.text = d.Text
	for _, s := range d.blocks {
		o.page = s.page
		switch s.kind {
		case extract.Prose:
			o.lines(s.start, s.end, o.markdown)
			o.flush(s.end)
		case extract.Lines:
			o.lines(s.start, s.end, o.code)
		default:
			o.block(s)
		}
	}
}

// block takes a block that needs no further look.
func (o *outline) block(s textBlock) {
	kind := lineText
	switch s.kind {
	case extract.Heading:
		o.heading(s.start, s.end, s.level, s.title, borderHeading)
		return
	case extract.Sheet:
		o.heading(s.start, s.end, s.level, s.title, borderSheet)
		return
	case extract.Item:
		kind = lineItem
	case extract.Row:
		kind = lineRow
	}
	// What stands right below its heading stays with it.
	if o.last != lineHeading && (kind == lineText || kind != o.last || s.kind == extract.Row && s.level > 0) {
		o.next = max(o.next, borderBlock)
	}
	if kind == lineRow {
		o.add(s.start, s.end, o.next)
	} else {
		o.sentences(s.start, s.end, o.next)
	}
	o.next, o.last = borderSentence, kind
}

// lines takes text line by line.
func (o *outline) lines(start, end int, line func(start, end int, s string, blankAfter bool)) {
	text := o.text[:end]
	// Blank lines belong to what stands ahead of them; those at the start
	// to nothing.
	start += len(text[start:]) - len(strings.TrimLeft(text[start:], "\n"))
	for start < len(text) {
		end := lineEnd(text, start)
		s := text[start:end]
		for end < len(text) {
			after := lineEnd(text, end)
			if !blank(text[end:after]) {
				break
			}
			end = after
		}
		followed := strings.TrimRight(s, "\n") // without its own line end
		line(start, end, followed, end-start > len(s))
		start = end
	}
}

// blank reports whether there is nothing to see in a line.
func blank(line string) bool { return extract.Blank(line) }

// lineEnd returns the end of the line that starts at i, its \n included.
func lineEnd(text string, i int) int {
	if n := strings.IndexByte(text[i:], '\n'); n >= 0 {
		return i + n + 1
	}
	return len(text)
}

// code takes a line of source code, which ends at end with the blank lines
// that follow it, if any.
func (o *outline) code(start, end int, s string, blankAfter bool) {
	o.add(start, end, o.next)
	o.next = borderSentence
	if blankAfter {
		o.next = borderBlock
	}
}

// markdown takes a line of Markdown.
func (o *outline) markdown(start, end int, s string, blankAfter bool) {
	kind, level, title := o.classify(s)
	if kind == lineText && o.paragraph >= 0 && o.last == lineText {
		// A line of the paragraph under way, or what makes a heading of it.
		if level := underline(s); level > 0 && lineEnd(o.text, o.paragraph) == start {
			from := o.paragraph
			o.paragraph = -1
			o.heading(from, end, level, o.text[from:start], borderHeading)
			return
		}
	} else {
		o.flush(start)
		// The second line of an item isn't the start of something new.
		if kind != o.last && (kind != lineText || o.last != lineItem) {
			o.next = max(o.next, borderBlock)
		}
	}
	switch kind {
	case lineHeading:
		o.heading(start, end, level, title, borderHeading)
		return
	case lineText:
		if o.paragraph < 0 {
			o.paragraph = start
		}
		if blankAfter {
			o.flush(end)
		}
	case lineItem:
		o.sentences(start, end, o.next)
		o.next = borderSentence
	default:
		o.add(start, end, o.next)
		o.next = borderSentence
	}
	if blankAfter && o.fence == "" {
		o.next = borderBlock
	}
	o.last = kind
}

// flush emits the paragraph under way, which ends at end.
func (o *outline) flush(end int) {
	if o.paragraph < 0 {
		return
	}
	o.sentences(o.paragraph, end, o.next)
	o.paragraph, o.next = -1, borderBlock
}

// heading emits a heading and makes it the one that what follows stands under.
func (o *outline) heading(start, end, level int, title string, b border) {
	o.path[level-1] = clipTitle(title)
	clear(o.path[level:])
	var names []string
	for _, t := range o.path {
		if t != "" {
			names = append(names, t)
		}
	}
	o.section = strings.Join(names, " > ")
	n, tokens := o.fit(o.text[start:end])
	o.emit(unit{start: start, end: start + n, tokens: max(tokens, 1), border: b, heading: start+n == end, section: o.section, page: o.page})
	o.add(start+n, end, borderWord)
	o.next, o.last = borderSentence, lineHeading
}

// maxTitle is where a heading is cut in a heading path, bytes: the path goes
// into every chunk of its section.
const maxTitle = 120

// clipTitle prepares a heading for the path: without marks, and not too long.
func clipTitle(s string) string {
	s = strings.Trim(strings.TrimSpace(strings.TrimRight(strings.TrimSpace(s), "#")), "*_")
	if len(s) <= maxTitle {
		return s
	}
	n := maxTitle
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return strings.TrimSpace(s[:n])
}
