package sqlite

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/backstory-proxy/backstory/store"
)

// told is what a store says of whether it can be written.
type told struct {
	mu   sync.Mutex
	errs []error
}

func (n *told) take(err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.errs = append(n.errs, err)
}

func (n *told) all() []error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.errs)
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); <-tick.C {
		if ok() {
			return
		}
	}
	t.Fatalf("it never happened: %s", what)
}

// fill lets the database grow no more, as a full disk does. empty undoes it.
func fill(c *conn) error {
	var pages int
	return c.row(`PRAGMA max_page_count = 1`).Scan(&pages) // SQLite makes it as many as there are
}

func empty(c *conn) error {
	var pages int
	return c.row(`PRAGMA max_page_count = 4294967294`).Scan(&pages)
}

// large is an exchange that no free page has room for.
func large(id string) store.Exchange {
	e := sample(id)
	e.Messages[0].JSON = []byte(`"` + strings.Repeat("x", probeSize) + `"`)
	return e
}

func TestAFullDiskIsKnownBeforeAnythingIsPaidFor(t *testing.T) {
	path := filepath.Join(t.TempDir(), "backstory.db")
	told := new(told)
	s := openAt(t, path, Options{Unwritable: told.take})
	ctx := context.Background()
	saves := store.GatherRequest{Scope: of("a"), Session: "s", Limit: 100, Saves: true}
	reads := saves
	reads.Saves = false
	if err := saveOne(s, "s", "e1"); err != nil {
		t.Fatal(err)
	}
	upload(t, s, "f1", 10)
	if _, err := s.Gather(ctx, saves); err != nil {
		t.Fatal(err)
	}

	must(t, s.writer.write(ctx, 1, fill))
	_, err := s.Append(ctx, store.Append{Scope: of("a"), Session: "s", Exchange: large("e2"), Anyway: true})
	if !errors.Is(err, store.ErrFull) || !strings.Contains(err.Error(), "the disk is full") {
		t.Fatalf("to save: %v", err)
	}
	if _, err := s.Gather(ctx, saves); !errors.Is(err, store.ErrFull) {
		t.Errorf("before a request that saves: %v", err)
	}
	if err := s.Ping(ctx); !errors.Is(err, store.ErrFull) {
		t.Errorf("to ask whether it is ready: %v", err)
	}
	if g, err := s.Gather(ctx, reads); err != nil || len(g.Tail) != 1 {
		t.Errorf("before a request that saves nothing: %+v, %v", g, err)
	}
	if list, err := s.Exchanges(ctx, of("a"), "s", 0, 10, store.Ascending); err != nil || len(list) != 1 {
		t.Errorf("to read: %d exchanges, %v", len(list), err)
	}
	_, err = s.CreateFile(ctx, of("a"), store.File{ID: "f2"}, strings.NewReader("x"))
	if !errors.Is(err, store.ErrFull) {
		t.Errorf("to upload: %v", err)
	}
	if err := errors.Join(s.DeleteFile(ctx, of("a"), "f1"), s.DeleteSession(ctx, of("a"), "s")); err != nil {
		t.Errorf("to delete: %v", err)
	}

	must(t, s.writer.write(ctx, 1, empty))
	eventually(t, "it can be written again", func() bool { return s.Ping(ctx) == nil })
	g, err := s.Gather(ctx, saves)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Append(ctx, store.Append{Scope: of("a"), Session: "s", Exchange: large("e3"), Mark: g.Mark}); err != nil {
		t.Errorf("to save again: %v", err)
	}
	if all := told.all(); len(all) != 2 || !errors.Is(all[0], store.ErrFull) || all[1] != nil {
		t.Errorf("told: %v", all)
	}
	sound(t, s)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestTheReserveTakesWhatIsPaidForWhenTheDiskIsFull(t *testing.T) {
	path := filepath.Join(t.TempDir(), "backstory.db")
	s := openAt(t, path, Options{})
	ctx := context.Background()
	reserved := func() bool {
		info, err := os.Stat(path + "-reserve")
		return err == nil && info.Size() == reserveSize
	}
	eventually(t, "there is a reserve", reserved)
	full := true
	err := s.writer.write(ctx, 1, func(c *conn) error {
		if full = full && reserved(); full {
			must(t, fill(c))
			defer func() { must(t, empty(c)) }()
		}
		return c.exec(`INSERT INTO bodies (messages) VALUES (zeroblob(?))`, probeSize)
	})
	if err != nil || full {
		t.Errorf("the save failed, though there was a reserve: %v", err)
	}
	if err := s.Ping(ctx); !errors.Is(err, store.ErrFull) {
		t.Errorf("the reserve is used up, and it says %v", err)
	}
	eventually(t, "it can be written again", func() bool { return s.Ping(ctx) == nil })
	if !reserved() {
		t.Error("it says that it can be written, and has no reserve")
	}
}

func TestTheReserveIsForThoseAloneThatTheDiskStruck(t *testing.T) {
	s := openAt(t, filepath.Join(t.TempDir(), "backstory.db"), Options{})
	eventually(t, "there is a reserve", func() bool { return s.Ping(t.Context()) == nil && s.reserved(t) })
	tries := 0
	errs := together(t, s.writer,
		func(c *conn) error {
			id, err := s.addTenant(c, of("a"))
			if err != nil {
				return err
			}
			return addUsage(c, id, of("a"), store.Used{Month: 1, Tokens: 5})
		},
		func(c *conn) error {
			if tries++; tries == 1 {
				must(t, fill(c))
				defer func() { must(t, empty(c)) }()
			}
			// Of a statement that writes several rows, SQLite undoes no more than itself.
			return c.exec(`INSERT INTO bodies (messages) SELECT zeroblob(?) FROM (VALUES (1), (2))`, probeSize)
		})
	must(t, errors.Join(errs...))
	if tries != 2 {
		t.Errorf("it was tried %d times", tries)
	}
	var tokens int
	must(t, s.row(t.Context(), `SELECT tokens FROM usage`).Scan(&tokens))
	if tokens != 5 {
		t.Errorf("%d tokens are counted of 5", tokens)
	}
}

func TestTheReserveIsLeftAloneWhereRoomIsNotTheWant(t *testing.T) {
	path := filepath.Join(t.TempDir(), "backstory.db")
	s := openAt(t, path, Options{})
	eventually(t, "there is a reserve", func() bool { return s.reserved(t) })
	tries := 0
	err := s.writer.write(t.Context(), 1, func(*conn) error { tries++; return errGone })
	if !errors.Is(err, errGone) || tries != 1 {
		t.Errorf("after %d tries: %v", tries, err)
	}
	if _, err := os.Stat(path + "-reserve"); err != nil {
		t.Error(err)
	}
}

// reserved reports whether the writer knows of a reserve.
func (s *Store) reserved(t *testing.T) (yes bool) {
	t.Helper()
	must(t, s.writer.write(t.Context(), 1, func(*conn) error { yes = s.writer.disk.reserved; return nil }))
	return yes
}

func TestAFileThatIsTakenAwayIsNoticed(t *testing.T) {
	for name, takeAway := range map[string]func(path string) error{
		"moved": func(path string) error { return os.Rename(path, path+"-elsewhere") },
		"replaced": func(path string) error {
			return errors.Join(os.Rename(path, path+"-elsewhere"), os.WriteFile(path, nil, 0o600))
		},
		"log": func(path string) error { return os.Rename(path+"-wal", path+"-elsewhere") },
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "backstory.db")
			told := new(told)
			s := openAt(t, path, Options{Unwritable: told.take})
			ctx := context.Background()
			must(t, saveOne(s, "s", "e1"))
			must(t, takeAway(path))
			if err := saveOne(s, "s", "e2"); err == nil || errors.Is(err, store.ErrFull) || !strings.Contains(err.Error(), "deleted or replaced") {
				t.Errorf("to save: %v", err)
			}
			if _, err := s.Gather(ctx, store.GatherRequest{Scope: of("a"), Session: "s", Limit: 100, Saves: true}); err == nil {
				t.Error("a request that saves was let in")
			}
			if err := s.Ping(ctx); err == nil {
				t.Error("it says that it is ready")
			}
			back := path
			if name == "log" {
				back += "-wal"
			}
			must(t, os.Rename(path+"-elsewhere", back))
			eventually(t, "it can be written again", func() bool { return s.Ping(ctx) == nil })
			must(t, saveOne(s, "s", "e3"))
			if all := told.all(); len(all) != 2 || all[0] == nil || all[1] != nil {
				t.Errorf("told: %v", all)
			}
		})
	}
}

func TestAFileThatIsTakenAwayIsNoticedThoughNobodySaves(t *testing.T) {
	path := filepath.Join(t.TempDir(), "backstory.db")
	s := openAt(t, path, Options{})
	must(t, os.Remove(path))
	eventually(t, "it is noticed", func() bool { return s.Ping(context.Background()) != nil })
}

func TestADefectOfAJobIsNoFaultOfTheDisk(t *testing.T) {
	s := temporary(t)
	ctx := context.Background()
	for _, query := range []string{`INSERT INTO nowhere DEFAULT VALUES`, `INSERT INTO bodies (messages) VALUES (NULL)`} {
		if err := s.writer.write(ctx, 1, func(c *conn) error { return c.exec(query) }); err == nil {
			t.Errorf("%s: no error", query)
		}
	}
	must(t, s.Ping(ctx))
}
