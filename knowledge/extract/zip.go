package extract

import (
	"archive/zip"
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"path"
	"strings"
)

const (
	// maxUnpacked and maxRatio bound what a ZIP archive unpacks to: always so
	// many bytes, and more than that only where it is less than so many times
	// the archive. Real documents shrink to a tenth, tables of numbers to a
	// fiftieth.
	maxUnpacked = 16 << 20
	maxRatio    = 100
	// mostUnpacked is the bound for all, bytes.
	mostUnpacked = 512 << 20
)

var errBomb = unreadable("the archive unpacks to far more than a document of its size: it is refused as a zip bomb")

// archive is a ZIP file.
type archive struct {
	files map[string]*zip.File
	read  map[string]bool // the parts that were read
	left  int64           // how many bytes may still be unpacked
	limit int64
}

// openZip opens an archive and checks what it claims to unpack to.
func openZip(content []byte) (*archive, error) {
	r, err := zip.NewReader(bytes.NewReader(content), int64(len(content)))
	if err != nil {
		return nil, unreadable("the file is a broken ZIP archive or Office document: it is cut off, or damaged")
	}
	a := &archive{files: make(map[string]*zip.File, len(r.File)), read: map[string]bool{}}
	a.left = min(max(maxUnpacked, int64(len(content))*maxRatio), mostUnpacked)
	a.limit = a.left
	var total uint64
	for _, f := range r.File {
		name := strings.ToLower(strings.TrimPrefix(strings.ReplaceAll(f.Name, `\`, "/"), "/"))
		if _, twice := a.files[name]; !twice {
			a.files[name] = f
		}
		if strings.HasSuffix(name, ".xml") || strings.HasSuffix(name, "html") {
			total += min(f.UncompressedSize64, mostUnpacked+1)
		}
	}
	if total > uint64(a.limit) {
		return nil, errBomb
	}
	return a, nil
}

// has reports whether the archive has a file of the name.
func (a *archive) has(name string) bool { return a.files[strings.ToLower(name)] != nil }

// open opens a file of the archive. Archives lie about their sizes: it is
// counted as it is read.
func (a *archive) open(name string) (io.ReadCloser, error) {
	f := a.files[strings.ToLower(strings.TrimPrefix(name, "/"))]
	if f == nil {
		return nil, errMissing
	}
	if f.Flags&1 != 0 {
		return nil, unreadable("the archive is protected by a password; please remove it and upload the document again")
	}
	r, err := f.Open()
	if err != nil {
		return nil, err
	}
	return &counted{r, a}, nil
}

var errMissing = errors.New("a part of the document is missing")

type counted struct {
	io.ReadCloser
	a *archive
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	if c.a.left -= int64(n); c.a.left < 0 {
		return 0, errBomb
	}
	return n, err
}

// readAll unpacks a file.
func (a *archive) readAll(name string) ([]byte, error) {
	r, err := a.open(name)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(r)
}

// once reports whether a part is still to be read. A document may refer to a part
// any number of times: it is read the first time.
func (a *archive) once(name string) bool {
	name = strings.ToLower(strings.TrimPrefix(name, "/"))
	if a.read[name] {
		return false
	}
	a.read[name] = true
	return true
}

// xml calls f for the outermost element of a file, once. A file that isn't there
// is no error: documents have few parts that they must have.
func (a *archive) xml(name string, f func(x *xmlReader, e element) error) error {
	if !a.once(name) {
		return nil
	}
	r, err := a.open(name)
	if errors.Is(err, errMissing) {
		return nil
	}
	if err != nil {
		return err
	}
	defer r.Close()
	x := newXML(r)
	return x.root(func(e element) error { return f(x, e) })
}

// relations are the parts that a part of an Office document refers to.
type relations struct {
	List []struct {
		ID     string `xml:"Id,attr"`
		Type   string `xml:"Type,attr"`
		Target string `xml:"Target,attr"`
		Mode   string `xml:"TargetMode,attr"`
	} `xml:"Relationship"`
	folder string
	parts  map[string]string // by id
}

// relations reads those of a part.
func (a *archive) relations(part string) relations {
	r := relations{folder: path.Dir(part)}
	content, err := a.readAll(path.Join(path.Dir(part), "_rels", path.Base(part)+".rels"))
	if err == nil {
		_ = xml.Unmarshal(content, &r) // a damaged one is like none
	}
	r.parts = make(map[string]string, len(r.List))
	for _, l := range r.List {
		if _, twice := r.parts[l.ID]; !twice && l.Mode != "External" {
			r.parts[l.ID] = l.Target
		}
	}
	return r
}

// target is the part that a reference leads to; empty where there is none.
func (r relations) target(id string) string {
	if target, ok := r.parts[id]; ok {
		return r.resolve(target)
	}
	return ""
}

// ofType lists the parts whose type ends in kind, in order.
func (r relations) ofType(kind string) (parts []string) {
	for _, l := range r.List {
		if strings.HasSuffix(l.Type, "/"+kind) && l.Mode != "External" {
			parts = append(parts, r.resolve(l.Target))
		}
	}
	return parts
}

func (r relations) resolve(target string) string {
	if strings.HasPrefix(target, "/") {
		return strings.TrimPrefix(path.Clean(target), "/")
	}
	return path.Join(r.folder, target)
}

// sniffZip tells what document a ZIP archive is.
func sniffZip(content []byte) (*format, error) {
	a, err := openZip(content)
	if err != nil {
		return nil, err
	}
	mime, _ := a.readAll("mimetype")
	switch kind := strings.TrimSpace(string(mime)); {
	case kind == "application/epub+zip" || a.has("META-INF/container.xml") && !a.has("content.xml"):
		return a.format("e-book (EPUB)", "epub", readEPUB), nil
	case strings.HasPrefix(kind, "application/vnd.oasis.opendocument.") || a.has("content.xml"):
		return a.format("OpenDocument", "opendocument", readODF), nil
	}
	main := first(a.relations("").ofType("officeDocument"), "")
	switch folder, _, _ := strings.Cut(main, "/"); {
	case folder == "word" || a.has("word/document.xml"):
		return a.format("Word document", "docx", readDOCX), nil
	case folder == "ppt" || a.has("ppt/presentation.xml"):
		return a.format("PowerPoint presentation", "pptx", readPPTX), nil
	case folder == "xl" || a.has("xl/workbook.xml"):
		return &format{"Excel workbook", "excelize", func(o *output, content []byte) error { return readXLSX(o, a, content) }}, nil
	}
	return nil, unsupported("a ZIP archive")
}

func (a *archive) format(name, reader string, read func(*output, *archive) error) *format {
	return &format{name, reader, func(o *output, _ []byte) error { return read(o, a) }}
}
