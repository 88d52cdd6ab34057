package gateway_test

import (
	"net/http"
	"os"
	"path/filepath"
	"testing"
)

func TestADatabaseThatIsTakenAwayIsNoticed(t *testing.T) {
	t.Parallel()
	upstream := newFake(t)
	path := filepath.Join(t.TempDir(), "b.db")
	s := start(t, options{upstream: upstream.URL, store: database(path)})
	s.chat(acme, "one", `"sessionId":"s"`)
	if err := os.Rename(path, path+".bak"); err != nil {
		t.Fatal(err)
	}
	if r := s.post(acme, "/chat/completions", chatBody("two", `"sessionId":"s"`)); r.status == http.StatusOK && r.get("_metadata.memory.saved").Raw != "false" {
		t.Errorf("what went into a file that nobody finds is said to be saved: %s", r.body)
	}
	asked := upstream.count()
	if r := s.post(acme, "/chat/completions", chatBody("two", `"sessionId":"s"`)); r.status != http.StatusServiceUnavailable || upstream.count() != asked {
		t.Errorf("status %d, and the model was called %d times: %s", r.status, upstream.count()-asked, r.body)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.root+"/readyz", nil)
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "it is not ready", func() bool { return s.do(r).status == http.StatusServiceUnavailable })
	if err := os.Rename(path+".bak", path); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it is ready again", func() bool { return s.do(r).status == http.StatusOK })
	s.chat(acme, "three", `"sessionId":"s"`)
}
