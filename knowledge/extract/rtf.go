package extract

import (
	"bytes"
	"strconv"
	"strings"
	"unicode/utf16"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
)

// readRTF reads the Rich Text Format.
func readRTF(o *output, content []byte) error {
	r := &rtfReader{o: o, in: content, pages: map[int]encoding.Encoding{}, styles: map[int]int{}}
	r.state.charset, r.ansi = charmap.Windows1252, charmap.Windows1252
	r.state.skip = 1
	for r.pos < len(r.in) && r.err == nil {
		r.step()
	}
	r.paragraph()
	r.endRow()
	return r.err
}

// rtfReader reads an RTF document, byte by byte.
type rtfReader struct {
	o     *output
	in    []byte
	pos   int
	err   error
	state rtfState
	stack []rtfState

	ansi   encoding.Encoding         // of the document
	pages  map[int]encoding.Encoding // of the fonts
	styles map[int]int               // to outline levels
	font   int                       // whose entry is being read
	style  int                       // likewise

	text    strings.Builder // of the paragraph under way
	bytes   []byte          // in the encoding of the state, not yet decoded
	units   []uint16        // UTF-16, not yet decoded
	pending int             // characters to leave out: they stand for \u
	cells   []string        // of the row under way
	rows    int             // of the table so far
	level   int             // outline level of the paragraph, from 1; 0: none
}

// rtfState is what a group restores at its end.
type rtfState struct {
	skip        int // characters that follow each \u
	destination destination
	charset     encoding.Encoding
	table       bool
}

type destination int

const (
	toText   destination = iota
	toNobody             // fonts, pictures and the like
	toFonts
	toStyles
)

// maxGroups bounds how deep groups may stand in each other.
const maxGroups = 10_000

var errGroups = unreadable("the file is nested deeper than %d levels", maxGroups)

// step takes the next character or control word.
func (r *rtfReader) step() {
	c := r.in[r.pos]
	r.pos++
	switch c {
	case '{':
		r.decode()
		if r.stack = append(r.stack, r.state); len(r.stack) > maxGroups {
			r.err = errGroups
		}
	case '}':
		r.decode()
		if n := len(r.stack); n > 0 {
			r.state, r.stack = r.stack[n-1], r.stack[:n-1]
		}
		r.pending = 0
	case '\r', '\n', 0:
	case '\\':
		r.control()
	default:
		r.char(c)
	}
}

// char takes a character of text.
func (r *rtfReader) char(c byte) {
	switch {
	case r.pending > 0:
		r.pending--
	case r.state.destination == toText:
		r.utf16()
		r.bytes = append(r.bytes, c)
	}
}

// control takes what stands behind a backslash.
func (r *rtfReader) control() {
	if r.pos >= len(r.in) {
		return
	}
	c := r.in[r.pos]
	if c|0x20 >= 'a' && c|0x20 <= 'z' {
		r.word()
		return
	}
	r.pos++
	switch c {
	case '\'':
		if r.pos+2 <= len(r.in) {
			if n, err := strconv.ParseUint(string(r.in[r.pos:r.pos+2]), 16, 8); err == nil {
				r.char(byte(n))
			}
			r.pos += 2
		}
	case '*':
		// What not every reader knows follows.
		if !bytes.HasPrefix(r.in[r.pos:], []byte(`\shptxt`)) {
			r.state.destination = toNobody
		}
	case '\\', '{', '}':
		r.char(c)
	case '~':
		r.write("\u00a0")
	case '_':
		r.write("\u2011")
	case '\r', '\n':
		r.paragraph()
	}
}

// word takes a control word with its number.
func (r *rtfReader) word() {
	start := r.pos
	for r.pos < len(r.in) && r.pos-start < 32 && r.in[r.pos]|0x20 >= 'a' && r.in[r.pos]|0x20 <= 'z' {
		r.pos++
	}
	name := string(r.in[start:r.pos])
	start = r.pos
	for r.pos < len(r.in) && r.pos-start < 12 && (r.in[r.pos] >= '0' && r.in[r.pos] <= '9' || r.pos == start && r.in[r.pos] == '-') {
		r.pos++
	}
	n, err := strconv.Atoi(string(r.in[start:r.pos]))
	given := err == nil
	if r.pos < len(r.in) && r.in[r.pos] == ' ' {
		r.pos++
	}
	r.do(name, n, given)
}

