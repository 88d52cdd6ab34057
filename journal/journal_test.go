package journal_test

import (
	"context"
	"database/sql"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/backstory-proxy/backstory/journal"
	"github.com/backstory-proxy/backstory/memory"
	"github.com/backstory-proxy/backstory/store"
)

var errDown = errors.New("down")

// fake is a store that does what a test says.
type fake struct {
	mu     sync.Mutex
	down   bool
	lonely bool             // its replicas are gone
	refuse map[string]error // by exchange ID
	got    []string         // session/ID
	tries  int
}

func (f *fake) Append(_ context.Context, a store.Append) (int64, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.tries++
	if f.down {
		return 0, errDown
	}
	if err := f.refuse[a.Exchange.ID]; err != nil {
		return 0, err
	}
	if id := a.Session + "/" + a.Exchange.ID; !slices.Contains(f.got, id) {
		f.got = append(f.got, id)
	}
	if f.lonely {
		return 0, store.ErrUnconfirmed
	}
	return int64(len(f.got)), nil
}

func (f *fake) Ping(context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.down {
		return errDown
	}
	return nil
}

func (f *fake) set(do func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	do()
}

func (f *fake) saved() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return strings.Join(f.got, " ")
}

func (f *fake) tried() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.tries
}

// clock is a time that tests set, and events are what a journal told.
type clock struct {
	mu     sync.Mutex
	now    time.Time
	events []string
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

func (c *clock) note(e journal.Event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.events = append(c.events, fmt.Sprint(e.What, " ", e.Depth))
}

func (c *clock) told(event string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Contains(c.events, event)
}

func open(t *testing.T, path string, s journal.Store, c *clock) *journal.Journal {
	t.Helper()
	if c == nil {
		c = &clock{now: time.Now()}
	}
	j, err := journal.Open(t.Context(), path, s, journal.Options{
		Location: "here", First: time.Millisecond, Longest: time.Millisecond, Now: c.Now, Notify: c.note,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.Close() }) // tests close some themselves
	return j
}

func entry(session, id string) journal.Entry {
	return journal.Entry{Scope: store.Scope{Tenant: "acme"}, Session: session, Draft: memory.Draft{
		Exchange: store.Exchange{ID: id, Messages: []store.Message{{JSON: []byte(`{"role":"assistant","content":"x"}`)}}},
	}}
}

func add(t *testing.T, j *journal.Journal, entries ...journal.Entry) {
	t.Helper()
	for _, e := range entries {
		if err := j.Add(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); <-tick.C {
		if ok() {
			return
		}
	}
	t.Fatalf("it never happened: %s", what)
}

func TestWhatWaitsIsReplayedInOrderWhenTheStoreIsBack(t *testing.T) {
	s, c := &fake{down: true}, &clock{now: time.Now()}
	j := open(t, filepath.Join(t.TempDir(), "j.db"), s, c)
	add(t, j, entry("s", "1"), entry("s", "2"), entry("s", "3"))
	eventually(t, "the store is asked more than once", func() bool { return s.tried() > 1 })
	if j.Depth() != 3 || !j.Holds(store.Scope{Tenant: "acme"}, "s") || j.Holds(store.Scope{Tenant: "acme"}, "other") || j.Holds(store.Scope{Tenant: "beta"}, "s") {
		t.Errorf("depth %d", j.Depth())
	}
	if err := j.Replay(t.Context(), store.Scope{Tenant: "acme"}, "s"); !errors.Is(err, errDown) {
		t.Errorf("to replay now: %v", err)
	}
	s.set(func() { s.down = false })
	eventually(t, "all is told to be replayed", func() bool { return c.told("replayed 0") })
	if got := s.saved(); got != "s/1 s/2 s/3" || j.Depth() != 0 || j.Holds(store.Scope{Tenant: "acme"}, "s") {
		t.Errorf("the store has %q, depth %d", got, j.Depth())
	}
}

// occupy keeps others from writing to the file, until it is released.
func occupy(t *testing.T, path string) (release func()) {
	t.Helper()
	db := raw(t, path)
	tx, err := db.BeginTx(t.Context(), nil)
	if err == nil {
		_, err = tx.Exec(`DELETE FROM entries WHERE id < 0`)
	}
	if err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := errors.Join(tx.Rollback(), db.Close()); err != nil {
			t.Error(err)
		}
	}
}

func TestNobodyWaitsLongForAFileThatAnotherOccupies(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j.db")
	j := open(t, path, &fake{down: true}, nil)
	release := occupy(t, path)
	began := time.Now()
	if err := j.Add(t.Context(), entry("s", "1")); err == nil || time.Since(began) > 5*time.Second {
		t.Errorf("%v after %v", err, time.Since(began))
	}
	release()
	if n := rows(t, path); n != 0 || j.Depth() != 0 {
		t.Errorf("%d rows, depth %d", n, j.Depth())
	}
}

// Those that the store refuses all at once wait for the file one behind the other.
func TestTheFirstExchangeThatWaitsIsTold(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j.db")
	s, c := &fake{down: true}, &clock{now: time.Now()}
	j := open(t, path, s, c)
	release := occupy(t, path)
	var all sync.WaitGroup
	for _, id := range []string{"1", "2"} {
		all.Go(func() {
			if err := j.Add(t.Context(), entry("s", id)); err != nil {
				t.Error(err)
			}
		})
	}
	eventually(t, "both wait", func() bool { return j.Depth() == 2 })
	release()
	all.Wait()
	if !c.told("journaled 1") || !c.told("journaled 2") {
		t.Errorf("told: %q", c.events)
	}
}

// without is list less one of its words.
func without(list, word string) string {
	return strings.Join(slices.DeleteFunc(strings.Fields(list), func(w string) bool { return w == word }), " ")
}

func TestASessionIsReplayedAtOnceForWhoReadsIt(t *testing.T) {
	s := &fake{down: true}
	j, err := journal.Open(t.Context(), filepath.Join(t.TempDir(), "j.db"), s, journal.Options{First: time.Hour, Longest: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	add(t, j, entry("a", "1"), entry("b", "2"), entry("a", "3"))
	s.set(func() { s.down = false })
	// The loop's first attempt may come in between.
	if err := j.Replay(t.Context(), store.Scope{Tenant: "acme"}, "a"); err != nil || without(s.saved(), "b/2") != "a/1 a/3" {
		t.Errorf("%v; the store has %q", err, s.saved())
	}
	// That it worked says that the store is back: the pause is over.
	eventually(t, "the other session is replayed, too", func() bool { return strings.Contains(s.saved(), "b/2") })
}

func TestWhatIsSavedButUnconfirmedStaysAndCanBeRead(t *testing.T) {
	s, c := &fake{down: true}, &clock{now: time.Now()}
	j := open(t, filepath.Join(t.TempDir(), "j.db"), s, c)
	add(t, j, entry("s", "1"), entry("s", "2"))
	s.set(func() { s.down, s.lonely = false, true })
	if err := j.Replay(t.Context(), store.Scope{Tenant: "acme"}, "s"); err != nil || s.saved() != "s/1 s/2" || j.Depth() != 2 {
		t.Errorf("%v; the store has %q, depth %d", err, s.saved(), j.Depth())
	}
	c.pass(24 * time.Hour)
	j.Saved()
	n := s.tried()
	eventually(t, "confirmation is asked for again", func() bool { return s.tried() > n+2 })
	add(t, j, entry("s", "3"))
	if err := j.Replay(t.Context(), store.Scope{Tenant: "acme"}, "s"); err != nil || s.saved() != "s/1 s/2 s/3" {
		t.Errorf("%v; the store has %q", err, s.saved())
	}
	add(t, j, entry("s", "4"))
	eventually(t, "what stands behind them is saved, though nobody asks for it", func() bool { return s.saved() == "s/1 s/2 s/3 s/4" })
	s.set(func() { s.lonely = false })
	eventually(t, "they are confirmed", func() bool { return j.Depth() == 0 })
	if c.told("set_aside 1") || c.told("set_aside 2") {
		t.Error("what was saved was set aside")
	}
}

func TestWhoReadsDoesNotWaitForWhatIsSaved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &fake{lonely: true}
		j, err := journal.Open(t.Context(), filepath.Join(t.TempDir(), "j.db"), s, journal.Options{First: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait() // the loop has begun its pause
		e := entry("s", "1")
		e.Saved = true
		add(t, j, e, entry("s", "2"))
		if err := j.Replay(t.Context(), store.Scope{Tenant: "acme"}, "s"); err != nil || !strings.HasPrefix(s.saved(), "s/2") {
			t.Errorf("%v; the store was asked for %q", err, s.saved())
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

func TestWhatWaitsSurvives(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sub", "j.db")
	down := &fake{down: true}
	j := open(t, path, down, nil)
	add(t, j, entry("s\x00\xff", "1"), entry("s\x00\xff", "2"))
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if err := j.Add(t.Context(), entry("s", "late")); err == nil {
		t.Error("a closed journal took an exchange")
	}
	s := &fake{down: true}
	j = open(t, path, s, nil)
	if !j.Holds(store.Scope{Tenant: "acme"}, "s\x00\xff") || j.Depth() != 2 {
		t.Errorf("depth %d: the first request would not see what waits", j.Depth())
	}
	s.set(func() { s.down = false })
	eventually(t, "it is replayed", func() bool { return s.saved() == "s\x00\xff/1 s\x00\xff/2" })
}

func TestEachProcessReplaysItsOwn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j.db")
	one, other := &fake{down: true}, &fake{}
	first := open(t, path, one, nil)
	add(t, first, entry("s", "1"))
	second := open(t, path, other, nil)
	add(t, second, entry("t", "2"))
	eventually(t, "the second replays its own", func() bool { return second.Depth() == 0 })
	if got := other.saved(); got != "t/2" {
		t.Errorf("the second replayed %q", got)
	}
	// Another store's, in the same file.
	elsewhere, err := journal.Open(t.Context(), path, other, journal.Options{Location: "elsewhere"})
	if err != nil {
		t.Fatal(err)
	}
	if elsewhere.Depth() != 0 {
		t.Error("a journal took what is another store's")
	}
	_ = elsewhere.Close()

	// The second would be right to take over what the first leaves.
	if err := errors.Join(second.Close(), first.Close()); err != nil {
		t.Fatal(err)
	}
	third := &fake{down: true}
	j := open(t, path, third, nil) // in the place of the first
	if j.Depth() != 1 {
		t.Errorf("depth %d", j.Depth())
	}
	_ = j.Close()
	j = open(t, path, &fake{}, nil)
	eventually(t, "nothing is left", func() bool { return j.Depth() == 0 })
}

func TestWhatADeadProcessLeftIsTakenOver(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j.db")
	keep := open(t, path, &fake{}, nil) // holds the first place
	down := &fake{down: true}
	dead := open(t, path, down, nil)
	add(t, dead, entry("s", "1"), entry("s", "2"))
	_ = dead.Close()
	_ = keep.Close()
	s := &fake{}
	open(t, path, s, nil)
	eventually(t, "it is replayed by another", func() bool { return s.saved() == "s/1 s/2" })
}

// As over a reload that changes how the store is reached.
func TestWhatASuccessorFindsLaterIsTakenOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "j.db")
		first := open(t, path, &fake{down: true}, nil)
		add(t, first, entry("s", "1"))
		s := &fake{}
		second := open(t, path, s, nil)
		synctest.Wait() // it has looked, and found that the first one lives
		if err := first.Close(); err != nil {
			t.Fatal(err)
		}
		eventually(t, "it is replayed by its successor", func() bool { return s.saved() == "s/1" && second.Depth() == 0 })
		if err := second.Close(); err != nil { // a test's last goroutines must end in it
			t.Fatal(err)
		}
	})
}

func TestADeletedSessionsExchangesVanish(t *testing.T) {
	s, c := &fake{refuse: map[string]error{"1": store.ErrDeleted}}, &clock{now: time.Now()}
	path := filepath.Join(t.TempDir(), "j.db")
	j := open(t, path, s, c)
	add(t, j, entry("s", "1"))
	eventually(t, "it is void", func() bool { return c.told("void 0") })

	s.set(func() { s.down = true })
	add(t, j, entry("s", "2"), entry("t", "3"), entry("u", "4"))
	if err := j.Drop(t.Context(), store.Scope{Tenant: "acme"}, "s"); err != nil || j.Holds(store.Scope{Tenant: "acme"}, "s") || j.Depth() != 2 {
		t.Errorf("drop a session: %v, depth %d", err, j.Depth())
	}
	if err := j.Drop(t.Context(), store.Scope{Tenant: "acme"}, ""); err != nil || j.Depth() != 0 {
		t.Errorf("drop a tenant: %v, depth %d", err, j.Depth())
	}
	if n := rows(t, path); n != 0 {
		t.Errorf("%d rows are left", n)
	}
}

func TestNothingIsLeftOfWhatIsGone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j.db")
	left := func() bool {
		for _, suffix := range []string{"", "-wal"} {
			b, err := os.ReadFile(path + suffix)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(string(b), base64.StdEncoding.EncodeToString([]byte("top secret"))) {
				return true
			}
		}
		return false
	}
	e := entry("s", "1")
	e.Draft.Exchange.Messages[0].JSON = []byte("top secret")
	s := &fake{down: true}
	j := open(t, path, s, nil)
	add(t, j, e, entry("t", "2"))
	if !left() {
		t.Error("it isn't there: nothing is tested")
	}
	if err := j.Drop(t.Context(), store.Scope{Tenant: "acme"}, "s"); err != nil || left() {
		t.Errorf("dropped, it is still in the file: %v", err)
	}
	add(t, j, e)
	s.set(func() { s.down = false })
	eventually(t, "it is replayed", func() bool { return j.Depth() == 0 })
	eventually(t, "it is no longer in the file", func() bool { return !left() })
}

