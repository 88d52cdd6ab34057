package extract

import (
	"bytes"
	"io"
	"path"
	"strings"
	"unicode/utf8"
)

// format is a type of files and what reads it.
type format struct {
	name   string
	reader string
	read   func(o *output, content []byte) error
}

var (
	text = format{"text document", "text", nil}
	pdf  = format{"PDF", "", readPDF}
	rtf  = format{"RTF document", "rtf", readRTF}
)

// supported names what can be read, for errors.
const supported = "PDF, Word, PowerPoint, Excel, OpenDocument, EPUB, RTF, HTML, XML, CSV, JSON, Markdown, source code and plain text can"

// unsupported makes the Error of a type that is never read. kind has an
// article.
func unsupported(kind string) *Error {
	return &Error{Unsupported: true, Message: "the file is " + kind + ", which can't be read; " + supported}
}

// magic holds how files begin that can't be read.
var magic = []struct{ prefix, kind string }{
	{"\x89PNG", "an image"},
	{"\xff\xd8\xff", "an image"},
	{"GIF8", "an image"},
	{"BM", "an image"},
	{"II*\x00", "an image"},
	{"MM\x00*", "an image"},
	{"RIFF", "an image, sound or video"},
	{"ID3", "a sound"},
	{"OggS", "a sound or video"},
	{"\x1f\x8b", "a compressed file"},
	{"BZh", "a compressed file"},
	{"\xfd7zXZ", "a compressed file"},
	{"7z\xbc\xaf", "a compressed file"},
	{"\x28\xb5\x2f\xfd", "a compressed file"},
	{"Rar!", "a compressed file"},
	{"\x7fELF", "a program"},
	{"MZ", "a program"},
	{"SQLite format 3\x00", "a database"},
}

// pdfHead is how far into a file its PDF header may stand, bytes: what
// readers allow.
const pdfHead = 1024

// sniff finds out what a file is from its content; the name decides only
// between kinds of text.
func sniff(name string, content []byte) (*format, error) {
	switch {
	case len(content) == 0:
		return nil, unreadable("the file is empty")
	case bytes.HasPrefix(content, []byte("PK\x03\x04")), bytes.HasPrefix(content, []byte("PK\x05\x06")):
		return sniffZip(content)
	case bytes.HasPrefix(content, []byte("\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1")):
		return nil, oldOffice(content)
	case bytes.HasPrefix(content, []byte(`{\rtf`)):
		return &rtf, nil
	case bytes.Contains(content[:min(len(content), pdfHead)], []byte("%PDF-")):
		return &pdf, nil
	}
	encoding, err := detect(content)
	if err != nil {
		return nil, err
	}
	if encoding == utf8Name && plain(name, content) {
		return &format{text.name, text.reader, func(o *output, content []byte) error {
			return emitText(o, style(name), bytes.NewReader(content))
		}}, nil
	}
	return sniffText(name, content, encoding), nil
}

// oldOffice tells what an OLE file is: Office wraps what has a password in one.
func oldOffice(content []byte) error {
	if bytes.Contains(content, utf16LE("EncryptedPackage")) {
		return unreadable("the document is protected by a password; please remove it and upload the document again")
	}
	return &Error{Unsupported: true, Message: "the file is an old Office document (before 2007), which can't be read; " +
		"please save it in the current format: " + supported}
}

func utf16LE(s string) []byte {
	b := make([]byte, 0, 2*len(s))
	for i := range len(s) {
		b = append(b, s[i], 0)
	}
	return b
}

// Plain reports whether a file is UTF-8 text that is read as it stands, which
// needs no parser. Nor does it take one to find out: files of other types are not
// looked into, and no encoding is guessed.
func Plain(name string, content []byte) bool {
	if !isUTF8(content) || escaped(content) {
		return false
	}
	switch {
	case bytes.HasPrefix(content, []byte("PK\x03\x04")), bytes.HasPrefix(content, []byte("PK\x05\x06")), bytes.HasPrefix(content, []byte(`{\rtf`)),
		bytes.Contains(content[:min(len(content), pdfHead)], []byte("%PDF-")):
		return false
	}
	encoding, err := detect(content)
	return err == nil && encoding == utf8Name && plain(name, content)
}

// plain reports whether UTF-8 text is to be read as it stands.
func plain(name string, content []byte) bool {
	return typeOfText(name, head(content)) == asText
}

// headLength is how much of a text is looked at to tell its type, bytes.
const headLength = 4096

// head is the beginning of UTF-8 text without white space ahead, in lower
// case.
func head(content []byte) string {
	content = bytes.TrimLeft(bytes.TrimPrefix(content, []byte("\ufeff")), " \t\r\n")
	return strings.ToLower(string(bytes.ToValidUTF8(content[:min(len(content), headLength)], nil)))
}

