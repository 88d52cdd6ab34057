package knowledge

import (
	"iter"
	"strings"

	"github.com/backstory-proxy/backstory/knowledge/extract"
	"github.com/backstory-proxy/backstory/store"
)

// Document is the text of a file, or a section of a long one.
type Document struct {
	Name string // of the file
	Text string

	blocks []textBlock // all of Text, in order
}

// textBlock is where a block stands in the text.
type textBlock struct {
	start, end  int // bytes; the white space behind it is part of it
	kind        extract.Kind
	level, page int
	title       string // of a heading
}

// add appends a block, as Markdown.
func (d *Document) add(text *strings.Builder, b extract.Block) {
	s := textBlock{start: text.Len(), kind: b.Kind, level: b.Level, page: b.Page}
	switch b.Kind {
	case extract.Prose, extract.Lines:
		text.WriteString(b.Text)
	case extract.Heading, extract.Sheet:
		s.title = b.Text
		text.WriteString(strings.Repeat("#", b.Level) + " " + b.Text + "\n\n")
	case extract.Paragraph:
		text.WriteString(b.Text + "\n\n")
	default:
		text.WriteString(b.Text + "\n")
	}
	s.end = text.Len()
	d.blocks = append(d.blocks, s)
}

// documentSize is how much of a file is cut at a time, bytes.
const documentSize = 1 << 20

// documents joins the blocks of a file to documents of at most documentSize
// each, unless a single block is larger.
func documents(name string, blocks iter.Seq2[extract.Block, error]) iter.Seq2[Document, error] {
	return func(yield func(Document, error) bool) {
		d := Document{Name: name}
		var text strings.Builder
		for b, err := range blocks {
			if err != nil {
				yield(Document{}, err)
				return
			}
			if text.Len() > 0 && text.Len()+len(b.Text) > documentSize {
				d.Text = text.String()
				if !yield(d, nil) {
					return
				}
				d, text = Document{Name: name}, strings.Builder{}
			}
			d.add(&text, b)
		}
		d.Text = text.String()
		yield(d, nil)
	}
}

// chunkBlocks cuts the blocks of a file and emits the chunks, without those that
// repeat an earlier one.
func chunkBlocks(name string, blocks iter.Seq2[extract.Block, error], c Chunking, count func(string) int, emit func(store.Chunk) error) error {
	var failed error
	r := repeats{seen: map[uint64]bool{}}
	cut := newChunker(c, count, func(chunk store.Chunk) {
		if failed == nil && !r.repeated(&chunk) {
			failed = emit(chunk)
		}
	})
	for d, err := range documents(name, blocks) {
		if err != nil {
			return err
		}
		if cut.document(&d); failed != nil {
			return failed
		}
	}
	return nil
}
