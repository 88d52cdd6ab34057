package storetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/backstory-proxy/backstory/store"
)

func testTotals(t *testing.T, b Backend) {
	ctx := context.Background()
	expect := func(f *fixture, tenant string, files int, bytes, chunks int64) {
		f.Helper()
		for range 2 { // summed up, and from what is known then
			got, err := f.FileTotals(ctx, of(tenant))
			if want := (store.FileTotals{Files: files, Bytes: bytes, Chunks: chunks}); err != nil || got != want {
				f.Errorf("%s: got %+v, %v; want %+v", tenant, got, err, want)
			}
		}
	}
	create := func(f *fixture, tenant, id string, bytes int64) {
		f.Helper()
		file := document(id, "")
		file.Bytes = bytes
		_, err := f.CreateFile(ctx, of(tenant), file, strings.NewReader("x"))
		f.ok(err)
	}
	steps := func(f *fixture, look func(files int, bytes, chunks int64)) {
		look(0, 0, 0)
		create(f, "a", "f1", 10)
		look(1, 10, 0)
		f.ok(f.AddChunks(ctx, of("a"), "f1", words("one", "two")))
		f.ok(f.AddChunks(ctx, of("a"), "f1", []store.Chunk{{N: 2, Text: "three", Terms: "three"}}))
		look(1, 10, 3)
		f.ok(f.FinishFile(ctx, of("a"), "f1", store.FileProcessed, ""))
		create(f, "a", "f2", 1<<40)
		f.ok(f.AddChunks(ctx, of("a"), "f2", words("one")))
		look(2, 1<<40+10, 4)
		f.ok(f.FinishFile(ctx, of("a"), "f2", store.FileError, "broken"))
		f.ok(f.FinishFile(ctx, of("a"), "f2", store.FileError, "broken, again"))
		look(2, 1<<40+10, 3)
		create(f, "a", "f3", 0)
		create(f, "b", "f1", 7)
		look(3, 1<<40+10, 3)
		again := document("f4", "")
		again.Name, again.Digest = "f1.txt", document("f1", "").Digest
		if _, err := f.CreateFile(ctx, of("a"), again, strings.NewReader("x")); !errors.Is(err, store.ErrExists) {
			f.Errorf("the same file again: %v", err)
		}
		look(3, 1<<40+10, 3)
		f.ok(f.DeleteFile(ctx, of("a"), "f2"))
		look(2, 10, 3)
		f.ok(f.DeleteFile(ctx, of("a"), "f1"))
		look(1, 0, 0)
		f.ok(f.DeleteFile(ctx, of("a"), "f3"))
		look(0, 0, 0)
	}
	b.each(t, map[string]func(*fixture){
		"totals follow each step": func(f *fixture) {
			steps(f, func(files int, bytes, chunks int64) { f.Helper(); expect(f, "a", files, bytes, chunks) })
			expect(f, "b", 1, 7, 0)
			expect(f, "nobody", 0, 0, 0)
		},
		"totals are right when they are first asked for": func(f *fixture) {
			steps(f, func(int, int64, int64) {})
			expect(f, "a", 0, 0, 0)
			expect(f, "b", 1, 7, 0)
		},
		"totals of many files, which come and go at once": func(f *fixture) {
			const n = 520
			for i := range n {
				create(f, "a", fmt.Sprint("f", i), int64(i))
			}
			expect(f, "a", n, n*(n-1)/2, 0)
			var all sync.WaitGroup
			for i := range 8 {
				all.Go(func() {
					for j := range 10 {
						if err := f.DeleteFile(ctx, of("a"), fmt.Sprint("f", 10*i+j)); err != nil {
							f.Error(err)
						}
						if _, err := f.FileTotals(ctx, of("a")); err != nil {
							f.Error(err)
						}
					}
				})
			}
			all.Wait()
			expect(f, "a", n-80, n*(n-1)/2-80*79/2, 0)
		},
		"the same file is found": func(f *fixture) {
			same := func(want string) {
				f.Helper()
				asked := document("f9", "")
				asked.Name, asked.Digest = "f1.txt", document("f1", "").Digest
				got, err := f.SameFile(ctx, of("a"), asked)
				if got.ID != want || want == "" && !errors.Is(err, store.ErrNotFound) || want != "" && err != nil {
					f.Errorf("got %q, %v; want %q", got.ID, err, want)
				}
			}
			same("")
			create(f, "b", "f1", 1)
			same("")
			create(f, "a", "f1", 1)
			same("f1")
			f.ok(f.FinishFile(ctx, of("a"), "f1", store.FileProcessed, ""))
			same("f1")
			f.ok(f.FinishFile(ctx, of("a"), "f1", store.FileError, "broken"))
			same("")
			f.ok(f.DeleteFile(ctx, of("a"), "f1"))
			same("")
		},
	})
}
