package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/backstory-proxy/backstory/store"
)

// about is a chunk with a vector.
func about(n int, section, text string, v ...float32) store.Chunk {
	return store.Chunk{N: n, Section: section, Text: text, Terms: "alpha", Vector: v}
}

// known tells the vectors that are known of chunks.
func (f *fixture) known(tenant, model string, dimensions int, chunks ...store.Chunk) string {
	f.Helper()
	digests := make([]store.ChunkDigest, len(chunks))
	for i := range chunks {
		digests[i] = chunks[i].Digest()
	}
	vectors, err := f.KnownVectors(context.Background(), of(tenant), model, dimensions, digests)
	f.ok(err)
	if len(vectors) != len(chunks) {
		f.Fatalf("%d vectors for %d digests", len(vectors), len(chunks))
	}
	return fmt.Sprint(vectors)
}

func testReembedder(t *testing.T, b Backend) {
	ctx := context.Background()
	one, two := about(0, "S", "one", 1, 0), about(1, "S", "two", 0, 1)
	b.each(t, map[string]func(*fixture){
		"vectors are known by what they were made of": func(f *fixture) {
			f.upload("a", "f1", "m", []store.Chunk{one, two, about(2, "S", "no vector")})
			moved := two
			moved.N, moved.Page, moved.Tokens, moved.Terms = 77, 3, 9, "other"
			if got := f.known("a", "m", 2, moved, about(0, "S", "three"), about(0, "T", "one"), about(0, "", "Sone"), one, about(2, "S", "no vector")); got != "[[0 1] [] [] [] [1 0] []]" {
				f.Errorf("got %s", got)
			}
			for name, got := range map[string]string{
				"another tenant":      f.known("b", "m", 2, one),
				"another model":       f.known("a", "M", 2, one),
				"another dimension":   f.known("a", "m", 3, one),
				"the tenant is new":   f.known("nobody", "m", 2, one),
				"nothing asked for":   f.known("a", "m", 2) + "[]",
				"no dimension at all": f.known("a", "m", 0, one),
			} {
				if got != "[[]]" && got != "[][]" {
					f.Errorf("%s: got %s", name, got)
				}
			}
		},
		"many are looked for at once": func(f *fixture) {
			var chunks []store.Chunk
			for i := range 700 {
				chunks = append(chunks, about(i, "", fmt.Sprint("text ", i), float32(i), 1))
			}
			f.upload("a", "f1", "m", chunks)
			want := ""
			for i := range chunks {
				want += fmt.Sprintf(" [%d 1]", i)
			}
			if got := f.known("a", "m", 2, chunks...); got != "["+want[1:]+"]" {
				f.Errorf("got %.200s", got)
			}
		},
		"what isn't searchable isn't known": func(f *fixture) {
			_, err := f.CreateFile(ctx, of("a"), document("f1", "m"), strings.NewReader("x"))
			f.ok(err)
			f.ok(f.AddChunks(ctx, of("a"), "f1", []store.Chunk{one}))
			if got := f.known("a", "m", 2, one); got != "[[]]" {
				f.Errorf("of an upload under way: %s", got)
			}
			f.ok(f.FinishFile(ctx, of("a"), "f1", store.FileError, "broken"))
			if got := f.known("a", "m", 2, one); got != "[[]]" {
				f.Errorf("of one that failed: %s", got)
			}
		},
		"nothing outlives a deletion": func(f *fixture) {
			f.upload("a", "f1", "m", []store.Chunk{one, two})
			f.upload("a", "f2", "m", []store.Chunk{one})
			f.ok(f.DeleteFile(ctx, of("a"), "f1"))
			if got := f.known("a", "m", 2, one, two); got != "[[1 0] []]" {
				f.Errorf("got %s", got)
			}
			f.ok(f.DeleteFile(ctx, of("a"), "f2"))
			if got := f.known("a", "m", 2, one, two); got != "[[] []]" {
				f.Errorf("got %s", got)
			}
		},
		"only of files that are processed": func(f *fixture) {
			for _, tenant := range []string{"a", "b"} {
				if err := f.SetVectors(ctx, of(tenant), "f1", "m", []store.Chunk{one}); !errors.Is(err, store.ErrDeleted) {
					f.Errorf("got %v", err)
				}
				if err := f.SetModel(ctx, of(tenant), "f1", "m"); !errors.Is(err, store.ErrDeleted) {
					f.Errorf("got %v", err)
				}
				f.upload("c", "f1", "m", []store.Chunk{one})
				f.ok(f.DeleteFile(ctx, of("c"), "f1"))
			}
			_, err := f.CreateFile(ctx, of("a"), document("f2", "m"), strings.NewReader("x"))
			f.ok(err)
			f.ok(f.AddChunks(ctx, of("a"), "f2", []store.Chunk{one}))
			if err := f.SetVectors(ctx, of("a"), "f2", "m", []store.Chunk{one}); err == nil || errors.Is(err, store.ErrDeleted) {
				f.Errorf("got %v", err)
			}
		},
	})
}

