package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/backstory-proxy/backstory/store"
)

// document is a file that is uploaded; its digest follows from its ID.
func document(id, model string) store.File {
	f := store.File{
		ID: id, Name: id + ".txt", Purpose: "assistants", Bytes: 1, Status: store.FileUploaded, Model: model,
		Created: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
	}
	copy(f.Digest[:], id)
	return f
}

// upload adds a file and makes it searchable.
func (f *fixture) upload(tenant, id, model string, chunks []store.Chunk) {
	f.Helper()
	ctx := context.Background()
	_, err := f.CreateFile(ctx, of(tenant), document(id, model), strings.NewReader(id))
	f.ok(err)
	f.ok(f.AddChunks(ctx, of(tenant), id, chunks))
	f.ok(f.FinishFile(ctx, of(tenant), id, store.FileProcessed, ""))
}

// content is the original of a file.
func (f *fixture) content(tenant, id string) []byte {
	f.Helper()
	from, err := f.Content(context.Background(), of(tenant), id)
	f.ok(err)
	defer from.Close()
	got, err := io.ReadAll(from)
	f.ok(err)
	return got
}

// words makes a chunk of each text, its words being its terms.
func words(texts ...string) []store.Chunk {
	var chunks []store.Chunk
	for i, text := range texts {
		chunks = append(chunks, store.Chunk{N: i, Text: text, Terms: strings.ToLower(text), Tokens: len(strings.Fields(text))})
	}
	return chunks
}