func TestAProcessCountsWhatAnotherHasDropped(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j.db")
	s := &fake{down: true, refuse: map[string]error{"1": store.ErrDeleted}}
	j := open(t, path, s, nil)
	add(t, j, entry("s", "1"))
	if err := open(t, path, &fake{}, nil).Drop(t.Context(), store.Scope{Tenant: "acme"}, "s"); err != nil {
		t.Fatal(err)
	}
	s.set(func() { s.down = false })
	eventually(t, "nothing waits", func() bool { return j.Depth() == 0 && !j.Holds(store.Scope{Tenant: "acme"}, "s") })
	if n := rows(t, path); n != 0 {
		t.Errorf("%d rows are left", n)
	}
}

func TestADeletionIsCarriedOutWhenWhoAskedHasLeft(t *testing.T) {
	j := open(t, filepath.Join(t.TempDir(), "j.db"), &fake{down: true}, nil)
	add(t, j, entry("s", "1"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := j.Drop(ctx, store.Scope{Tenant: "acme"}, "s"); err != nil || j.Depth() != 0 {
		t.Errorf("%v, depth %d", err, j.Depth())
	}
}

func TestWhatCanNotBeSavedIsSetAside(t *testing.T) {
	bad := errors.New("wrong type")
	s, c := &fake{refuse: map[string]error{"1": bad}}, &clock{now: time.Now()}
	j := open(t, filepath.Join(t.TempDir(), "j.db"), s, c)
	add(t, j, entry("s", "1"), entry("s", "2"), entry("t", "3"))
	eventually(t, "the other session is replayed", func() bool { return s.saved() == "t/3" })
	c.pass(time.Hour)
	n := s.tried()
	eventually(t, "it is tried on", func() bool { return s.tried() > n+2 })
	c.pass(24 * time.Hour)
	n = s.tried()
	eventually(t, "it is tried on, for as long as nothing shows that it is the only one", func() bool { return s.tried() > n+2 })
	if c.told("set_aside 1") {
		t.Fatal("it was given up while the store may have been down")
	}
	eventually(t, "it is set aside, and what stood behind it is saved", func() bool {
		j.Saved()
		c.pass(time.Hour)
		return s.saved() == "t/3 s/2" && j.Depth() == 0
	})
	if !c.told("set_aside 1") {
		t.Errorf("told: %q", c.events)
	}
}

func TestALongOutageIsNotHeldAgainstAnExchange(t *testing.T) {
	s, c := &fake{down: true, refuse: map[string]error{"1": errors.New("still loading")}}, &clock{now: time.Now()}
	j := open(t, filepath.Join(t.TempDir(), "j.db"), s, c)
	add(t, j, entry("s", "1"))
	eventually(t, "it is tried", func() bool { return s.tried() > 1 })
	c.pass(24 * time.Hour)
	s.set(func() { s.down = false })
	j.Saved() // others are taken again, this one not yet
	n := s.tried()
	eventually(t, "it is tried on", func() bool { return s.tried() > n+2 || j.Depth() == 0 })
	s.set(func() { s.refuse = nil })
	eventually(t, "it no longer waits", func() bool { return j.Depth() == 0 })
	if got := s.saved(); got != "s/1" {
		t.Errorf("the store has %q; told: %q", got, c.events)
	}
}

// A full disk is played by triggers.
func TestAFileThatCanNotBeWrittenKeepsNobodyWaiting(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j.db")
	s := &fake{down: true}
	j := open(t, path, s, nil)
	add(t, j, entry("s", "1"), entry("s", "2"))
	db := raw(t, path)
	defer db.Close()
	if _, err := db.Exec(`CREATE TRIGGER full BEFORE INSERT ON entries BEGIN SELECT raise(FAIL, 'full'); END;
		CREATE TRIGGER fuller BEFORE DELETE ON entries BEGIN SELECT raise(FAIL, 'full'); END`); err != nil {
		t.Fatal(err)
	}
	if err := j.Add(t.Context(), entry("t", "3")); err == nil || j.Holds(store.Scope{Tenant: "acme"}, "t") || j.Depth() != 2 {
		t.Errorf("add: %v, depth %d", err, j.Depth())
	}
	s.set(func() { s.down = false })
	if err := j.Replay(t.Context(), store.Scope{Tenant: "acme"}, "s"); err != nil || s.saved() != "s/1 s/2" {
		t.Errorf("%v; the store has %q", err, s.saved())
	}
	if _, err := db.Exec(`DROP TRIGGER fuller`); err != nil {
		t.Fatal(err)
	}
	eventually(t, "what is saved is removed", func() bool { return j.Depth() == 0 })
}

func TestACorruptEntryBlocksNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j.db")
	j := open(t, path, &fake{down: true}, nil)
	add(t, j, entry("s", "1"), entry("s", "2"))
	_ = j.Close()
	db := raw(t, path)
	if _, err := db.Exec(`UPDATE entries SET record = x'0002ff' WHERE id = 1`); err != nil {
		t.Fatal(err)
	}
	_ = db.Close()
	s := &fake{}
	j = open(t, path, s, nil)
	eventually(t, "the rest is replayed", func() bool { return s.saved() == "s/2" && j.Depth() == 0 })
	_ = j.Close()
	if n := rows(t, path); n != 1 {
		t.Errorf("%d rows are left, want the corrupt one", n)
	}
	if j = open(t, path, &fake{down: true}, nil); j.Depth() != 0 {
		t.Error("what was set aside waits again")
	}
}

// As after an upgrade that was taken back.
func TestAnEntryOfANewerVersionIsKeptForIt(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j.db")
	j := open(t, path, &fake{down: true}, nil)
	add(t, j, entry("s", "1"), entry("s", "2"), entry("t", "3"))
	_ = j.Close()
	change := func(query string) {
		t.Helper()
		db := raw(t, path)
		defer db.Close()
		if _, err := db.Exec(query); err != nil {
			t.Fatal(err)
		}
	}
	change(`UPDATE entries SET record = CAST(x'0003' || substr(record, 3) AS BLOB) WHERE id = 1`)
	s, c := &fake{}, &clock{now: time.Now()}
	j = open(t, path, s, c)
	eventually(t, "the rest is replayed", func() bool { return s.saved() == "s/2 t/3" && j.Depth() == 1 })
	if err := j.Replay(t.Context(), store.Scope{Tenant: "acme"}, "s"); err != nil {
		t.Errorf("who reads the session: %v", err)
	}
	c.pass(30 * 24 * time.Hour)
	n := s.tried()
	add(t, j, entry("s", "4"))
	eventually(t, "what comes behind it is replayed", func() bool { return s.tried() > n && j.Depth() == 1 })
	if c.told("set_aside 0") || c.told("set_aside 1") || c.told("set_aside 2") || !c.told("newer 1") && !c.told("newer 2") && !c.told("newer 3") {
		t.Errorf("told: %q", c.events)
	}
	_ = j.Close()
	change(`UPDATE entries SET record = CAST(x'0002' || substr(record, 3) AS BLOB), added = added + 30 * 24 * 3600 * 1000`)
	s = &fake{}
	j = open(t, path, s, c)
	eventually(t, "the newer version replays it", func() bool { return s.saved() == "s/1" && j.Depth() == 0 })
}

// The file was written by the version before records had a form of their own, which
// was stopped while its store was down.
func TestAJournalOfAnOlderVersionIsReplayed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j.db")
	b, err := os.ReadFile("testdata/journal-1.db")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	written := time.Date(2026, 11, 22, 8, 0, 0, 0, time.UTC)
	s, c := &fake{down: true}, &clock{now: written.Add(time.Hour)}
	j := open(t, path, s, c)
	if j.Depth() != 3 || !j.Holds(store.Scope{Tenant: "acme"}, "s") {
		t.Errorf("%d wait, want 3", j.Depth())
	}
	add(t, j, entry("s", "new"))
	s.set(func() { s.down = false })
	eventually(t, "all is replayed", func() bool { return j.Depth() == 0 })
	got := strings.Fields(s.saved())
	slices.Sort(got)
	if want := []string{"s/e1", "s/e2", "s/new", "t/e3"}; !slices.Equal(got, want) {
		t.Errorf("the store has %q, want %q", got, want)
	}
	if all := without(s.saved(), "t/e3"); all != "s/e1 s/e2 s/new" {
		t.Errorf("the session's order is %q", all)
	}
	if c.told("set_aside 0") {
		t.Errorf("told: %q", c.events)
	}
}

