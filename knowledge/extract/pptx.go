package extract

import (
	"errors"
	"path"
	"strings"
)

// readPPTX reads a PowerPoint presentation, slide by slide, each with its notes.
func readPPTX(o *output, a *archive) error {
	main := first(a.relations("").ofType("officeDocument"), "ppt/presentation.xml")
	if !a.has(main) {
		return errMissing
	}
	rels := a.relations(main)
	var slides []string
	err := a.xml(main, func(x *xmlReader, _ element) error {
		return x.find("sldId", func(e element) error {
			for _, at := range e.Attr { // not the slide's own id, which has no namespace
				if at.Name.Local == "id" && at.Name.Space != "" {
					slides = append(slides, rels.target(at.Value))
				}
			}
			return x.skip()
		})
	})
	if err != nil {
		return err
	}
	return o.readEach(slides, func(slide string) error {
		o.page++
		if a.read[strings.ToLower(slide)] {
			return nil // its relations too are read once
		}
		return readSlide(o, a, slide)
	})
}

func readSlide(o *output, a *archive, part string) error {
	rels := a.relations(part)
	parts := append([]string{part}, rels.ofType("diagramData")...)
	parts = append(parts, rels.ofType("notesSlide")...)
	parts = append(parts, rels.ofType("comments")...)
	for _, p := range parts {
		err := a.xml(p, func(x *xmlReader, _ element) error {
			return (&slide{o: o, x: x, notes: strings.Contains(path.Base(p), "notes")}).shapes()
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// slide reads the parts of a slide.
type slide struct {
	o     *output
	x     *xmlReader
	notes bool
	kind  string // of the placeholder under way: title, body …
}

// shapes reads what stands in the current element outside of text.
func (s *slide) shapes() error {
	return s.x.each(func(e element) error {
		switch e.name() {
		case "sp":
			s.kind = ""
		case "ph":
			s.kind = e.attr("type")
		case "tbl":
			return s.table()
		case "p":
			return s.paragraph()
		case "text": // of a comment
			text, err := s.x.text()
			return errors.Join(err, s.o.paragraph(text))
		case "AlternateContent":
			return s.alternate()
		}
		return s.shapes()
	}, nil)
}

// alternate reads the first of several forms of the same.
func (s *slide) alternate() error {
	taken := false
	return s.x.each(func(e element) error {
		if taken {
			return s.x.skip()
		}
		taken = true
		return s.shapes()
	}, nil)
}

func (s *slide) paragraph() error {
	text, level, err := s.text()
	if err != nil {
		return err
	}
	switch s.kind {
	case "title", "ctrTitle":
		if !s.notes {
			return s.o.heading(1, text)
		}
	case "sldNum", "sldImg": // the number of the slide says nothing
		return nil
	case "", "body", "obj":
		if level > 0 {
			return s.o.add(Item, 0, strings.Repeat("  ", min(level, 8))+"- "+text)
		}
	}
	return s.o.paragraph(text)
}

// text reads the runs of a paragraph; level is its indentation.
func (s *slide) text() (text string, level int, err error) {
	var b strings.Builder
	var runs func() error
	runs = func() error {
		return s.x.each(func(e element) error {
			switch e.name() {
			case "t":
				t, err := s.x.text()
				b.WriteString(t)
				return err
			case "br":
				b.WriteByte('\n')
			case "tab":
				b.WriteByte('\t')
			case "pPr":
				level = len(strings.TrimLeft(e.attr("lvl"), "0"))
				if level > 0 && len(e.attr("lvl")) == 1 {
					level = int(e.attr("lvl")[0] - '0')
				}
				return s.x.skip()
			case "rPr", "endParaRPr":
				return s.x.skip()
			}
			return runs()
		}, nil)
	}
	err = runs()
	return b.String(), level, err
}

func (s *slide) table() error {
	first := true
	return s.x.find("tr", func(element) error {
		var cells []string
		err := s.x.find("tc", func(element) error {
			var b strings.Builder
			err := s.x.find("p", func(element) error {
				text, _, err := s.text()
				b.WriteString(text + " ")
				return err
			})
			cells = append(cells, b.String())
			return err
		})
		if err != nil {
			return err
		}
		err = s.o.row(first, cells)
		first = false
		return err
	})
}