func testFiles(t *testing.T, b Backend) {
	ctx := context.Background()
	list := func(f *fixture, tenant string, q store.FileQuery) string {
		f.Helper()
		files, err := f.ListFiles(ctx, of(tenant), q)
		f.ok(err)
		var all []string
		for _, file := range files {
			all = append(all, file.ID)
		}
		return strings.Join(all, " ")
	}
	same := func(a, b store.File) bool {
		at := a.Created.Equal(b.Created)
		a.Created = b.Created
		return at && a == b
	}
	b.each(t, map[string]func(*fixture){
		"a file comes back as it was": func(f *fixture) {
			want := document("f1", "embedder")
			want.Bytes, want.Name = 1<<40, "résumé \x00 \" .pdf"
			created, err := f.CreateFile(ctx, of("a"), want, strings.NewReader("content"))
			f.ok(err)
			if !same(created, want) {
				f.Errorf("created %+v, want %+v", created, want)
			}
			f.ok(f.AddChunks(ctx, of("a"), "f1", words("one", "two")))
			f.ok(f.AddChunks(ctx, of("a"), "f1", []store.Chunk{{N: 2, Text: "three", Terms: "three", Tokens: 1}}))
			f.ok(f.FinishFile(ctx, of("a"), "f1", store.FileProcessed, ""))
			want.Chunks, want.Status = 3, store.FileProcessed
			got, err := f.File(ctx, of("a"), "f1")
			if err != nil || !same(got, want) {
				f.Errorf("got %+v, %v; want %+v", got, err, want)
			}
		},
		"files are the tenant's own": func(f *fixture) {
			f.upload("a", "f1", "", words("alpha"))
			f.upload("b", "f2", "", words("alpha"))
			for _, at := range [][2]string{{"b", "f1"}, {"a", "f2"}, {"c", "f1"}, {"a", ""}, {"", "f1"}} {
				if _, err := f.File(ctx, of(at[0]), at[1]); !errors.Is(err, store.ErrNotFound) {
					f.Errorf("%q: File returned %v", at, err)
				}
				if _, err := f.Content(ctx, of(at[0]), at[1]); !errors.Is(err, store.ErrNotFound) {
					f.Errorf("%q: Content returned %v", at, err)
				}
				if err := f.AddChunks(ctx, of(at[0]), at[1], words("x")); !errors.Is(err, store.ErrDeleted) {
					f.Errorf("%q: AddChunks returned %v", at, err)
				}
				if err := f.FinishFile(ctx, of(at[0]), at[1], store.FileError, ""); !errors.Is(err, store.ErrDeleted) {
					f.Errorf("%q: FinishFile returned %v", at, err)
				}
				if err := f.DeleteFile(ctx, of(at[0]), at[1]); !errors.Is(err, store.ErrNotFound) {
					f.Errorf("%q: DeleteFile returned %v", at, err)
				}
			}
			if got := list(f, "a", store.FileQuery{Limit: 10}); got != "f1" {
				f.Errorf("listed %q", got)
			}
		},
		"the same ID may be two tenants'": func(f *fixture) {
			f.upload("a", "f1", "", words("alpha"))
			f.upload("b", "f1", "", words("beta"))
			f.ok(f.DeleteFile(ctx, of("a"), "f1"))
			if _, err := f.File(ctx, of("b"), "f1"); err != nil {
				f.Error(err)
			}
		},
		"content comes back byte for byte, whatever its size": func(f *fixture) {
			large := bytes.Repeat([]byte("0123456789abcdef"), 11<<16) // 11 MiB
			copy(large[7<<20:], "\x00\xff")
			for id, content := range map[string][]byte{"empty": {}, "binary": {0, 255, 0, 13, 10}, "large": large, "round": large[:4<<20]} {
				_, err := f.CreateFile(ctx, of("a"), document(id, ""), bytes.NewReader(content))
				f.ok(err)
				if got := f.content("a", id); !bytes.Equal(got, content) {
					f.Errorf("%s: got %d bytes, want %d", id, len(got), len(content))
				}
			}
			if _, err := f.CreateFile(ctx, of("a"), document("large", ""), bytes.NewReader(large)); !errors.Is(err, store.ErrExists) {
				f.Errorf("the large one again: %v", err)
			}
			f.ok(f.DeleteFile(ctx, of("a"), "large"))
			if _, err := f.Content(ctx, of("a"), "large"); !errors.Is(err, store.ErrNotFound) {
				f.Errorf("after its deletion: %v", err)
			}
		},
		"a file of the same name, digest and purpose exists": func(f *fixture) {
			for _, status := range []store.FileStatus{store.FileUploaded, store.FileProcessed} {
				if status == store.FileProcessed {
					f.ok(f.FinishFile(ctx, of("a"), "f1", status, ""))
				} else {
					_, err := f.CreateFile(ctx, of("a"), document("f1", ""), strings.NewReader("x"))
					f.ok(err)
				}
				again := document("f2", "")
				again.Name, again.Digest = "f1.txt", document("f1", "").Digest
				got, err := f.CreateFile(ctx, of("a"), again, strings.NewReader("x"))
				if !errors.Is(err, store.ErrExists) || got.ID != "f1" || got.Status != status {
					f.Errorf("got %+v, %v", got, err)
				}
			}
			if got := list(f, "a", store.FileQuery{Limit: 10}); got != "f1" {
				f.Errorf("listed %q", got)
			}
		},
		"another name, digest, purpose or tenant makes another file": func(f *fixture) {
			first := document("f1", "")
			name, digest, purpose, tenant := first, first, first, first
			name.ID, digest.ID, purpose.ID, tenant.ID = "f2", "f3", "f4", "f5"
			name.Name, digest.Digest[31], purpose.Purpose = "other.txt", 1, "user_data"
			for _, file := range []store.File{first, name, digest, purpose} {
				_, err := f.CreateFile(ctx, of("a"), file, strings.NewReader("x"))
				f.ok(err)
			}
			_, err := f.CreateFile(ctx, of("b"), tenant, strings.NewReader("x"))
			f.ok(err)
		},
		"a file that failed, or was deleted, may come again": func(f *fixture) {
			for i := range 3 {
				file := document("f1", "")
				file.ID = fmt.Sprint("f", i)
				_, err := f.CreateFile(ctx, of("a"), file, strings.NewReader("x"))
				f.ok(err)
				if i == 0 {
					f.ok(f.FinishFile(ctx, of("a"), file.ID, store.FileError, "broken"))
				} else {
					f.ok(f.DeleteFile(ctx, of("a"), file.ID))
				}
			}
		},
		"of the same file from several at once, one is added": func(f *fixture) {
			var all sync.WaitGroup
			var mu sync.Mutex
			added := 0
			content := make([]byte, 9<<20)
			for i := range 4 {
				all.Go(func() {
					file := document("f", "")
					file.ID = fmt.Sprint("f", i)
					_, err := f.CreateFile(ctx, of("a"), file, bytes.NewReader(content))
					mu.Lock()
					defer mu.Unlock()
					if err == nil {
						added++
					} else if !errors.Is(err, store.ErrExists) {
						f.Error(err)
					}
				})
			}
			all.Wait()
			if got := list(f, "a", store.FileQuery{Limit: 10}); added != 1 || len(got) != 2 {
				f.Errorf("%d were added, listed %q", added, got)
			}
		},
		"files are listed in both orders, in pages": func(f *fixture) {
			for i, age := range []time.Duration{3, 1, 2, 2, 2, 1} { // f0 is the oldest, f5 the newest
				file := document(fmt.Sprint("f", i), "")
				file.Created = file.Created.Add(-age * time.Second)
				if i == 3 {
					file.Purpose = "user_data"
				}
				_, err := f.CreateFile(ctx, of("a"), file, strings.NewReader("x"))
				f.ok(err)
				_, err = f.CreateFile(ctx, of("b"), file, strings.NewReader("x"))
				f.ok(err)
			}
			const up, down = store.Ascending, store.Descending
			for _, c := range []struct {
				q    store.FileQuery
				want string
			}{
				{store.FileQuery{Limit: 9, Order: up}, "f0 f2 f3 f4 f1 f5"},
				{store.FileQuery{Limit: 9, Order: down}, "f5 f1 f4 f3 f2 f0"},
				{store.FileQuery{Limit: 2, Order: up}, "f0 f2"},
				{store.FileQuery{Limit: 2, Order: up, After: "f2"}, "f3 f4"},
				{store.FileQuery{Limit: 9, Order: down, After: "f3"}, "f2 f0"},
				{store.FileQuery{Limit: 9, Order: down, After: "f0"}, ""},
				{store.FileQuery{Limit: 9, Order: up, Purpose: "user_data"}, "f3"},
				{store.FileQuery{Limit: 2, Order: up, Purpose: "assistants", After: "f2"}, "f4 f1"},
				{store.FileQuery{Limit: 2, Order: down, Purpose: "assistants", After: "f3"}, "f2 f0"},
				{store.FileQuery{Limit: 9, Purpose: "none"}, ""},
				{store.FileQuery{Limit: 0}, ""},
			} {
				if got := list(f, "a", c.q); got != c.want {
					f.Errorf("%+v: got %q, want %q", c.q, got, c.want)
				}
			}
			f.ok(f.DeleteFile(ctx, of("a"), "f4"))
			if got := list(f, "a", store.FileQuery{Limit: 9}); got != "f0 f2 f3 f1 f5" {
				f.Errorf("after a deletion: got %q", got)
			}
			for _, at := range [][2]string{{"a", "f4"}, {"a", "gone"}, {"nobody", "f0"}} {
				if _, err := f.ListFiles(ctx, of(at[0]), store.FileQuery{After: at[1], Limit: 9}); !errors.Is(err, store.ErrNotFound) {
					f.Errorf("after %q: %v", at, err)
				}
			}
			if got := list(f, "nobody", store.FileQuery{Limit: 9}); got != "" {
				f.Errorf("an unknown tenant has %q", got)
			}
		},
		"a failed file keeps its reason and loses its chunks": func(f *fixture) {
			_, err := f.CreateFile(ctx, of("a"), document("f1", ""), strings.NewReader("x"))
			f.ok(err)
			f.ok(f.AddChunks(ctx, of("a"), "f1", words("alpha")))
			f.ok(f.FinishFile(ctx, of("a"), "f1", store.FileError, "no text in it"))
			got, err := f.File(ctx, of("a"), "f1")
			if err != nil || got.Status != store.FileError || got.Reason != "no text in it" {
				f.Errorf("got %+v, %v", got, err)
			}
			if err := f.AddChunks(ctx, of("a"), "f1", words("beta")); err == nil {
				f.Error("chunks were added to a file that failed")
			}
			f.ok(f.DeleteFile(ctx, of("a"), "f1"))
		},
		"a file deleted meanwhile takes no chunks": func(f *fixture) {
			_, err := f.CreateFile(ctx, of("a"), document("f1", ""), strings.NewReader("x"))
			f.ok(err)
			f.ok(f.AddChunks(ctx, of("a"), "f1", words("alpha")))
			f.ok(f.DeleteFile(ctx, of("a"), "f1"))
			if err := f.AddChunks(ctx, of("a"), "f1", words("alpha")); !errors.Is(err, store.ErrDeleted) {
				f.Errorf("AddChunks returned %v", err)
			}
			if err := f.FinishFile(ctx, of("a"), "f1", store.FileProcessed, ""); !errors.Is(err, store.ErrDeleted) {
				f.Errorf("FinishFile returned %v", err)
			}
			if err := f.DeleteFile(ctx, of("a"), "f1"); !errors.Is(err, store.ErrNotFound) {
				f.Errorf("DeleteFile returned %v", err)
			}
		},
		"files, contents and chunks outlive a restart": func(f *fixture) {
			f.upload("a", "f1", "m", []store.Chunk{{Text: "Alpha", Terms: "alpha", Vector: []float32{1, 0}}})
			f.reopen()
			if got := f.content("a", "f1"); string(got) != "f1" {
				f.Errorf("got %q", got)
			}
			if hits, err := f.SearchText(ctx, of("a"), []string{"alpha"}, 5); err != nil || len(hits) != 1 {
				f.Errorf("got %v, %v", hits, err)
			}
			if hits, err := f.SearchVector(ctx, of("a"), "m", []float32{1, 0}, 5); err != nil || len(hits) != 1 {
				f.Errorf("got %v, %v", hits, err)
			}
		},
	})
}

