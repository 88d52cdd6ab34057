// Package extract gets the text out of files: documents, tables, web pages,
// e-books, source code and text in any common encoding.
//
// A file comes in as bytes, with its name as a hint; what it is shows in the
// bytes. Its text goes out in blocks, in the order of reading, each with the
// place where it stands. Nothing else is read or written, but for pdftotext,
// which is run where it is installed.
//
// The readers work on what strangers send, and not all of them are ours: a file
// can make them panic, run forever or take all memory. Package sandbox runs them
// in a process of their own.
package extract

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// Content is the bytes of a file, wherever they lie, as a bytes.Reader has them.
type Content interface {
	io.ReaderAt
	Size() int64
}

// Kind is what a block is.
type Kind byte

// The kinds of blocks.
const (
	// Prose is text as it stood in the file, Markdown perhaps, whose headings
	// and lists are still to be found; Lines is text of which each line is
	// whole, such as source code. A Prose or Lines block that follows one of
	// its kind goes on where that one ended.
	Prose Kind = iota
	Lines
	Heading   // one line; Level is 1 to 6
	Paragraph // one or more sentences
	Item      // an item of a list
	Row       // a row of a table, or a line of a record; Level 1: it begins a new one
	Sheet     // the name of a sheet: a Heading of Level 1 that starts something new, as a page does
)

// Block is a stretch of a file's text that is of one kind.
type Block struct {
	Kind  Kind
	Level int // of a Heading and a Row
	Page  int // page or slide, from 1; 0 where the format has none
	// Text is valid UTF-8, with \n at the ends of lines.
	Text string
}

// Info tells how a file was read.
type Info struct {
	Type   string // what it is, such as "PDF"
	Reader string // what read it, such as "pdftotext"
}

// Error says why a file can't be read, in words for whoever sent it.
type Error struct {
	// Unsupported: files of this type are never read; otherwise this one is
	// broken, locked or empty.
	Unsupported bool
	Message     string
}

func (e *Error) Error() string { return e.Message }

// unreadable makes the Error of a file that is broken in some way.
func unreadable(format string, args ...any) *Error {
	return &Error{Message: fmt.Sprintf(format, args...)}
}

const (
	// maxText bounds the text of a file, bytes.
	maxText = 256 << 20
	// leastText and textRatio bound it by the file's size: always so many bytes,
	// and more than that only where it is less than so many times the file. The
	// text of real documents is up to five times as long as the packed file,
	// where JSON repeats its paths fifteen times.
	leastText = 16 << 20
	textRatio = 20
)

// mostText is how much text a file of a size may hold, bytes.
func mostText(size int) int { return min(max(leastText, textRatio*min(size, maxText)), maxText) }

// tooMuch is the error of a file that holds more text than that.
func tooMuch(most int) *Error {
	if most < maxText {
		return unreadable("the file repeats itself: it unpacks to more than %d MB of text, which no document of its size holds", most>>20)
	}
	return unreadable("the file holds more than %d MB of text; please upload it in parts", most>>20)
}

// output takes the blocks of a file from its reader.
type output struct {
	ctx   context.Context
	info  Info
	emit  func(Block) error
	most  int // bytes: see mostText
	bytes int
	seen  bool // something that can be seen was emitted
	page  int  // of the blocks that come next

	stopped error // of emit
}

// add hands a block on, cleaned. Blocks without text are left out.
func (o *output) add(kind Kind, level int, text string) error {
	text = clean(text)
	if kind > Lines {
		text = strings.TrimSpace(text)
	}
	if text == "" {
		return nil
	}
	if err := o.charge(len(text)); err != nil {
		return err
	}
	if err := o.ctx.Err(); err != nil {
		return err
	}
	o.seen = o.seen || !blank(text)
	o.stopped = o.emit(Block{Kind: kind, Level: level, Page: o.page, Text: text})
	return o.stopped
}

// charge counts bytes of text, or of what takes as long to go through.
func (o *output) charge(bytes int) error {
	if o.bytes += bytes; o.bytes > o.most {
		return tooMuch(o.most)
	}
	return nil
}

// final reports whether an error is one that ends the reading, rather than a
// sign that a part of the file is broken.
func (o *output) final(err error) bool {
	var told *Error
	return errors.As(err, &told) || o.stopped != nil || o.ctx.Err() != nil
}