type textType int

const (
	asText textType = iota
	asHTML
	asXML
	asCSV
	asJSON
)

// typeOfText tells the type of a text from how it begins, given by head, and
// its name.
func typeOfText(name, head string) textType {
	ext := extension(name)
	if sourceOrProse(ext) {
		return asText
	}
	switch {
	case strings.HasPrefix(head, "<!doctype html"), strings.HasPrefix(head, "<html"), strings.HasPrefix(head, "<head"), strings.HasPrefix(head, "<body"):
		return asHTML
	case strings.HasPrefix(head, "<?xml"):
		if strings.Contains(head, "<html") || strings.Contains(head, "<!doctype html") {
			return asHTML
		}
		return asXML
	case strings.HasPrefix(head, "<"):
		switch ext {
		case "html", "htm", "xhtml", "shtml", "mhtml":
			return asHTML
		case "xml", "rss", "atom", "svg", "xsd", "xsl", "xslt", "rdf", "kml", "gpx", "opml", "plist":
			return asXML
		}
		if strings.HasPrefix(head, "<!--") && strings.Contains(head, "<html") {
			return asHTML
		}
	case ext == "html" || ext == "htm" || ext == "xhtml":
		if strings.Contains(head, "</") {
			return asHTML
		}
	case ext == "csv" || ext == "tsv" || ext == "tab":
		return asCSV
	case strings.HasPrefix(head, "{") || strings.HasPrefix(head, "["):
		switch ext {
		case "", "json", "jsonl", "ndjson", "ipynb", "geojson", "jsonld", "har", "webmanifest":
			return asJSON
		}
	}
	return asText
}

// extension is that of a name, in lower case, without the full stop.
func extension(name string) string {
	return strings.ToLower(strings.TrimPrefix(path.Ext(strings.ReplaceAll(name, `\`, "/")), "."))
}

// sourceOrProse reports whether the name is that of text that stays as it is,
// whatever it begins with: HTML in Markdown belongs to it.
func sourceOrProse(ext string) bool {
	switch ext {
	case "md", "markdown", "mdown", "mkd", "mdx", "rst", "adoc", "tex", "org",
		"go", "py", "js", "mjs", "ts", "tsx", "jsx", "java", "kt", "c", "h", "cc", "cpp", "hpp", "cs", "rs", "rb", "php", "swift", "scala",
		"sh", "bash", "zsh", "ps1", "sql", "css", "scss", "vue", "svelte", "toml", "yaml", "yml", "ini", "conf", "log", "diff", "patch":
		return true
	}
	return false
}

// style tells whether a text is prose or lines, by its name: in source code #
// begins a comment and no heading.
func style(name string) Kind {
	switch extension(name) {
	case "", "md", "markdown", "mdown", "mkd", "mdx", "txt", "text", "rst", "adoc", "org",
		// Names that lie: what they promise would not have got here.
		"pdf", "doc", "docx", "odt", "rtf", "epub", "htm", "html":
		return Prose
	}
	return Lines
}

// isBinary reports whether content holds control characters that text has no
// use for: a NUL, or more than one in ten of the others.
func isBinary(content []byte) bool {
	controls := 0
	for _, c := range content {
		if c == 0 {
			return true
		}
		if c < ' ' && c != '\t' && c != '\n' && c != '\r' && c != '\f' && c != '\v' && c != '\b' && c != '\x1b' && c != '\x0e' && c != '\x0f' {
			controls++
		}
	}
	return controls*10 > len(content)
}

// isUTF8 reports whether content is UTF-8.
func isUTF8(content []byte) bool { return utf8.Valid(content) }

// sniffText is the format of a text that needs work: to be decoded, parsed or
// both.
func sniffText(name string, content []byte, encoding string) *format {
	first := make([]byte, headLength)
	n, _ := io.ReadFull(decoder(encoding, content[:min(len(content), 2*headLength)]), first)
	switch typeOfText(name, head(first[:n])) {
	case asHTML:
		return &format{"HTML page", "x/net/html", func(o *output, content []byte) error { return readHTML(o, content, encoding) }}
	case asXML:
		return &format{"XML document", "encoding/xml", func(o *output, content []byte) error { return readXML(o, content, encoding) }}
	case asCSV:
		return &format{"table (CSV)", "encoding/csv", func(o *output, content []byte) error {
			return readCSV(o, decoder(encoding, content))
		}}
	case asJSON:
		return &format{"JSON document", "encoding/json", func(o *output, content []byte) error { return readJSON(o, name, content, encoding) }}
	}
	return &format{text.name, encoding, func(o *output, content []byte) error {
		return emitText(o, style(name), decoder(encoding, content))
	}}
}
