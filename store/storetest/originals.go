package storetest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/backstory-proxy/backstory/store"
)

// errBroken is that of a source which breaks off.
var errBroken = errors.New("the source broke off")

// source counts how far ahead of a store's other work its content is read.
type source struct {
	io.Reader
	largest int // bytes asked for at once
}

func (s *source) Read(p []byte) (int, error) {
	s.largest = max(s.largest, len(p))
	return s.Reader.Read(p)
}

// testOriginals looks at how originals are read and written.
func testOriginals(t *testing.T, b Backend) {
	ctx := context.Background()
	const size = 9<<20 + 5
	random := make([]byte, size) // which doesn't compress
	_, _ = rand.NewChaCha8([32]byte{}).Read(random)
	create := func(f *fixture, id string, content io.Reader) error {
		_, err := f.CreateFile(ctx, of("a"), document(id, ""), content)
		return err
	}
	b.each(t, map[string]func(*fixture){
		"an original goes in and comes out piece by piece": func(f *fixture) {
			from := &source{Reader: bytes.NewReader(random)}
			f.ok(create(f, "f", from))
			if from.largest > 4<<20 {
				f.Errorf("%d bytes were asked for at once", from.largest)
			}
			// Two at once, each at its own pace, and others in between.
			first, err := f.Content(ctx, of("a"), "f")
			f.ok(err)
			second, err := f.Content(ctx, of("a"), "f")
			f.ok(err)
			head := make([]byte, 100)
			_, err = io.ReadFull(first, head)
			f.ok(err)
			got, err := io.ReadAll(second)
			if err != nil || !bytes.Equal(got, random) {
				f.Errorf("got %d bytes, %v", len(got), err)
			}
			f.save("a", "s", turn("e"))
			rest, err := io.ReadAll(first)
			if err != nil || !bytes.Equal(append(head, rest...), random) {
				f.Errorf("the rest: got %d bytes, %v", len(rest), err)
			}
			f.ok(first.Close())
			f.ok(second.Close())
		},
		"many that are read slowly are in nobody's way": func(f *fixture) {
			f.ok(create(f, "f", bytes.NewReader(random)))
			for range 40 { // more than there are connections
				from, err := f.Content(ctx, of("a"), "f")
				f.ok(err)
				defer from.Close()
				_, err = io.ReadFull(from, make([]byte, 10))
				f.ok(err)
			}
			f.save("a", "s", turn("e"))
			if _, err := f.File(ctx, of("a"), "f"); err != nil {
				f.Error(err)
			}
		},
		"an original that breaks off leaves nothing": func(f *fixture) {
			for _, n := range []int64{0, 100, size} {
				from := io.MultiReader(io.LimitReader(bytes.NewReader(random), n), errorReader{})
				if err := create(f, "f", from); !errors.Is(err, errBroken) {
					f.Errorf("after %d bytes: %v", n, err)
				}
				if _, err := f.File(ctx, of("a"), "f"); !errors.Is(err, store.ErrNotFound) {
					f.Errorf("after %d bytes: the file: %v", n, err)
				}
			}
			f.ok(create(f, "f", bytes.NewReader(random)))
			if got := f.content("a", "f"); !bytes.Equal(got, random) {
				f.Errorf("got %d bytes", len(got))
			}
		},
		"an original that is deleted meanwhile ends with an error": func(f *fixture) {
			f.ok(create(f, "f", bytes.NewReader(random)))
			from, err := f.Content(ctx, of("a"), "f")
			f.ok(err)
			defer from.Close()
			_, err = io.ReadFull(from, make([]byte, 10))
			f.ok(err)
			f.ok(f.DeleteFile(ctx, of("a"), "f"))
			if n, err := io.Copy(io.Discard, from); !errors.Is(err, store.ErrNotFound) || n >= size {
				f.Errorf("got %d bytes more, %v", n, err)
			}
		},
		"reading ends with its context": func(f *fixture) {
			f.ok(create(f, "f", bytes.NewReader(random)))
			ctx, cancel := context.WithCancel(ctx)
			from, err := f.Content(ctx, of("a"), "f")
			f.ok(err)
			defer from.Close()
			_, err = io.ReadFull(from, make([]byte, 10))
			f.ok(err)
			cancel()
			if _, err := io.Copy(io.Discard, from); !errors.Is(err, context.Canceled) {
				f.Errorf("got %v", err)
			}
		},
	})
}

// errorReader breaks off.
type errorReader struct{}

func (errorReader) Read([]byte) (int, error) { return 0, errBroken }
