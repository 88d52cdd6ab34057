package extract

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"

	"golang.org/x/net/html/charset"
)

// xmlReader walks through an XML document, element by element. Names are
// compared without their namespaces: the dialects of a format differ in them.
type xmlReader struct {
	d     *xml.Decoder
	depth int
}

func newXML(r io.Reader) *xmlReader {
	d := xml.NewDecoder(r)
	d.Strict = false
	d.Entity = xml.HTMLEntity
	d.CharsetReader = charset.NewReaderLabel
	return &xmlReader{d: d}
}

// element is the start of an element.
type element struct {
	xml.StartElement
}

// attr is the value of an attribute by its name without namespace.
func (e element) attr(name string) string {
	for _, a := range e.Attr {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}

// name is that of the element, without namespace.
func (e element) name() string { return e.Name.Local }

var errDeep = fmt.Errorf("elements stand more than %d deep in each other", maxDepth)

// root calls f for the outermost element.
func (x *xmlReader) root(f func(e element) error) error {
	return x.each(f, nil)
}

// each calls f for every element in the current one, up to its end, and text
// for what stands between them, if it isn't nil. f reads its element to the end
// with each, text or skip.
func (x *xmlReader) each(f func(e element) error, text func(s string)) error {
	if x.depth++; x.depth > maxDepth {
		return errDeep
	}
	defer func() { x.depth-- }()
	for {
		t, err := x.d.Token()
		if errors.Is(err, io.EOF) && x.depth == 1 {
			return nil
		}
		if err != nil {
			return err
		}
		switch t := t.(type) {
		case xml.StartElement:
			if err := f(element{t}); err != nil {
				return err
			}
		case xml.EndElement:
			return nil
		case xml.CharData:
			if text != nil {
				text(string(t))
			}
		}
	}
}

// skip reads the current element to its end.
func (x *xmlReader) skip() error { return x.d.Skip() }

// text reads the current element to its end and returns all text in it.
func (x *xmlReader) text() (string, error) {
	var b strings.Builder
	err := x.collect(&b)
	return b.String(), err
}

func (x *xmlReader) collect(b *strings.Builder) error {
	return x.each(func(element) error { return x.collect(b) }, func(s string) { b.WriteString(s) })
}

// find calls f for every element of the name, wherever it stands, and goes into
// all others.
func (x *xmlReader) find(name string, f func(e element) error) error {
	return x.each(func(e element) error {
		if e.name() == name {
			return f(e)
		}
		return x.find(name, f)
	}, nil)
}

// readXML reads a document of unknown meaning: a line for each element that
// holds text, with the element's name, and its attributes.
func readXML(o *output, content []byte, encoding string) error {
	x := newXML(decoder(encoding, content))
	if strings.HasPrefix(encoding, "utf-") {
		// It has been decoded already, whatever it says of itself.
		x.d.CharsetReader = func(_ string, r io.Reader) (io.Reader, error) { return r, nil }
	} else {
		x = newXML(strings.NewReader(string(content)))
	}
	w := &xmlWriter{x: x, o: o}
	err := x.root(w.element)
	if err != nil && o.seen && !o.final(err) {
		return nil // what could be read is better than nothing
	}
	return err
}

type xmlWriter struct {
	x *xmlReader
	o *output
}

// element writes an element that holds text, and those in it.
func (w *xmlWriter) element(e element) error {
	var line strings.Builder
	for _, a := range e.Attr {
		if a.Name.Space == "xmlns" || a.Name.Local == "xmlns" || strings.TrimSpace(a.Value) == "" {
			continue
		}
		fmt.Fprintf(&line, " %s=%s", a.Name.Local, a.Value)
	}
	inner, nested := 0, false
	flush := func() error {
		text := strings.Join(strings.Fields(line.String()), " ")
		line.Reset()
		if text == "" {
			return nil
		}
		level := 0
		if inner == 0 && nested {
			level = 1
		}
		inner++
		return w.o.add(Row, level, e.name()+": "+text)
	}
	err := w.x.each(func(child element) error {
		nested = true
		if err := flush(); err != nil {
			return err
		}
		return w.element(child)
	}, func(s string) { line.WriteString(" " + s) })
	return errors.Join(err, flush())
}