// readEach reads the slides or sheets of a document in order. A broken one among
// good ones is left out; where nothing could be read, its error is returned.
func (o *output) readEach(names []string, read func(name string) error) error {
	var broken error
	for _, name := range names {
		if err := read(name); err != nil {
			if o.final(err) {
				return err
			}
			broken = err
		}
	}
	if !o.seen {
		return broken
	}
	return nil
}

func (o *output) heading(level int, text string) error {
	return o.add(Heading, min(max(level, 1), 6), strings.Join(strings.Fields(text), " "))
}

func (o *output) sheet(name string) error {
	return o.add(Sheet, 1, strings.Join(strings.Fields(name), " "))
}

func (o *output) paragraph(text string) error { return o.add(Paragraph, 0, text) }

// row emits the cells of a row, on one line. A row of none but empty cells counts
// for what it takes to look through them.
func (o *output) row(first bool, cells []string) error {
	level, size := 0, 0
	if first {
		level = 1
	}
	for _, c := range cells {
		size += len(c)
	}
	if o.bytes+size+len(cells) > o.most { // before it is put together
		return tooMuch(o.most)
	}
	line := make([]string, len(cells))
	filled := 0
	for i, c := range cells {
		if line[i] = strings.Join(strings.Fields(c), " "); line[i] != "" {
			filled = i + 1
		}
	}
	if filled == 0 {
		return o.charge(len(cells))
	}
	return o.add(Row, level, strings.Join(line[:filled], " | "))
}

// clean makes valid UTF-8 of a text, without control characters that mean
// nothing in text, and with \n at the ends of lines.
func clean(text string) string {
	if !utf8.ValidString(text) {
		text = strings.ToValidUTF8(text, "\ufffd")
	}
	if strings.IndexFunc(text, unwanted) < 0 {
		return text
	}
	text = strings.ReplaceAll(text, "\r\n", "\n")
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\r' || r == '\v' || r == '\f' || r == '\u2028' || r == '\u2029' || r == '\u0085':
			return '\n'
		case unwanted(r):
			return -1
		}
		return r
	}, text)
}

// unwanted reports whether a character is replaced or left out by clean.
// Escape stays: terminals write colours with it.
func unwanted(r rune) bool {
	switch {
	case r == '\n' || r == '\t' || r == '\x1b':
		return false
	case r < ' ' || r >= 0x7f && r < 0xa0:
		return true
	}
	return r == '\u00ad' || r == '\ufeff' || r == '\u2028' || r == '\u2029' || r >= 0xfff9 && r <= 0xfffb
}

// Blank reports whether there is nothing to see in a text.
func Blank(text string) bool { return blank(text) }

// blanks are the characters that show nothing.
const blanks = " \t\n\v\f\r\u00a0\u00ad\u200b\u200c\u200d\u2028\u2029\u2060\u3000\ufeff\ufffd"

func blank(text string) bool { return strings.TrimLeft(text, blanks) == "" }

// Read hands the text of a file to emit, block by block. Errors are *Error,
// those of emit and of ctx, or those of a reader that gave up, which mean that
// the file is broken.
func Read(ctx context.Context, name string, content []byte, emit func(Block) error) (Info, error) {
	f, err := sniff(name, content)
	if err != nil {
		return Info{}, err
	}
	o := &output{ctx: ctx, info: Info{Type: f.name, Reader: f.reader}, emit: emit, most: mostText(len(content))}
	err = f.read(o, content)
	switch {
	case err == nil && !o.seen:
		return o.info, noText(f.name)
	case err == nil || o.final(err):
		return o.info, err
	}
	return o.info, unreadable("the file is broken: it begins like %s, but can't be read to its end", article(f.name))
}

// noText says that a file of the type holds none.
func noText(name string) error {
	switch name {
	case pdf.name:
		return unreadable("the PDF holds no text, only images perhaps: a scan has to go through text recognition (OCR) first")
	case text.name:
		return unreadable("the file holds no text")
	}
	return unreadable("the file, %s, holds no text", article(name))
}

// article puts "a" or "an" ahead of the name of a type.
func article(name string) string {
	if strings.ContainsRune("AEIOUaeiou", rune(name[0])) || strings.HasPrefix(name, "RTF") || strings.HasPrefix(name, "HTML") || strings.HasPrefix(name, "XML") {
		return "an " + name
	}
	return "a " + name
}