// do carries out a control word.
func (r *rtfReader) do(name string, n int, given bool) {
	switch name {
	case "par", "sect", "page", "line", "softline", "row", "cell", "nestcell", "tab", "pard", "nestrow":
		if r.state.destination == toText {
			r.decode()
			r.layout(name)
		}
	case "u":
		r.pending = 0
		if r.state.destination == toText {
			r.flushBytes()
			r.units = append(r.units, uint16(n))
		}
		r.pending = r.state.skip
	case "uc":
		r.state.skip = min(max(n, 0), 10)
	case "bin": // so many bytes of anything
		r.pos = min(r.pos+max(n, 0), len(r.in))
	case "intbl":
		r.state.table = true
	case "outlinelevel":
		if r.state.destination == toStyles {
			r.styles[r.style] = n + 1
		} else if n >= 0 && n < 9 {
			r.level = n + 1
		}
	case "s":
		if r.state.destination == toStyles {
			r.style = n
		} else if l := r.styles[n]; l > 0 && l <= 9 {
			r.level = l
		}
	default:
		if s, ok := rtfSymbols[name]; ok {
			r.write(s)
		} else {
			r.setting(name, n, given)
		}
	}
}

// setting carries out the control words of character sets and destinations.
func (r *rtfReader) setting(name string, n int, given bool) {
	switch name {
	case "ansicpg":
		if e := codePage(n); e != nil {
			r.decode()
			r.ansi, r.state.charset = e, e
		}
	case "mac":
		r.ansi, r.state.charset = charmap.Macintosh, charmap.Macintosh
	case "pc", "pca":
		r.ansi, r.state.charset = charmap.CodePage850, charmap.CodePage850
	case "fonttbl":
		r.state.destination = toFonts
	case "stylesheet":
		r.state.destination = toStyles
	case "f":
		if r.state.destination == toFonts {
			r.font = n
			return
		}
		r.decode()
		r.state.charset = r.ansi
		if e := r.pages[n]; e != nil {
			r.state.charset = e
		}
	case "fcharset":
		if e := codePage(rtfCharsets[n]); e != nil && r.state.destination == toFonts {
			r.pages[r.font] = e
		}
	case "plain":
		r.decode()
		r.state.charset = r.ansi
	case "colortbl", "info", "pict", "object", "fldinst", "bkmkstart", "bkmkend", "generator", "xe", "tc", "themedata",
		"nonshppict", "listtable", "listoverridetable", "revtbl", "rsidtbl", "datastore", "latentstyles", "listtext", "pntext", "filetbl", "atnid", "atnauthor":
		if !given || n != 0 {
			r.state.destination = toNobody
		}
	}
}

// layout ends cells, rows and paragraphs.
func (r *rtfReader) layout(name string) {
	switch name {
	case "tab":
		r.text.WriteByte('\t')
	case "line", "softline":
		r.text.WriteByte('\n')
	case "pard":
		r.level, r.state.table = 0, false
	case "cell", "nestcell":
		r.cells = append(r.cells, r.text.String())
		r.text.Reset()
	case "row":
		r.endRow()
	case "nestrow":
		r.text.WriteByte(' ')
	default:
		if r.state.table {
			r.text.WriteByte('\n') // within a cell
			return
		}
		r.endRow()
		r.paragraph()
	}
}

func (r *rtfReader) endRow() {
	if len(r.cells) > 0 && r.err == nil {
		r.err = r.o.row(r.rows == 0, r.cells)
		r.rows++
	}
	r.cells = nil
}

// paragraph emits the paragraph under way.
func (r *rtfReader) paragraph() {
	r.decode()
	text := strings.TrimSpace(r.text.String())
	r.text.Reset()
	if text == "" || r.err != nil {
		return
	}
	r.rows = 0
	if r.level > 0 && len(text) <= maxHeading {
		r.err = r.o.heading(r.level, text)
	} else {
		r.err = r.o.paragraph(text)
	}
}

// write adds text as it is.
func (r *rtfReader) write(s string) {
	if r.pending > 0 {
		r.pending--
		return
	}
	if r.state.destination == toText {
		r.decode()
		r.text.WriteString(s)
	}
}

// decode adds what was read in another encoding.
func (r *rtfReader) decode() {
	r.flushBytes()
	r.utf16()
}

func (r *rtfReader) flushBytes() {
	if len(r.bytes) == 0 {
		return
	}
	if decoded, err := r.state.charset.NewDecoder().Bytes(r.bytes); err == nil {
		r.text.Write(decoded)
	}
	r.bytes = r.bytes[:0]
}

func (r *rtfReader) utf16() {
	if len(r.units) > 0 {
		r.text.WriteString(string(utf16.Decode(r.units)))
		r.units = r.units[:0]
	}
}
