package sqlite

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/backstory-proxy/backstory/store"
)

// secret is a word that stands nowhere else. Its letters look random, so that the
// full-text index, which keeps of a word only what the one before it doesn't begin
// with, holds most of it.
func secret(what string, n int) string {
	sum := sha256.Sum256(fmt.Append(nil, what, n))
	var b strings.Builder
	for _, c := range sum[:16] {
		b.WriteByte('a' + c%26)
	}
	return b.String()
}

// found returns those of the words that the store's files hold.
func found(t *testing.T, path string, words []string) (list []string) {
	t.Helper()
	files, err := filepath.Glob(path + "*")
	if err != nil || len(files) == 0 {
		t.Fatalf("files %v, %v", files, err)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, word := range words {
			if bytes.Contains(content, []byte(word[4:])) { // the end, as of words in the index
				list = append(list, filepath.Base(file)+": "+word)
			}
		}
	}
	return list
}

// erased erases what was deleted, now.
func erased(t *testing.T, s *Store) {
	t.Helper()
	if err := s.eraseOnce(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !wiped(t, s) {
		t.Error("not all was erased")
	}
	s.writer.tidyNow(t)
}

// wiped reports whether the index and the pages have forgotten what was deleted.
func wiped(t *testing.T, s *Store) bool {
	t.Helper()
	var chunks, words, deleted, wiped int
	if err := s.row(t.Context(), `SELECT chunks, words, deleted, wiped FROM erasures`).Scan(&chunks, &words, &deleted, &wiped); err != nil {
		t.Fatal(err)
	}
	return chunks == words && deleted == wiped
}

// clutter fills a store with sessions and files of two tenants, and returns the
// words that stand in each session and file of the first one, by its name.
func clutter(t *testing.T, s *Store, ttl time.Duration) (sessions, files map[string][]string) {
	t.Helper()
	ctx, random := context.Background(), rand.New(rand.NewPCG(1, 2))
	sessions, files = map[string][]string{}, map[string][]string{}
	for i := range 300 {
		tenant, n := []string{"a", "b"}[i%2], random.IntN(30)
		name, word := secret("session "+tenant, n), secret("message "+tenant, i)
		text := strings.Repeat(word+" filler ", 1+random.IntN(1+random.IntN(300)))
		_, err := s.Append(ctx, store.Append{Scope: of(tenant), Session: name, Anyway: true, TTL: ttl, Exchange: store.Exchange{
			ID: secret("id "+tenant, i), Created: s.now(), Model: secret("model "+tenant, i),
			Messages: []store.Message{{JSON: []byte(`{"role":"user","content":"` + text + `"}`), Tokens: 9}},
		}})
		if err != nil {
			t.Fatal(err)
		}
		if tenant == "a" {
			sessions[name] = append(sessions[name], name, word, secret("id a", i), secret("model a", i))
		}
	}
	for i := range 12 {
		tenant := []string{"a", "b"}[i%2]
		f := store.File{ID: secret("file "+tenant, i), Name: secret("title "+tenant, i), Model: "m"}
		words := []string{f.ID, f.Name, secret("original", i)}
		if _, err := s.CreateFile(ctx, of(tenant), f, strings.NewReader(strings.Repeat(secret("original", i), 1+random.IntN(3000)))); err != nil {
			t.Fatal(err)
		}
		var list []store.Chunk
		for n := range 1 + random.IntN(200) {
			word := secret(f.ID, n)
			words = append(words, word, secret("section", i))
			list = append(list, store.Chunk{
				N: n, Section: secret("section", i), Text: strings.Repeat(word+" ", 1+random.IntN(50)), Terms: word + " common terms", Vector: []float32{1, 0},
			})
		}
		if err := s.AddChunks(ctx, of(tenant), f.ID, list); err != nil {
			t.Fatal(err)
		}
		if err := s.FinishFile(ctx, of(tenant), f.ID, store.FileProcessed, ""); err != nil {
			t.Fatal(err)
		}
		if tenant == "a" {
			files[f.ID] = words
		}
	}
	return sessions, files
}

// halves splits the words by whether their session, or file, is to be deleted.
func halves(of map[string][]string) (names, gone, kept []string) {
	for _, name := range slices.Sorted(maps.Keys(of)) {
		words := of[name]
		if name[0] < 'n' {
			names, gone = append(names, name), append(gone, words...)
		} else {
			kept = append(kept, words...)
		}
	}
	return names, gone, kept
}

func TestWhatIsDeletedIsGoneFromTheDisk(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	path := filepath.Join(t.TempDir(), "backstory.db")
	s := openAt(t, path, Options{Synchronous: Normal})
	sessions, files := clutter(t, s, 0)
	deletedSessions, gone, kept := halves(sessions)
	deletedFiles, goneFiles, keptFiles := halves(files)
	gone, kept = append(gone, goneFiles...), append(kept, keptFiles...)
	s.writer.tidyNow(t)
	if n := len(found(t, path, gone)); n < len(gone) {
		t.Fatalf("%d of %d words are there: nothing is tested", n, len(gone))
	}
	for _, session := range deletedSessions {
		if err := s.DeleteSession(ctx, of("a"), session); err != nil {
			t.Fatal(err)
		}
	}
	for _, id := range deletedFiles {
		if err := s.DeleteFile(ctx, of("a"), id); err != nil {
			t.Fatal(err)
		}
	}
	erased(t, s)
	if left := found(t, path, gone); len(left) > 0 {
		t.Errorf("%d of %d words of what was deleted are left, such as %s", len(left), len(gone), left[0])
	}
	if there := found(t, path, kept); len(there) < len(kept) {
		t.Errorf("of %d words of the rest %d are there", len(kept), len(there))
	}

	// And the rest of the tenant, as its removal does.
	for _, session := range slices.Sorted(maps.Keys(sessions)) {
		if err := s.DeleteSession(ctx, of("a"), session); err != nil && !errors.Is(err, store.ErrNotFound) {
			t.Fatal(err)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(files)) {
		if err := s.DeleteFile(ctx, of("a"), id); err != nil && !errors.Is(err, store.ErrNotFound) {
			t.Fatal(err)
		}
	}
	if _, err := s.ForgetTenant(ctx, "a"); err != nil {
		t.Fatal(err)
	}
	erased(t, s)
	if left := found(t, path, append(gone, kept...)); len(left) > 0 {
		t.Errorf("%d words of the tenant are left, such as %s", len(left), left[0])
	}
	sound(t, s)
}

func TestSessionsWhoseTimeIsUpAreGoneFromTheDisk(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "backstory.db")
	var mu sync.Mutex
	now := time.Now()
	s := openAt(t, path, Options{Synchronous: Normal, Now: func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		return now
	}})
	sessions, _ := clutter(t, s, time.Hour)
	var gone []string
	for _, words := range sessions {
		gone = append(gone, words...)
	}
	mu.Lock()
	now = now.Add(2 * time.Hour)
	mu.Unlock()
	if err := s.sweepOnce(t.Context()); err != nil {
		t.Fatal(err)
	}
	erased(t, s)
	if left := found(t, path, gone); len(left) > 0 {
		t.Errorf("%d of %d words are left, such as %s", len(left), len(gone), left[0])
	}
}

