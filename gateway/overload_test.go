package gateway_test

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestNothingIsLetInForWhichTheStoreHasNoTime(t *testing.T) {
	t.Parallel()
	upstream := newFake(t)
	db := newFlaky(t)
	s := start(t, options{upstream: upstream.URL, store: db.open})
	s.chat(acme, "hi", `"sessionId":"s"`)
	called := upstream.count()
	db.backlog.Store(int64(2 * time.Second))
	for path, body := range map[string]string{
		"/chat/completions": chatBody("my secret", `"sessionId":"s"`), "/chat/completions/preview": chatBody("hi", ""),
		"/sessions/s/messages": `{"messages":[{"role":"user","content":"hi"}]}`, "/embeddings": `{}`,
	} {
		r := s.post(acme, path, body)
		if r.status != http.StatusServiceUnavailable || r.header.Get("Retry-After") == "" || r.get("error.type").Str != "server_error" {
			t.Errorf("%s: status %d, Retry-After %q: %s", path, r.status, r.header.Get("Retry-After"), r.body)
		}
		if left := r.header.Get("X-Ratelimit-Remaining-Requests"); left != "" {
			t.Errorf("%s counts against the rate: %s left", path, left)
		}
	}
	if n := upstream.count(); n != called {
		t.Errorf("the model was called %d times", n-called)
	}
	ready, _ := http.NewRequestWithContext(t.Context(), "GET", s.root+"/readyz", nil)
	if r := s.do(ready); r.status != http.StatusOK || r.get("load").Str != "busy" {
		t.Errorf("ready: status %d: %s", r.status, r.body)
	}
	if n := strings.Count(s.logged(), "requests are refused"); n != 1 {
		t.Errorf("the log says so %d times", n)
	}
	db.backlog.Store(0)
	if r := s.chat(acme, "hi", `"sessionId":"s"`); r.get("_metadata.memory.historyMessages").Int() != 2 {
		t.Errorf("afterwards: %s", r.body)
	}
}

func TestOneTenantsFloodDoesNotPushAnotherOut(t *testing.T) {
	t.Parallel()
	db := newFlaky(t)
	s := start(t, options{upstream: newFake(t).URL, store: db.open})
	for i := range 40 {
		s.chat(acme, fmt.Sprint(i), "")
	}
	s.chat(beta, "hi", "")
	db.backlog.Store(int64(300 * time.Millisecond))
	if r := s.post(acme, "/chat/completions", chatBody("hi", "")); r.status != http.StatusServiceUnavailable {
		t.Errorf("the one who floods: status %d: %s", r.status, r.body)
	}
	s.chat(beta, "hi", "")
}

// What the model was paid for isn't given up for a few seconds that the client
// would have waited.
func TestASaveIsGivenUpSoonOnlyWhereTheJournalTakesOver(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		journal  string
		from, to time.Duration
	}{{"", 5 * time.Second, 10 * time.Second}, {filepath.Join(t.TempDir(), "j.db"), time.Second, 2 * time.Second}} {
		db := newFlaky(t)
		s := start(t, options{upstream: newFake(t).URL, store: db.open, journal: c.journal})
		s.chat(acme, "hi", `"sessionId":"s"`)
		if took := time.Duration(db.saveTime.Load()); took < c.from || took > c.to {
			t.Errorf("with journal %q a save may take %v", c.journal, took)
		}
	}
}
