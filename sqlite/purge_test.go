package sqlite

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/backstory-proxy/backstory/store"
)

func chunks(n int) []store.Chunk {
	list := make([]store.Chunk, n)
	for i := range list {
		list[i] = store.Chunk{N: i, Text: "Alpha", Terms: fmt.Sprint("alpha number", i), Vector: []float32{1, 0}}
	}
	return list
}

// begin uploads a file of tenant a without finishing it.
func begin(t *testing.T, s *Store, id string, n int) {
	t.Helper()
	ctx := context.Background()
	if _, err := s.CreateFile(ctx, of("a"), store.File{ID: id, Name: id, Model: "m"}, bytes.NewReader(make([]byte, 6*partSize))); err != nil {
		t.Fatal(err)
	}
	if err := s.AddChunks(ctx, of("a"), id, chunks(n)); err != nil {
		t.Fatal(err)
	}
}

func upload(t *testing.T, s *Store, id string, n int) {
	t.Helper()
	begin(t, s, id, n)
	if err := s.FinishFile(context.Background(), of("a"), id, store.FileProcessed, ""); err != nil {
		t.Fatal(err)
	}
}

// rows counts the rows of each table that removals are about.
func rows(t *testing.T, s *Store) string {
	t.Helper()
	all := ""
	for _, table := range []string{"files", "originals", "chunks", "vectors", "words_docsize", "exchanges", "bodies", "purges"} {
		var n int
		if err := s.row(context.Background(), `SELECT count(*) FROM `+table).Scan(&n); err != nil {
			t.Fatal(err)
		}
		all += fmt.Sprintf("%s %d, ", table, n)
	}
	return all
}

// sound fails the test if the file contradicts itself.
func sound(t *testing.T, s *Store) {
	t.Helper()
	var result string
	if err := s.row(context.Background(), `PRAGMA integrity_check`).Scan(&result); err != nil || result != "ok" {
		t.Errorf("integrity: %s, %v", result, err)
	}
	if err := s.row(context.Background(), `SELECT "table" FROM pragma_foreign_key_check`).Scan(&result); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("foreign keys of %s: %v", result, err)
	}
	err := s.writer.write(context.Background(), 1, func(c *conn) error {
		return c.exec(`INSERT INTO words (words, rank) VALUES ('integrity-check', 1)`)
	})
	if err != nil {
		t.Errorf("full text: %v", err)
	}
}

func TestDeletionsLeaveNothingBehind(t *testing.T) {
	s := temporary(t)
	before := rows(t, s)
	upload(t, s, "f1", 3*purgeBatch+1)
	upload(t, s, "f2", 1)
	begin(t, s, "f3", purgeBatch)
	for i := range 2*purgeBatch + 1 {
		if _, err := s.Append(context.Background(), store.Append{Scope: of("a"), Session: "s", Exchange: store.Exchange{ID: fmt.Sprint(i)}, Anyway: true}); err != nil {
			t.Fatal(err)
		}
	}
	for _, id := range []string{"f1", "f2", "f3"} {
		if err := s.DeleteFile(context.Background(), of("a"), id); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.DeleteSession(context.Background(), of("a"), "s"); err != nil {
		t.Fatal(err)
	}
	if after := rows(t, s); after != before {
		t.Errorf("left: %s", after)
	}
	sound(t, s)
}

func TestAnInterruptedUploadFailsWhenTheFileIsOpenedAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "backstory.db")
	s := openAt(t, path, Options{})
	upload(t, s, "whole", 2)
	kept := rows(t, s)
	begin(t, s, "half", 2*purgeBatch)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = openAt(t, path, Options{})
	f, err := s.File(context.Background(), of("a"), "half")
	if err != nil || f.Status != store.FileError || f.Reason != interrupted {
		t.Errorf("got %+v, %v", f, err)
	}
	s.tasks.Wait()
	if f, err := s.File(context.Background(), of("a"), "whole"); err != nil || f.Status != store.FileProcessed {
		t.Errorf("got %+v, %v", f, err)
	}
	if err := s.DeleteFile(context.Background(), of("a"), "half"); err != nil {
		t.Fatal(err)
	}
	if after := rows(t, s); after != kept {
		t.Errorf("left: %s", after)
	}
	sound(t, s)
}

