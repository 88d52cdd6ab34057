package gateway_test

import (
	"database/sql"
	"net/http"
	"path/filepath"
	"testing"
)

// The journal's file is full, which a trigger plays.
func TestNothingIsPaidForThatNeitherTheStoreNorTheJournalTakes(t *testing.T) {
	t.Parallel()
	upstream, db := newFake(t), newFlaky(t)
	path := filepath.Join(t.TempDir(), "journal.db")
	s := start(t, options{upstream: upstream.URL, store: db.open, journal: path})
	file, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(10000)")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	change := func(query string) {
		t.Helper()
		if _, err := file.Exec(query); err != nil {
			t.Fatal(err)
		}
	}
	ready := func() int {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.root+"/readyz", nil)
		if err != nil {
			t.Fatal(err)
		}
		return s.do(r).status
	}
	db.failAppend.Store(true)
	change(`CREATE TRIGGER full BEFORE INSERT ON entries BEGIN SELECT raise(FAIL, 'full'); END`)
	if r := s.chat(acme, "one", `"sessionId":"s"`); r.get("_metadata.memory.saved").Raw != "false" {
		t.Errorf("the first one finds out, and is told: %s", r.body)
	}
	asked := upstream.count()
	for range 10 {
		if r := s.post(acme, "/chat/completions", chatBody("two", `"sessionId":"s"`)); r.status != http.StatusServiceUnavailable || r.header.Get("Retry-After") == "" {
			t.Errorf("status %d: %s", r.status, r.body)
		}
	}
	if upstream.count() != asked {
		t.Error("the model was called for what would be lost")
	}
	s.chat(acme, "nothing to keep", "")
	if got := ready(); got != http.StatusServiceUnavailable {
		t.Errorf("it is ready: %d", got)
	}

	change(`DROP TRIGGER full`)
	notTold(t, s.chat(acme, "three", `"sessionId":"t"`))
	if got := ready(); got != http.StatusOK {
		t.Errorf("the journal takes exchanges, and it isn't ready: %d", got)
	}
}

// The store is back, and the journal's disk is still full.
func TestAStoreThatIsBackEndsTheLosses(t *testing.T) {
	t.Parallel()
	upstream, db := newFake(t), newFlaky(t)
	path := filepath.Join(t.TempDir(), "journal.db")
	s := start(t, options{upstream: upstream.URL, store: db.open, journal: path})
	file, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(10000)")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := file.Exec(`CREATE TRIGGER full BEFORE INSERT ON entries BEGIN SELECT raise(FAIL, 'full'); END`); err != nil {
		t.Fatal(err)
	}
	db.failAppend.Store(true)
	s.chat(acme, "one", `"sessionId":"s"`)
	db.failAppend.Store(false)
	eventually(t, "one is let through, and kept", func() bool {
		return s.post(acme, "/chat/completions", chatBody("two", `"sessionId":"s"`)).status == http.StatusOK
	})
	notTold(t, s.chat(acme, "three", `"sessionId":"s"`))
}
