package sqlite

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/backstory-proxy/backstory/store"
)

// hold keeps the writer busy until release is called. It returns when the
// writer is in it.
func (w *writer) hold(t *testing.T) (release func()) {
	t.Helper()
	entered, gate := make(chan struct{}), make(chan struct{})
	done := make(chan error, 1)
	go func() {
		done <- w.write(context.Background(), groupCost, func(*conn) error {
			close(entered)
			<-gate
			return nil
		})
	}()
	<-entered
	return func() {
		t.Helper()
		close(gate)
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// queued waits until n jobs are in the queue, and returns them.
func (w *writer) queued(n int) []*job {
	for {
		w.queue.mu.Lock()
		if all := slices.Concat(w.queue.saves, w.queue.steps); len(all) >= n {
			w.queue.mu.Unlock()
			return all
		}
		w.queue.mu.Unlock()
		runtime.Gosched()
	}
}

func note(c *conn, name string) error {
	return c.exec(`INSERT INTO tenants (name) VALUES (?)`, name)
}

func noted(t *testing.T, s *Store, name string) bool {
	t.Helper()
	_, err := s.tenant(context.Background(), of(name))
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		t.Fatal(err)
	}
	return err == nil
}

func temporary(t testing.TB) *Store {
	return openAt(t, filepath.Join(t.TempDir(), "backstory.db"), Options{})
}

// together has the writer run the jobs in one group, and returns their errors.
func together(t *testing.T, w *writer, jobs ...func(*conn) error) []error {
	t.Helper()
	release := w.hold(t)
	errs := make([]error, len(jobs))
	var all sync.WaitGroup
	for i, run := range jobs {
		all.Go(func() { errs[i] = w.write(context.Background(), 1, run) })
		w.queued(i + 1)
	}
	release()
	all.Wait()
	return errs
}

func TestJobsThatWaitShareATransaction(t *testing.T) {
	s := temporary(t)
	second := func(c *conn) error {
		// The first one's row is there, and nobody else sees it yet.
		var id int64
		if err := c.row(`SELECT id FROM tenants WHERE name = 'first'`).Scan(&id); err != nil {
			return err
		}
		if noted(t, s, "first") {
			t.Error("the first was committed before the second")
		}
		return note(c, "second")
	}
	for i, err := range together(t, s.writer, func(c *conn) error { return note(c, "first") }, second) {
		if err != nil {
			t.Errorf("job %d: %v", i, err)
		}
	}
	if !noted(t, s, "first") || !noted(t, s, "second") {
		t.Error("not both were kept")
	}
}

func TestAJobThatFailsIsUndoneAlone(t *testing.T) {
	s := temporary(t)
	defect := errors.New("a defect")
	errs := together(t, s.writer,
		func(c *conn) error { return note(c, "first") },
		func(c *conn) error { return errors.Join(note(c, "second"), defect) },
		func(c *conn) error { return note(c, "third") })
	if errs[0] != nil || !errors.Is(errs[1], defect) || errs[2] != nil {
		t.Errorf("got %v", errs)
	}
	if !noted(t, s, "first") || noted(t, s, "second") || !noted(t, s, "third") {
		t.Error("not exactly the first and the third were kept")
	}
}

func TestAJobThatBreaksTheTransactionSinksNoOther(t *testing.T) {
	s := temporary(t)
	errs := together(t, s.writer,
		func(c *conn) error { return note(c, "first") },
		func(c *conn) error { return errors.Join(note(c, "second"), c.exec(`ROLLBACK`)) }, // as SQLite does when the disk is full
		func(c *conn) error { return note(c, "third") })
	if errs[0] != nil || errs[1] == nil || errs[2] != nil {
		t.Errorf("got %v", errs)
	}
	if !noted(t, s, "first") || noted(t, s, "second") || !noted(t, s, "third") {
		t.Error("not exactly the first and the third were kept")
	}
}

func TestAWaitingJobWhoseContextEndsIsNotRun(t *testing.T) {
	s := temporary(t)
	release := s.writer.hold(t)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		done <- s.writer.write(ctx, 1, func(*conn) error {
			t.Error("it was run")
			return nil
		})
	}()
	s.writer.queued(1)
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) { // before the writer is free
		t.Errorf("got %v", err)
	}
	release()
}

func TestAStartedJobTellsItsTrueOutcome(t *testing.T) {
	s := temporary(t)
	ctx, cancel := context.WithCancel(context.Background())
	err := s.writer.write(ctx, 1, func(c *conn) error {
		cancel()
		return note(c, "kept")
	})
	if err != nil || !noted(t, s, "kept") {
		t.Errorf("got %v", err)
	}
}

func TestAGroupTakesNoMoreThanItsCost(t *testing.T) {
	q := &queue{}
	for range 5 {
		q.saves = append(q.saves, &job{cost: groupCost / 2})
	}
	for i, want := range []int{2, 2, 1, 0} {
		if group, _ := q.take(); len(group) != want {
			t.Errorf("group %d has %d jobs, want %d", i, len(group), want)
		}
	}
}

func TestTidyingFoldsTheLogAndGivesPagesBack(t *testing.T) {
	path := filepath.Join(t.TempDir(), "backstory.db")
	w, err := newWriter(context.Background(), path, Options{Synchronous: Full})
	if err != nil {
		t.Fatal(err)
	}
	go w.loop()
	fill := func(c *conn) error {
		return errors.Join(
			c.exec(`WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000) INSERT INTO tenants (name) SELECT printf('%0200d', i) FROM n`),
			c.exec(`DELETE FROM tenants`))
	}
	if err := w.write(context.Background(), 1, fill); err != nil {
		t.Fatal(err)
	}
	w.queue.close() // once it has stopped, the connection is this goroutine's
	<-w.stopped
	state := func() (free int, log int64) {
		if err := w.conn.row(`PRAGMA freelist_count`).Scan(&free); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(path + "-wal")
		if err != nil {
			t.Fatal(err)
		}
		return free, info.Size()
	}
	if free, log := state(); free == 0 || log == 0 {
		t.Fatalf("%d free pages and a log of %d bytes to begin with", free, log)
	}
	w.tidy()
	if free, log := state(); free != 0 || log != 0 || w.dirty {
		t.Errorf("%d free pages and a log of %d bytes are left", free, log)
	}
	if err := w.close(); err != nil {
		t.Fatal(err)
	}
}
