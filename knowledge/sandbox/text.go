package sandbox

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"strings"

	"github.com/backstory-proxy/backstory/knowledge/extract"
)

// Text is the text of a file that a child has read. It lies on disk.
type Text struct {
	Info extract.Info

	spool *spool
}

// Close removes the text.
func (t *Text) Close() { t.spool.close() }

// Blocks returns the blocks of the text, in order; an error ends them. They can be
// gone through more than once, one time after the other.
func (t *Text) Blocks() iter.Seq2[extract.Block, error] {
	return func(yield func(extract.Block, error) bool) {
		if _, err := t.spool.file.Seek(0, io.SeekStart); err != nil {
			yield(extract.Block{}, fmt.Errorf("read the text of a file: %w", err))
			return
		}
		r := bufio.NewReaderSize(t.spool.file, 64<<10)
		for {
			b, err := readBlock(r)
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				err = fmt.Errorf("read the text of a file: %w", err)
			}
			if !yield(b, err) || err != nil {
				return
			}
		}
	}
}

// writeBlock writes a block: kind and level, a byte each, page and length as
// varints, text.
func writeBlock(w *bufio.Writer, b extract.Block) error {
	head := []byte{byte(b.Kind), byte(b.Level)}
	head = binary.AppendUvarint(head, uint64(b.Page))
	head = binary.AppendUvarint(head, uint64(len(b.Text)))
	if _, err := w.Write(head); err != nil {
		return err
	}
	_, err := w.WriteString(b.Text)
	return err
}

// maxBlock bounds a block, bytes. The child is not to be trusted: what it reads
// may have taken it over.
const maxBlock = 256 << 20

var errStream = errors.New("the process that read it wrote nonsense")

func readBlock(r *bufio.Reader) (b extract.Block, err error) {
	kind, err := r.ReadByte()
	if err != nil {
		return b, err // io.EOF: there are no more
	}
	level, err1 := r.ReadByte()
	page, err2 := binary.ReadUvarint(r)
	length, err3 := binary.ReadUvarint(r)
	switch {
	case errors.Join(err1, err2, err3) != nil, kind > byte(extract.Sheet), level > 6, page > 1<<30, length > maxBlock,
		kind == byte(extract.Heading) && level == 0, kind == byte(extract.Sheet) && level != 1:
		return b, errStream
	}
	var text strings.Builder
	if _, err := io.CopyN(&text, r, int64(length)); err != nil {
		return b, errStream
	}
	return extract.Block{Kind: extract.Kind(kind), Level: int(level), Page: int(page), Text: strings.ToValidUTF8(text.String(), "\ufffd")}, nil
}

// spool is a file on disk that has no name, where the operating system allows
// it, so that nothing is left behind whatever happens.
type spool struct {
	file  *os.File
	named bool
}

func newSpool() (*spool, error) {
	f, err := os.CreateTemp("", "backstory-*")
	if err != nil {
		return nil, err
	}
	return &spool{file: f, named: os.Remove(f.Name()) != nil}, nil
}

func (s *spool) close() {
	_ = s.file.Close() // nothing in it is needed any more
	if s.named {
		_ = os.Remove(s.file.Name())
	}
}
