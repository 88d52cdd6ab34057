package knowledge

import (
	"context"
	"fmt"
	"io"
	"iter"
	"slices"

	"github.com/backstory-proxy/backstory/knowledge/extract"
	"github.com/backstory-proxy/backstory/knowledge/sandbox"
)

// source is the text of a file, which can be gone through more than once.
type source struct {
	info   extract.Info
	blocks iter.Seq2[extract.Block, error]
	close  func()
}

// maxHeld is up to where plain text is read in this process, and held in
// memory, bytes.
const maxHeld = 4 << 20

// read gets the text of a file. Short plain text is read as it stands; all else
// is read in a process of its own if there is a sandbox: it needs a parser, or
// room. The error is an *extract.Error where it is the file's fault. The content
// is needed no longer.
func read(ctx context.Context, box *sandbox.Reader, tenant, name string, content extract.Content) (*source, error) {
	if box == nil || content.Size() <= maxHeld {
		held := make([]byte, content.Size())
		if _, err := io.ReadFull(io.NewSectionReader(content, 0, content.Size()), held); err != nil {
			return nil, fmt.Errorf("read the file: %w", err)
		}
		if box == nil || extract.Plain(name, held) {
			return readHere(ctx, name, held)
		}
	}
	text, err := box.Read(ctx, tenant, name, content)
	if err != nil {
		return nil, err
	}
	return &source{info: text.Info, blocks: text.Blocks(), close: text.Close}, nil
}

// readHere reads a file in this process.
func readHere(ctx context.Context, name string, content []byte) (*source, error) {
	var blocks []extract.Block
	info, err := extract.Read(ctx, name, content, func(b extract.Block) error {
		blocks = append(blocks, b)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &source{info: info, blocks: withoutError(slices.Values(blocks)), close: func() {}}, nil
}

func withoutError(blocks iter.Seq[extract.Block]) iter.Seq2[extract.Block, error] {
	return func(yield func(extract.Block, error) bool) {
		for b := range blocks {
			if !yield(b, nil) {
				return
			}
		}
	}
}
