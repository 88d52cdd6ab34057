package extract

import (
	"bytes"
	"errors"
	"io"
	"strings"

	icu "github.com/gogs/chardet"
	"github.com/wlynxg/chardet"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/htmlindex"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/encoding/unicode/utf32"
	"golang.org/x/text/transform"
)

const utf8Name = "utf-8"

// detect names the encoding of a text, or returns an *Error if it is none.
func detect(content []byte) (string, error) {
	switch {
	case bytes.HasPrefix(content, []byte("\xff\xfe\x00\x00")), bytes.HasPrefix(content, []byte("\x00\x00\xfe\xff")):
		return "utf-32", nil
	case bytes.HasPrefix(content, []byte("\xff\xfe")):
		return "utf-16le", nil
	case bytes.HasPrefix(content, []byte("\xfe\xff")):
		return "utf-16be", nil
	}
	if name := wide(content); name != "" {
		return name, nil
	}
	valid, binary := isUTF8(content), isBinary(content)
	if name := wideScript(content); name != "" && (binary || !valid) {
		return name, nil
	}
	for _, m := range magic {
		// Prose may begin with "BM" or "RIFF" as well.
		if bytes.HasPrefix(content, []byte(m.prefix)) && (binary || !valid || len(m.prefix) > 4) {
			return "", unsupported(m.kind)
		}
	}
	switch {
	case binary:
		return "", unsupported("binary data")
	case valid && !escaped(content):
		return utf8Name, nil
	}
	return guess(content), nil
}

// escaped reports whether a text begins like one in ISO-2022, whose bytes are
// all of ASCII.
func escaped(content []byte) bool {
	return bytes.Contains(content[:min(len(content), headLength)], []byte("\x1b$"))
}

// wide recognises UTF-16 without a byte order mark: of text with some ASCII in
// it, every other byte is often 0, and those between hardly ever.
func wide(content []byte) string {
	sample := content[:min(len(content)&^1, headLength)]
	var zeros [2]int
	for i, c := range sample {
		if c == 0 {
			zeros[i%2]++
		}
	}
	half := len(sample) / 2
	switch {
	case half < 4 || len(content)%2 != 0:
	case zeros[1]*10 > half*3 && zeros[0]*50 < half:
		return "utf-16le"
	case zeros[0]*10 > half*3 && zeros[1]*50 < half:
		return "utf-16be"
	}
	return ""
}

// sample is how much of a text the detectors see, bytes.
const sample = 64 << 10

// guess names the encoding of a text that isn't UTF-8. One detector knows the
// alphabets, the other is better at telling the languages of Latin script.
func guess(content []byte) string {
	content = telling(content)
	sure := chardet.Detect(content)
	if name := canonical(sure.Encoding); name != "" && name != utf8Name && sure.Confidence >= 0.85 && !latin(name) {
		return name
	}
	best, err := icu.NewTextDetector().DetectBest(content)
	if err != nil {
		return "windows-1252"
	}
	if name := canonical(strings.TrimSuffix(best.Charset, "-I")); name != "" && name != utf8Name && plausible(name, content) {
		return name
	}
	return "windows-1252"
}

// telling is the part of a text that the detectors see: the lines that aren't
// ASCII. The others tell nothing, and pass for English.
func telling(content []byte) []byte {
	var b []byte
	for line := range bytes.Lines(content) {
		if bytes.ContainsFunc(line, func(r rune) bool { return r >= 0x80 || r == 0x1b }) {
			b = append(b, line[:min(len(line), sample-len(b))]...)
		}
		if len(b) == sample {
			break
		}
	}
	return b
}

// canonical is the name of an encoding in the WHATWG's index, where the ISO
// encodings stand for the Windows ones that extend them; empty if it has none.
func canonical(name string) string {
	name = strings.ToLower(name)
	switch name {
	case "gb-18030", "gb2312", "gbk", "hz-gb-2312":
		name = "gb18030"
	case "tis-620":
		name = "windows-874"
	case "iso-8859-2":
		name = "windows-1250"
	case "iso-8859-7":
		name = "windows-1253"
	case "iso-8859-8":
		name = "windows-1255"
	case "cp949":
		name = "euc-kr"
	case "maccyrillic":
		name = "x-mac-cyrillic"
	}
	e, err := htmlindex.Get(name)
	if err != nil {
		return ""
	}
	name, err = htmlindex.Name(e)
	if err != nil || name == "replacement" {
		return ""
	}
	return name
}

// latin reports whether an encoding is for Latin script.
func latin(name string) bool {
	switch name {
	case "windows-1250", "windows-1252", "windows-1254", "windows-1257", "windows-1258", "macintosh",
		"iso-8859-3", "iso-8859-4", "iso-8859-10", "iso-8859-13", "iso-8859-14", "iso-8859-15", "iso-8859-16":
		return true
	}
	return false
}

// plausible reports whether content decodes with hardly any error.
func plausible(name string, content []byte) bool {
	e, err := htmlindex.Get(name)
	if err != nil {
		return false
	}
	decoded, err := e.NewDecoder().Bytes(content)
	return err == nil && bytes.Count(decoded, []byte("\ufffd"))*100 <= len(content)
}

// decoder reads a text as UTF-8.
func decoder(name string, content []byte) io.Reader {
	r := bytes.NewReader(content)
	var e encoding.Encoding
	switch name {
	case utf8Name:
		return bytes.NewReader(bytes.TrimPrefix(content, []byte("\ufeff")))
	case "utf-16le":
		e = unicode.UTF16(unicode.LittleEndian, unicode.UseBOM)
	case "utf-16be":
		e = unicode.UTF16(unicode.BigEndian, unicode.UseBOM)
	case "utf-32":
		e = utf32.UTF32(utf32.LittleEndian, utf32.ExpectBOM)
	default:
		found, err := htmlindex.Get(name)
		if err != nil {
			return r
		}
		e = found
	}
	return transform.NewReader(r, e.NewDecoder())
}

// textStep is how much of a plain text goes into a block, bytes.
const textStep = 1 << 20

// emitText emits a text as it stands, cut at the end of a line where one is.
func emitText(o *output, kind Kind, r io.Reader) error {
	buf := make([]byte, textStep)
	held := 0
	for first := true; ; first = false {
		n, err := io.ReadFull(r, buf[held:])
		held += n
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			return err
		}
		end := held
		if err == nil {
			end = lineBorder(buf[:held])
		}
		text := buf[:end]
		if first {
			text = bytes.TrimPrefix(text, []byte("\ufeff"))
		}
		if e := o.add(kind, 0, string(text)); e != nil || err != nil {
			return e
		}
		held = copy(buf, buf[end:held])
	}
}

// lineBorder is where to cut a long text: behind its last line end, but not
// between \r and \n; or else between two characters.
func lineBorder(b []byte) int {
	if i := bytes.LastIndexAny(b[:len(b)-1], "\r\n"); i > len(b)/2 {
		if b[i] == '\r' && b[i+1] == '\n' {
			i++
		}
		return i + 1
	}
	end := len(b)
	for i := 1; i <= 4 && i < len(b); i++ {
		if c := b[len(b)-i]; c < 0x80 || c >= 0xc0 {
			if c >= 0xc0 {
				end = len(b) - i
			}
			break
		}
	}
	return end
}
