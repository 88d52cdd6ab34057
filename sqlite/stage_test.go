package sqlite

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/backstory-proxy/backstory/store"
)

func long(n int) []store.Exchange {
	list := make([]store.Exchange, n)
	for i := range list {
		list[i] = sample(fmt.Sprint("i", i))
	}
	return list
}

func count(t *testing.T, s *Store, table string) (n int) {
	t.Helper()
	if err := s.row(context.Background(), `SELECT count(*) FROM `+table).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestALongImportIsWrittenInSteps(t *testing.T) {
	s := temporary(t)
	ctx := context.Background()
	list := long(2000)
	list[1500].ID = "i3" // twice
	before := s.writer.queue.began.Load()
	seqs, err := s.Import(ctx, store.Import{Scope: of("a"), Session: "s", Exchanges: list})
	if err != nil || len(seqs) != len(list) || seqs[0] != 1 || seqs[1500] != 4 || seqs[1999] != 1999 {
		t.Fatalf("%d seqs, %v", len(seqs), err)
	}
	if steps := s.writer.queue.began.Load() - before; steps < 5 {
		t.Errorf("it took %d steps", steps)
	}
	must(t, s.sweepOnce(ctx))
	got, err := s.Exchanges(ctx, of("a"), "s", 0, 3000, store.Ascending)
	if err != nil || len(got) != 1999 || got[1998].ID != "i1999" || got[1998].Offset != 1998*400 {
		t.Errorf("%d exchanges, %v", len(got), err)
	}
	if d, err := s.Session(ctx, of("a"), "s"); err != nil || d.Messages != 2*1999 || d.Tokens != 1999*400 {
		t.Errorf("the session is %+v, %v", d, err)
	}
	again, err := s.Import(ctx, store.Import{Scope: of("a"), Session: "s", Exchanges: list, Mark: store.Mark{Seq: 1999}})
	if err != nil || again[1999] != 1999 {
		t.Errorf("again: %v", err)
	}
	if n := count(t, s, "purges"); n != 0 {
		t.Errorf("%d sessions are to be removed", n)
	}
	sound(t, s)
}

// at has a job run in the middle of an import of a new session.
func at(t *testing.T, s *Store, run func()) error {
	t.Helper()
	ctx := context.Background()
	i := &store.Import{Scope: of("a"), Session: "s", Exchanges: long(100)}
	g := new(stage)
	must(t, s.writer.add(ctx, func(c *conn) error { return s.beginStage(c, i, g) }))
	for len(g.seqs) < 100 {
		must(t, s.writer.add(ctx, func(c *conn) (err error) {
			*g, err = s.addToStage(c, i, *g)
			return err
		}))
	}
	run()
	return s.writer.step(ctx, func(c *conn) error {
		named, err := s.nameStage(c, i, g)
		if err == nil && !named {
			err = errors.New("there is another")
		}
		return err
	})
}

func TestWhatHappensDuringALongImport(t *testing.T) {
	ctx := context.Background()
	t.Run("nobody sees it before its end", func(t *testing.T) {
		s := temporary(t)
		must(t, at(t, s, func() {
			if _, err := s.Session(ctx, of("a"), "s"); !errors.Is(err, store.ErrNotFound) {
				t.Errorf("the session is there: %v", err)
			}
			must(t, s.sweepOnce(ctx)) // which mustn't take it for what a deletion has left
		}))
		if n := count(t, s, "exchanges"); n != 100 {
			t.Errorf("%d exchanges, want 100", n)
		}
	})
	t.Run("somebody begins the session", func(t *testing.T) {
		s := temporary(t)
		if err := at(t, s, func() { must(t, saveOne(s, "s", "e1")) }); err == nil {
			t.Error("it took the place of a session")
		}
	})
	t.Run("the session is deleted", func(t *testing.T) {
		s := temporary(t)
		if err := at(t, s, func() { _ = s.DeleteSession(ctx, of("a"), "s") }); !errors.Is(err, store.ErrDeleted) {
			t.Errorf("got %v, want ErrDeleted", err)
		}
	})
	t.Run("the process dies", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "backstory.db")
		s := openAt(t, path, Options{})
		err := at(t, s, func() {
			must(t, s.Close())
			s = openAt(t, path, Options{})
			s.tasks.Wait()
		})
		if !errors.Is(err, errClosed) {
			t.Errorf("got %v", err)
		}
		if n := count(t, s, "exchanges") + count(t, s, "bodies") + count(t, s, "purges"); n != 0 {
			t.Errorf("%d rows are left of it", n)
		}
		sound(t, s)
	})
}

func TestALongImportIntoASessionThatBeginsMeanwhileStandsBehindIt(t *testing.T) {
	s := temporary(t)
	ctx := context.Background()
	release := s.writer.hold(t)
	done := make(chan error, 2)
	go func() {
		_, err := s.Import(ctx, store.Import{Scope: of("a"), Session: "s", Exchanges: long(300)})
		done <- err
	}()
	s.writer.queued(1)
	go func() { done <- saveOne(s, "s", "e1") }()
	s.writer.queued(2)
	release()
	must(t, errors.Join(<-done, <-done))
	list, err := s.Exchanges(ctx, of("a"), "s", 0, 1000, store.Ascending)
	if err != nil || len(list) != 301 || list[0].ID != "e1" || list[300].ID != "i299" {
		t.Errorf("%d exchanges, %v", len(list), err)
	}
	eventually(t, "nothing is left to be removed", func() bool { return count(t, s, "purges") == 0 && count(t, s, "bodies") == 301 })
	sound(t, s)
}
