package knowledge

import (
	"bytes"
	"errors"
	"path"
	"strings"
	"unicode/utf8"
)

// ErrNoText says that a file holds nothing to read.
var ErrNoText = errors.New("the file holds no text")

// UnsupportedError says that a file is of a kind that can't be read.
type UnsupportedError struct {
	Kind string // what it is instead, such as "a PDF document"
}

func (e *UnsupportedError) Error() string {
	return "the file is " + e.Kind + ", which can't be read; plain text, Markdown and source code in UTF-8 can"
}

// Document is the text of a file.
type Document struct {
	Name string
	// Text is valid UTF-8 with \n at line ends.
	Text string
	// Markdown says that headings, tables and lists in Text mean something;
	// otherwise it is lines, as of source code.
	Markdown bool
}

// Read gets the text of a file. What kind of file it is shows in the content;
// the name only tells source code from prose. Errors are *UnsupportedError and
// ErrNoText.
func Read(name string, content []byte) (Document, error) {
	if kind := foreign(content); kind != "" {
		return Document{}, &UnsupportedError{Kind: kind}
	}
	content = bytes.TrimPrefix(content, []byte("\ufeff"))
	text := strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(string(content))
	if blank(text) {
		return Document{}, ErrNoText
	}
	return Document{Name: name, Text: text, Markdown: isProse(name)}, nil
}

// isProse reports whether a name is that of prose, where # begins a heading
// and not a comment.
func isProse(name string) bool {
	switch strings.ToLower(path.Ext(name)) {
	case "", ".md", ".markdown", ".mdown", ".mkd", ".mdx", ".txt", ".text":
		return true
	}
	return false
}

// magic holds how files begin that aren't text.
var magic = []struct{ prefix, kind string }{
	{"%PDF-", "a PDF document"},
	{"PK\x03\x04", "a ZIP archive or an Office document"},
	{"PK\x05\x06", "an empty ZIP archive"},
	{"\xd0\xcf\x11\xe0", "an old Office document"},
	{`{\rtf`, "an RTF document"},
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
	{"\xff\xfe", "text in UTF-16"},
	{"\xfe\xff", "text in UTF-16"},
}

// foreign names what content is if it isn't UTF-8 text; empty if it is.
func foreign(content []byte) string {
	encoded, binary := utf8.Valid(content), isBinary(content)
	for _, m := range magic {
		// Prose may begin with "BM" or "RIFF" as well.
		if bytes.HasPrefix(content, []byte(m.prefix)) && (binary || !encoded || len(m.prefix) > 4) {
			return m.kind
		}
	}
	switch {
	case binary:
		return "binary data"
	case !encoded:
		return "text in an encoding other than UTF-8"
	}
	return ""
}

// isBinary reports whether content holds control characters that text has no
// use for: a NUL, or more than one in ten of the others.
func isBinary(content []byte) bool {
	controls := 0
	for _, c := range content {
		if c == 0 {
			return true
		}
		if c < ' ' && c != '\t' && c != '\n' && c != '\r' && c != '\f' && c != '\v' && c != '\b' && c != '\x1b' {
			controls++
		}
	}
	return controls*10 > len(content)
}

// blank reports whether there is nothing to see in a text.
func blank(text string) bool {
	return strings.Trim(text, " \t\n\v\f\r\u00a0\u00ad\u200b\u200c\u200d\u2028\u2029\u2060\u3000\ufeff") == ""
}
