package knowledge

import (
	"iter"
	"strings"

	"github.com/backstory-proxy/backstory/knowledge/extract"
	"github.com/backstory-proxy/backstory/store"
)

// Document is the text of a file, or of a part of a long one.
type Document struct {
	Name string // of the file
	Text string

	spans []span // all of Text, in order
}

// span is where a block stands in the text.
type span struct {
	start, end  int // bytes; the white space behind it is part of it
	kind        extract.Kind
	level, page int
	title       string // of a heading
}

// add writes a block behind what there is, in the way of Markdown.
func (d *Document) add(text *strings.Builder, b extract.Block) {
	s := span{start: text.Len(), kind: b.Kind, level: b.Level, page: b.Page}
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
	d.spans = append(d.spans, s)
}

// partSize is how much of a file is looked at together, bytes.
const partSize = 1 << 20

// parts makes documents of the blocks of a file, each of them partSize at most,
// unless one block is more.
func parts(name string, blocks iter.Seq2[extract.Block, error]) iter.Seq2[Document, error] {
	return func(yield func(Document, error) bool) {
		d := Document{Name: name}
		var text strings.Builder
		for b, err := range blocks {
			if err != nil {
				yield(Document{}, err)
				return
			}
			if text.Len() > 0 && text.Len()+len(b.Text) > partSize {
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

// passages cuts the blocks of a file and hands the passages on. Those that say
// what an earlier one has said are left out.
func passages(name string, blocks iter.Seq2[extract.Block, error], c Chunking, count func(string) int, emit func(store.Chunk) error) error {
	var failed error
	f := folder{seen: map[uint64]bool{}}
	cut := newChunker(c, count, func(chunk store.Chunk) {
		if failed == nil && !f.repeats(&chunk) {
			failed = emit(chunk)
		}
	})
	for d, err := range parts(name, blocks) {
		if err != nil {
			return err
		}
		if cut.document(&d); failed != nil {
			return failed
		}
	}
	return nil
}