func TestAnUploadUnderWayElsewhereIsLeftAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "backstory.db")
	s := openAt(t, path, Options{})
	begin(t, s, "f1", 2)
	other := openAt(t, path, Options{})
	if f, err := other.File(context.Background(), of("a"), "f1"); err != nil || f.Status != store.FileUploaded {
		t.Errorf("got %+v, %v", f, err)
	}
	if err := s.FinishFile(context.Background(), of("a"), "f1", store.FileProcessed, ""); err != nil {
		t.Error(err)
	}
}

func TestWhatWasBeingRemovedIsRemovedWhenTheFileIsOpenedAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "backstory.db")
	s := openAt(t, path, Options{})
	empty := rows(t, s)
	upload(t, s, "f1", 2*purgeBatch+1)
	for i := range purgeBatch + 1 {
		if _, err := s.Append(context.Background(), store.Append{Scope: of("a"), Session: "s", Exchange: store.Exchange{ID: fmt.Sprint(i)}, Anyway: true}); err != nil {
			t.Fatal(err)
		}
	}
	// What a crash leaves after the first step: marks, most of the rows, and
	// the beginning of an original.
	err := s.writer.write(context.Background(), 1, func(c *conn) error {
		return c.script(`
			UPDATE files SET hidden = 1, dark = 1;
			DELETE FROM chunks WHERE n < 10;
			INSERT INTO purges SELECT id FROM sessions;
			DELETE FROM sessions;
			INSERT INTO files (tenant, name, title, purpose, bytes, digest, created, status, reason, model, chunks, hidden, dark)
				SELECT id, 'f2', '', '', 9, x'00', 0, 'uploaded', '', '', 0, 1, 1 FROM tenants;
			INSERT INTO originals (file, part, content) SELECT id, 0, x'00' FROM files WHERE name = 'f2'`)
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = openAt(t, path, Options{})
	s.tasks.Wait()
	if after := rows(t, s); after != empty {
		t.Errorf("left: %s", after)
	}
	sound(t, s)
}

func TestAppendsGetInBetweenTheStepsOfARemoval(t *testing.T) {
	s := temporary(t)
	ctx := context.Background()
	upload(t, s, "f1", 5*purgeBatch)
	file, _, err := s.file(ctx, of("a"), "f1")
	if err != nil {
		t.Fatal(err)
	}
	steps := 0
	appended := make(chan error, 100)
	err = s.purge(ctx, func(c *conn) (bool, error) {
		// What was queued during the last step has come before this one.
		var n int
		if err := c.row(`SELECT count(*) FROM exchanges`).Scan(&n); err != nil || n != steps {
			t.Errorf("step %d: %d appends came before it, %v", steps, n, err)
		}
		steps++
		go func(id string) {
			_, err := s.Append(ctx, store.Append{Scope: of("a"), Session: "s", Exchange: store.Exchange{ID: id}, Anyway: true})
			appended <- err
		}(fmt.Sprint(steps))
		s.writer.queued(1)
		return purgeFile(c, file)
	})
	if err != nil || steps < 5 {
		t.Errorf("%d steps, %v", steps, err)
	}
	for range steps {
		if err := <-appended; err != nil {
			t.Error(err)
		}
	}
}

func TestNumbersAreNeverUsedTwice(t *testing.T) {
	s := temporary(t)
	ctx := context.Background()
	highest := func(table string) (id int64) {
		if err := s.row(ctx, `SELECT max(id) FROM `+table).Scan(&id); err != nil {
			t.Fatal(err)
		}
		return id
	}
	var last [3]int64
	for i := range 3 {
		upload(t, s, "f1", 2)
		if _, err := s.Append(ctx, store.Append{Scope: of("a"), Session: fmt.Sprint("s", i), Exchange: store.Exchange{ID: "e"}, Anyway: true}); err != nil {
			t.Fatal(err)
		}
		for j, table := range []string{"files", "chunks", "sessions"} {
			id := highest(table)
			if id <= last[j] {
				t.Errorf("%s: %d after %d", table, id, last[j])
			}
			last[j] = id
		}
		if err := s.DeleteFile(ctx, of("a"), "f1"); err != nil {
			t.Fatal(err)
		}
		if err := s.DeleteSession(ctx, of("a"), fmt.Sprint("s", i)); err != nil {
			t.Fatal(err)
		}
	}
}