func TestWhatIsOlderThanTheStoresMemoryOfDeletionsIsSetAside(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j.db")
	c := &clock{now: time.Now()}
	j := open(t, path, &fake{down: true}, c)
	add(t, j, entry("s", "1"))
	_ = j.Close()
	c.pass(30 * 24 * time.Hour)
	s := new(fake)
	open(t, path, s, c)
	eventually(t, "it is set aside", func() bool { return c.told("set_aside 0") })
	if got := s.saved(); got != "" {
		t.Errorf("the store was given %q", got)
	}
}

func TestAFileOfSomethingElseIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "other.db")
	db := raw(t, path)
	if _, err := db.Exec(`CREATE TABLE sessions (id)`); err != nil {
		t.Fatal(err)
	}
	_ = db.Close()
	if _, err := journal.Open(t.Context(), path, &fake{}, journal.Options{}); err == nil || !strings.Contains(err.Error(), "name another file") {
		t.Errorf("%v", err)
	}
}

// raw opens the file as SQLite does.
func raw(t *testing.T, path string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(10000)")
	if err != nil {
		t.Fatal(err)
	}
	return db
}

// rows is how many entries the file has.
func rows(t *testing.T, path string) (n int) {
	t.Helper()
	db := raw(t, path)
	defer db.Close()
	if err := db.QueryRow(`SELECT count(*) FROM entries`).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}