// Rows that SQLite moves from page to page leave copies, which it doesn't overwrite
// when they are deleted.
func TestCopiesInTheFreeSpaceOfPagesAreWiped(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "backstory.db")
	s := openAt(t, path, Options{Synchronous: Normal})
	sessions, files := clutter(t, s, 0)
	_, _, kept := halves(sessions)
	_, _, keptFiles := halves(files)
	kept = append(kept, keptFiles...)
	word, pages := secret("message", 0), 0
	err := s.writer.write(t.Context(), 1, func(c *conn) error {
		var count int64
		if err := c.row(`PRAGMA page_count`).Scan(&count); err != nil {
			return err
		}
		for number := int64(1); number <= count; number++ {
			var page []byte
			if err := c.row(readPage, number).Scan(&page); err != nil {
				return err
			}
			free := freeSpace(number, page)
			if len(free) < len(word) {
				continue
			}
			pages++
			copy(free[len(free)-len(word):], word)
			if err := c.exec(writePage, page, number); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	s.writer.tidyNow(t)
	if pages < 100 || len(found(t, path, []string{word})) == 0 {
		t.Fatalf("nothing is tested: %d pages", pages)
	}
	if err := s.wipePages(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.writer.tidyNow(t)
	if left := found(t, path, []string{word}); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	if there := found(t, path, kept); len(there) < len(kept) {
		t.Errorf("of %d words that were not deleted %d are there", len(kept), len(there))
	}
	sound(t, s)
}

// What is erased when, nobody has to ask for.
func TestDeletionsAreErasedBeforeLong(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "backstory.db")
	s := openAt(t, path, Options{})
	upload(t, s, "f1", 1)
	if err := s.DeleteFile(t.Context(), of("a"), "f1"); err != nil {
		t.Fatal(err)
	}
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(20 * time.Second); ; <-tick.C {
		if info, err := os.Stat(path + "-wal"); wiped(t, s) && !s.writer.erasing.Load() && err == nil && info.Size() == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("what is deleted is never erased")
		}
	}
}

// A reader that still sees the file as it was keeps the log from being emptied.
func TestTheLogIsEmptiedOnceNobodyReadsWhatWasDeleted(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "backstory.db")
	s := openAt(t, path, Options{})
	word := secret("message", 0)
	_, err := s.Append(t.Context(), store.Append{Scope: of("a"), Session: "s", Anyway: true, Exchange: store.Exchange{ID: "e", Model: word}})
	if err != nil {
		t.Fatal(err)
	}
	rows, err := s.query(t.Context(), `SELECT model FROM exchanges`)
	if err != nil || !rows.Next() {
		t.Fatal("no rows", err)
	}
	if err := s.DeleteSession(t.Context(), of("a"), "s"); err != nil {
		t.Fatal(err)
	}
	s.writer.tidyNow(t)
	if len(found(t, path, []string{word})) == 0 {
		t.Fatal("the reader is in nobody's way: nothing is tested")
	}
	if err := rows.Close(); err != nil {
		t.Fatal(err)
	}
	s.writer.tidyNow(t) // though nothing was written since
	if left := found(t, path, []string{word}); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// tidyNow has the writer tidy, and waits until it has.
func (w *writer) tidyNow(t *testing.T) {
	t.Helper()
	w.erasing.Store(true)
	w.tick.Reset(time.Millisecond)
	for deadline := time.Now().Add(20 * time.Second); w.erasing.Load(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the writer never tidies")
		}
	}
	if err := w.write(t.Context(), 1, func(*conn) error { return nil }); err != nil { // behind what it was doing
		t.Fatal(err)
	}
}

func TestErasingGivesWayToSaves(t *testing.T) {
	s := temporary(t)
	release := s.writer.hold(t)
	done := make(chan error, 1)
	go func() { done <- s.mergeWords(t.Context(), 0) }()
	if jobs := s.writer.queued(1); !jobs[0].step {
		t.Error("a merge of the index waits among the saves")
	}
	release()
	must(t, <-done)
}

func TestTheChunksOfAFileThatFailedAreErasedSoon(t *testing.T) {
	s := temporary(t)
	_, err := s.CreateFile(t.Context(), of("a"), store.File{ID: "f"}, strings.NewReader("x"))
	must(t, err)
	must(t, s.AddChunks(t.Context(), of("a"), "f", []store.Chunk{{Text: "word", Terms: "word"}}))
	eventually(t, "the round at the start begins", func() bool { return len(s.deleted) == 0 })
	must(t, s.FinishFile(t.Context(), of("a"), "f", store.FileError, "x"))
	if len(s.deleted) == 0 {
		t.Error("nobody erases them")
	}
}
