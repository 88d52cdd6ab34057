package caddymodule_test

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// limitFiles lets a process write no file beyond so many bytes, as a full disk
// does.
func limitFiles(t *testing.T, process *exec.Cmd, bytes uint64) {
	t.Helper()
	if err := unix.Prlimit(process.Process.Pid, unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: bytes, Max: unix.RLIM_INFINITY}, nil); err != nil {
		t.Fatal(err)
	}
}

func TestNothingIsPaidForThatTheDiskCanNotTake(t *testing.T) {
	upstream := newFake(t)
	path := filepath.Join(t.TempDir(), "b.db")
	s, process := startProcess(t, upstream.URL, "sqlite "+path)
	s.chat(acme, "one", `"sessionId":"s"`)
	s.chat(acme, "gone", `"sessionId":"other"`)
	ready := func() reply {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.root+"/readyz", nil)
		if err != nil {
			t.Fatal(err)
		}
		return s.do(r)
	}
	limitFiles(t, process, 1)
	eventually(t, "it is not ready, and says that the store is full", func() bool {
		s.post(acme, "/chat/completions", chatBody("two", `"sessionId":"s"`)) // the first one finds out
		r := ready()
		return r.status == http.StatusServiceUnavailable && strings.Contains(r.body, "full")
	})
	asked := upstream.count()
	if asked > 3 {
		t.Errorf("the model was called %d times, want the two before, and one that found out", asked)
	}
	for range 20 {
		r := s.post(acme, "/chat/completions", chatBody("two", `"sessionId":"s"`))
		if r.status != http.StatusServiceUnavailable || r.header.Get("Retry-After") == "" || !strings.Contains(r.body, "The model was not called") {
			t.Fatalf("status %d, %v: %s", r.status, r.header, r.body)
		}
	}
	if n := upstream.count(); n != asked {
		t.Errorf("the model was called %d times more", n-asked)
	}
	if got := s.stored("s"); got != "user: one\nassistant: ok\n" {
		t.Errorf("the session reads\n%s", got)
	}
	s.chat(acme, "nothing to keep", `"saveToMemory":false`)

	limitFiles(t, process, unix.RLIM_INFINITY)
	eventually(t, "it is ready again", func() bool { return ready().status == http.StatusOK })
	s.chat(acme, "three", `"sessionId":"s"`)
	if got := s.stored("s"); got != "user: one\nassistant: ok\nuser: three\nassistant: ok\n" {
		t.Errorf("the session holds\n%s", got)
	}
	if info, err := os.Stat(path + "-reserve"); err != nil || info.Size() == 0 {
		t.Errorf("it has no reserve: %v", err)
	}
}