// testKnownFiles looks at what is known of files, whatever is in them.
func testKnownFiles(t *testing.T, b Backend) {
	ctx := context.Background()
	b.each(t, map[string]func(*fixture){
		"files says whether there is a processed one": func(f *fixture) {
			files := func(want bool) {
				f.Helper()
				for _, session := range []string{"", "s"} {
					if got := f.gather("a", session, 1, 1).Files; got != want {
						f.Fatalf("got %v, want %v", got, want)
					}
				}
			}
			files(false)
			f.upload("b", "f0", "", words("other"))
			files(false)
			_, err := f.CreateFile(ctx, of("a"), document("f1", ""), strings.NewReader("x"))
			f.ok(err)
			files(false)
			f.ok(f.FinishFile(ctx, of("a"), "f1", store.FileProcessed, ""))
			files(true)
			_, err = f.CreateFile(ctx, of("a"), document("f2", ""), strings.NewReader("y"))
			f.ok(err)
			f.ok(f.FinishFile(ctx, of("a"), "f2", store.FileError, "broken"))
			f.ok(f.DeleteFile(ctx, of("a"), "f1"))
			files(false)
		},
		"a file's name is any string": func(f *fixture) {
			for i, name := range names {
				file := document(fmt.Sprint("f", i), "")
				file.Name = name
				_, err := f.CreateFile(ctx, of("a"), file, strings.NewReader(name))
				f.ok(err)
				if got, err := f.File(ctx, of("a"), file.ID); err != nil || got.Name != name {
					f.Errorf("got %.40q, %v; want %.40q", got.Name, err, name)
				}
			}
		},
	})
}
