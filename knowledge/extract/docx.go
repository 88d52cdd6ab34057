package extract

import (
	"path"
	"strconv"
	"strings"
)

// readDOCX reads a Word document: its body, then notes, comments, headers and
// footers.
func readDOCX(o *output, a *archive) error {
	main := first(a.relations("").ofType("officeDocument"), "word/document.xml")
	if !a.has(main) {
		return errMissing
	}
	rels := a.relations(main)
	d := &docx{o: o, styles: readStyles(a, first(rels.ofType("styles"), path.Dir(main)+"/styles.xml")),
		numbers: readNumbering(a, first(rels.ofType("numbering"), path.Dir(main)+"/numbering.xml"))}
	if err := d.part(a, main); err != nil {
		return err
	}
	for _, kind := range []string{"footnotes", "endnotes", "comments", "diagramData", "header", "footer"} {
		for _, part := range rels.ofType(kind) {
			d.apart = kind == "header" || kind == "footer"
			if err := d.part(a, part); err != nil {
				if o.final(err) {
					return err
				}
				break // the body is read: what is broken beside it is left out
			}
		}
	}
	return nil
}

func first(list []string, otherwise string) string {
	if len(list) > 0 {
		return list[0]
	}
	return otherwise
}

// docx reads the parts of a Word document.
type docx struct {
	o       *output
	x       *xmlReader
	styles  styles
	numbers numbering
	cell    *strings.Builder // the cell of a table under way; nil: none
	apart   bool             // headers and footers: each text once
	told    map[string]bool
}

func (d *docx) part(a *archive, name string) error {
	return a.xml(name, func(x *xmlReader, _ element) error {
		d.x, d.cell = x, nil
		return d.blocks()
	})
}

// blocks reads what stands in the current element outside of paragraphs.
func (d *docx) blocks() error {
	return d.x.each(func(e element) error {
		switch e.name() {
		case "p":
			return d.paragraph()
		case "tbl":
			return d.table()
		case "pt": // of a diagram
			return d.diagram()
		case "sectPr", "tblPr", "tblGrid", "sdtPr", "del", "moveFrom":
			return d.x.skip()
		case "footnote", "endnote":
			if e.attr("type") != "" && e.attr("type") != "normal" { // the rule above the notes
				return d.x.skip()
			}
		case "AlternateContent":
			return d.alternate(d.blocks)
		}
		return d.blocks()
	}, nil)
}

// alternate reads the first of several forms of the same.
func (d *docx) alternate(read func() error) error {
	taken := false
	return d.x.each(func(e element) error {
		if taken {
			return d.x.skip()
		}
		taken = true
		return read()
	}, nil)
}

// paragraph is a paragraph under way.
type paragraph struct {
	text  strings.Builder
	style string
	list  listRef
	level int // of the outline, from 1; 0: none is given
}

// listRef names a level of a list; num "" is none, and "0" takes the style's away.
type listRef struct {
	num   string
	level int
}

func (d *docx) paragraph() error {
	p := &paragraph{}
	if err := d.runs(p); err != nil {
		return err
	}
	return d.emit(p)
}

// emit emits a paragraph as what its style says it is.
func (d *docx) emit(p *paragraph) error {
	text := strings.TrimSpace(p.text.String())
	style := d.styles.resolve(p.style)
	level := p.level
	if level == 0 {
		level = style.level
	}
	list := p.list
	if list.num == "" {
		list = style.list
	}
	label := ""
	if text != "" && list.num != "" && list.num != "0" {
		label = d.numbers.next(list)
	}
	if text != "" && d.apart {
		if d.told[text] {
			text = ""
		} else if d.told == nil {
			d.told = map[string]bool{}
		}
		d.told[text] = true
	}
	var err error
	switch {
	case text == "":
	case d.cell != nil:
		d.cell.WriteString(" " + strings.TrimPrefix(label+" ", " ") + text)
	case level > 0 && level <= 9 && len(text) <= maxHeading:
		err = d.o.heading(level, joined(label, text))
	case list.num != "" && list.num != "0":
		if label == "" {
			label = "-"
		}
		err = d.o.add(Item, 0, strings.Repeat("  ", min(list.level, 8))+label+" "+text)
	default:
		err = d.o.paragraph(text)
	}
	return err
}

// maxHeading is the length above which a paragraph is none, whatever its style
// says, bytes.
const maxHeading = 500

func joined(label, text string) string { return strings.TrimSpace(label + " " + text) }

// runs reads what stands in a paragraph.
func (d *docx) runs(p *paragraph) error {
	return d.x.each(func(e element) error {
		switch e.name() {
		case "t":
			s, err := d.x.text()
			p.text.WriteString(s)
			return err
		case "tab", "ptab":
			p.text.WriteByte('\t')
		case "br", "cr":
			p.text.WriteByte('\n')
		case "noBreakHyphen":
			p.text.WriteByte('-')
		case "sym":
			if r, err := strconv.ParseUint(e.attr("char"), 16, 32); err == nil && r < 0xf000 {
				p.text.WriteRune(rune(r))
			}
		case "pPr":
			return d.properties(p)
		case "txbxContent": // a text box that is anchored here
			return d.blocks()
		case "tbl":
			return d.table()
		case "p": // a paragraph of a drawing
			p.text.WriteByte(' ')
		case "del", "moveFrom", "rPr", "instrText", "delText", "delInstrText", "sdtPr", "posOffset", "align", "pctWidth", "pctHeight":
			return d.x.skip()
		case "AlternateContent":
			return d.alternate(func() error { return d.runs(p) })
		}
		return d.runs(p)
	}, nil)
}

// properties reads what a paragraph says of itself.
func (d *docx) properties(p *paragraph) error {
	return d.x.each(func(e element) error {
		switch e.name() {
		case "pStyle":
			p.style = e.attr("val")
		case "outlineLvl":
			if n, err := strconv.Atoi(e.attr("val")); err == nil && n >= 0 && n < 9 {
				p.level = n + 1
			}
		case "numPr":
			var err error
			p.list, err = readListRef(d.x)
			return err
		}
		return d.x.skip()
	}, nil)
}

// table reads a table; one within a cell is text of the cell.
func (d *docx) table() error {
	if d.cell != nil {
		return d.blocks()
	}
	first := true
	var rows func() error
	rows = func() error {
		return d.x.each(func(e element) error {
			switch e.name() {
			case "tr":
				err := d.row(first)
				first = false
				return err
			case "tblPr", "tblGrid", "del":
				return d.x.skip()
			}
			return rows()
		}, nil)
	}
	return rows()
}

func (d *docx) row(first bool) error {
	var cells []string
	var read func() error
	read = func() error {
		return d.x.each(func(e element) error {
			switch e.name() {
			case "tc":
				d.cell = new(strings.Builder)
				err := d.blocks()
				cells = append(cells, d.cell.String())
				d.cell = nil
				return err
			case "trPr", "tblPrEx":
				return d.x.skip()
			}
			return read()
		}, nil)
	}
	if err := read(); err != nil {
		return err
	}
	return d.o.row(first, cells)
}

// diagram reads a point of a diagram.
func (d *docx) diagram() error {
	p := &paragraph{}
	if err := d.runs(p); err != nil {
		return err
	}
	return d.o.paragraph(p.text.String())
}