// testReembedding is of replacing the vectors that searches find.
func testReembedding(t *testing.T, b Backend) {
	ctx := context.Background()
	one, two := about(0, "S", "one", 1, 0), about(1, "S", "two", 0, 1)
	b.each(t, map[string]func(*fixture){
		"a file's vectors are replaced while it is searched": func(f *fixture) {
			f.upload("a", "f1", "m", []store.Chunk{one, two})
			f.ok(f.SetVectors(ctx, of("a"), "f1", "new", []store.Chunk{about(1, "S", "two", 0, 0, 1)}))
			if got := f.vector("a", "m", 10, 1, 0); got != "f1/0" {
				f.Errorf("by the old model, half way: got %q", got)
			}
			if got := f.vector("a", "new", 10, 0, 0, 1); got != "f1/1" {
				f.Errorf("by the new model, half way: got %q", got)
			}
			f.ok(f.SetVectors(ctx, of("a"), "f1", "new", []store.Chunk{about(0, "S", "one", 1, 0, 0)}))
			f.ok(f.SetModel(ctx, of("a"), "f1", "new"))
			if got := f.vector("a", "m", 10, 1, 0); got != "" {
				f.Errorf("by the old model: got %q", got)
			}
			if got := f.vector("a", "new", 10, 0, 0, 1); got != "f1/1 f1/0" {
				f.Errorf("by the new model: got %q", got)
			}
			if got := f.text("a", 10, "alpha"); got != "f1/0 f1/1" {
				f.Errorf("by words: got %q", got)
			}
			if got := f.known("a", "m", 2, one) + f.known("a", "new", 3, one, two); got != "[[]][[1 0 0] [0 0 1]]" {
				f.Errorf("known: %s", got)
			}
			file, err := f.File(ctx, of("a"), "f1")
			if f.ok(err); file.Model != "new" || file.Chunks != 2 || file.Status != store.FileProcessed {
				f.Errorf("got %+v", file)
			}
			list, err := f.FileChunks(ctx, of("a"), "f1", -1, 10)
			if f.ok(err); len(list) != 2 || !slices.Equal(list[1].Vector, []float32{0, 0, 1}) {
				f.Errorf("got %+v", list)
			}
			f.ok(f.DeleteFile(ctx, of("a"), "f1"))
			if got := f.vector("a", "new", 10, 1, 0, 0) + f.known("a", "new", 3, one); got != "[[]]" {
				f.Errorf("deleted: got %q", got)
			}
		},
		"a vector can be taken away": func(f *fixture) {
			f.upload("a", "f1", "m", []store.Chunk{one, two})
			f.ok(f.SetVectors(ctx, of("a"), "f1", "m", []store.Chunk{about(0, "S", "one"), about(9, "S", "not there", 1, 0)}))
			if got := f.vector("a", "m", 10, 1, 0) + f.known("a", "m", 2, one); got != "f1/1[[]]" {
				f.Errorf("got %q", got)
			}
			if list, err := f.FileChunks(ctx, of("a"), "f1", -1, 10); err != nil || len(list) != 2 {
				f.Errorf("%d chunks, %v", len(list), err)
			}
		},
	})
}
