package extract

import (
	"slices"
	"strconv"
	"strings"
)

// readODF reads an OpenDocument text, spreadsheet, presentation or drawing.
func readODF(o *output, a *archive) error {
	if a.has("META-INF/manifest.xml") {
		manifest, err := a.readAll("META-INF/manifest.xml")
		if err == nil && strings.Contains(string(manifest), "encryption-data") {
			return unreadable("the document is protected by a password; please remove it and upload the document again")
		}
	}
	if !a.has("content.xml") {
		return errMissing
	}
	return a.xml("content.xml", func(x *xmlReader, _ element) error {
		return (&odf{o: o, x: x}).blocks(0)
	})
}

// odf reads the content of an OpenDocument.
type odf struct {
	o     *output
	x     *xmlReader
	cell  *strings.Builder // the cell of a table under way; nil: none
	named bool             // tables have names that mean something: sheets
}

// blocks reads what stands in the current element outside of paragraphs;
// items is how many lists it stands in.
func (d *odf) blocks(items int) error {
	return d.x.each(func(e element) error {
		switch e.name() {
		case "h":
			text, err := d.text()
			level, _ := strconv.Atoi(e.attr("outline-level"))
			return d.emit(Heading, level, text, err)
		case "p":
			text, err := d.text()
			if items > 0 {
				return d.emit(Item, 0, "- "+text, err)
			}
			return d.emit(Paragraph, 0, text, err)
		case "list":
			return d.blocks(items + 1)
		case "table":
			return d.table(e)
		case "spreadsheet":
			d.named = true
		case "page": // a slide
			d.o.page++
		case "title", "desc":
			if e.Name.Space != "" && strings.Contains(e.Name.Space, "svg") { // of a picture
				text, err := d.x.text()
				return d.emit(Paragraph, 0, text, err)
			}
		case "styles", "automatic-styles", "font-face-decls", "scripts", "settings", "tracked-changes", "sequence-decls", "variable-decls", "forms", "date", "creator":
			return d.x.skip()
		}
		return d.blocks(items)
	}, nil)
}

func (d *odf) emit(kind Kind, level int, text string, err error) error {
	switch {
	case err != nil:
		return err
	case strings.Trim(text, "- \t\n") == "":
		return nil
	case d.cell != nil:
		d.cell.WriteString(" " + strings.TrimPrefix(text, "- "))
		return nil
	case kind == Heading && len(text) <= maxHeading:
		return d.o.heading(level, text)
	case kind == Heading:
		kind = Paragraph
	}
	return d.o.add(kind, 0, text)
}

// text reads a paragraph. Notes and boxes in it follow it.
func (d *odf) text() (string, error) {
	var b, behind strings.Builder
	var read func(to *strings.Builder) error
	read = func(to *strings.Builder) error {
		return d.x.each(func(e element) error {
			switch e.name() {
			case "s":
				n, err := strconv.Atoi(e.attr("c"))
				if err != nil {
					n = 1
				}
				to.WriteString(strings.Repeat(" ", min(max(n, 0), 100)))
			case "tab":
				to.WriteByte('\t')
			case "line-break":
				to.WriteByte('\n')
			case "note", "annotation", "text-box":
				behind.WriteByte('\n')
				return read(&behind)
			case "note-citation", "date", "creator", "ruby-text":
				return d.x.skip()
			case "p":
				err := read(to)
				to.WriteByte(' ')
				return err
			}
			return read(to)
		}, func(s string) { to.WriteString(strings.NewReplacer("\n", " ", "\r", " ", "\t", " ").Replace(s)) })
	}
	err := read(&b)
	return b.String() + behind.String(), err
}

// maxRepeated bounds how often a row or cell is repeated that says it is: empty
// ones run to the edge of the sheet.
const maxRepeated = 100

// maxColumns is how many columns a sheet has at most.
const maxColumns = 16384

func (d *odf) table(e element) error {
	if d.cell != nil {
		return d.blocks(0)
	}
	if name := e.attr("name"); d.named && name != "" {
		if err := d.o.sheet(name); err != nil {
			return err
		}
	}
	first := true
	var rows func() error
	rows = func() error {
		return d.x.each(func(e element) error {
			switch e.name() {
			case "table-row":
				cells, err := d.row()
				if err != nil {
					return err
				}
				for range repeated(e, "number-rows-repeated") {
					before := d.o.bytes
					if err := d.o.row(first, cells); err != nil || d.o.bytes == before {
						return err
					}
					first = false
				}
				return nil
			case "forms", "shapes":
				return d.x.skip()
			}
			return rows()
		}, nil)
	}
	return rows()
}

// row reads the cells of a row, but for the empty ones at its end.
func (d *odf) row() (cells []string, err error) {
	filled := 0
	err = d.x.each(func(e element) error {
		if e.name() != "table-cell" && e.name() != "covered-table-cell" {
			return d.x.skip()
		}
		d.cell = new(strings.Builder)
		err := d.blocks(0)
		text := d.cell.String()
		d.cell = nil
		if n := repeated(e, "number-columns-repeated"); len(cells)+n <= maxColumns {
			cells = append(cells, slices.Repeat([]string{text}, n)...)
		}
		if text != "" {
			filled = len(cells)
		}
		return err
	}, nil)
	return cells[:filled], err
}

func repeated(e element, attribute string) int {
	n, err := strconv.Atoi(e.attr(attribute))
	if err != nil || n < 1 {
		return 1
	}
	return min(n, maxRepeated)
}
