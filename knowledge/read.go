package knowledge

import (
	"context"
	"errors"
	"iter"
	"slices"

	"github.com/backstory-proxy/backstory/knowledge/extract"
	"github.com/backstory-proxy/backstory/knowledge/sandbox"
)

// source is the text of a file, to be gone through once.
type source struct {
	info   extract.Info
	blocks iter.Seq2[extract.Block, error]
	close  func()
}

// read gets the text of a file. Plain text is read as it stands; all else needs
// a parser, which runs in a process of its own if there is a sandbox. The error
// is an *extract.Error where it is the file's fault.
func read(ctx context.Context, box *sandbox.Reader, name string, content []byte) (*source, error) {
	switch {
	case extract.Plain(name, content):
		return plain(ctx, name, content)
	case box == nil:
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
	text, err := box.Read(ctx, name, content)
	if err != nil {
		return nil, err
	}
	return &source{info: text.Info, blocks: text.Blocks(), close: text.Close}, nil
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

var errEnough = errors.New("enough is known")

// plain reads text as it stands, block by block while it is gone through: it
// may be large.
func plain(ctx context.Context, name string, content []byte) (*source, error) {
	info, err := extract.Read(ctx, name, content, func(b extract.Block) error {
		if extract.Blank(b.Text) {
			return nil
		}
		return errEnough
	})
	if err != nil && !errors.Is(err, errEnough) {
		return nil, err
	}
	return &source{info: info, close: func() {}, blocks: func(yield func(extract.Block, error) bool) {
		_, err := extract.Read(context.Background(), name, content, func(b extract.Block) error {
			if !yield(b, nil) {
				return errEnough
			}
			return nil
		})
		if err != nil && !errors.Is(err, errEnough) {
			yield(extract.Block{}, err)
		}
	}}, nil
}
