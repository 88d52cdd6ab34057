package caddymodule_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/tidwall/gjson"
)

// files runs `backstory files` as a tenant, in a folder; env are more variables.
func (s *site) files(dir string, env []string, args ...string) (out, errOut string, status int) {
	s.t.Helper()
	cmd := exec.CommandContext(s.t.Context(), os.Args[0], append([]string{"files"}, args...)...)
	cmd.Dir = dir
	cmd.Env = append(append(os.Environ(), childCommand+"=1", "BACKSTORY_URL="+s.url+"/", "SERVICE_KEY="+acme, "ROUTER_API_KEY="+router), env...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		s.t.Fatal(err)
	}
	return stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()
}

func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestFilesFromTheCommandLine(t *testing.T) {
	s := start(t, options{upstream: newFake(t).URL, app: "max_file 4KB"})
	dir := t.TempDir()
	write(t, dir, map[string]string{
		"policy.md": policy, "docs/a.txt": "The harbour was built by the Romans.", "docs/deep/b.txt": "Rice is cooked in water.",
		"docs/.git/config": "hidden", "docs/.hidden": "hidden",
		"bad/binary.bin": "a\x00b\x01\xff", "bad/empty.txt": "", "bad/good.md": "Good.", "bad/large.txt": strings.Repeat("word ", 2000),
	})
	if _, told, status := s.files(dir, nil, "add", "policy.md", "docs"); status != 0 || !strings.Contains(told, "3 files added") {
		t.Fatalf("status %d: %s", status, told)
	}
	if _, told, status := s.files(dir, nil, "add", "policy.md", "docs"); status != 0 || !strings.Contains(told, "0 files added, 3 already there") {
		t.Errorf("again: status %d: %s", status, told)
	}
	_, told, status := s.files(dir, nil, "add", "bad")
	for _, want := range []string{"bad/binary.bin: ", "bad/empty.txt: ", "bad/large.txt: ", "1 file added, 3 failed"} {
		if status != 1 || !strings.Contains(told, want) {
			t.Errorf("status %d, no %q in\n%s", status, want, told)
		}
	}
	if strings.Contains(told, "good.md: ") || strings.Contains(told, "usage") {
		t.Errorf("told\n%s", told)
	}
	if _, told, status := s.files(dir, nil, "add", "missing.md"); status != 1 || !strings.Contains(told, "missing.md") {
		t.Errorf("a file that isn't there: status %d: %s", status, told)
	}

	out, _, status := s.files(dir, nil, "list")
	if lines := strings.Split(strings.TrimSpace(out), "\n"); status != 0 || len(lines) != 5 || !strings.Contains(out, "policy.md") || !strings.Contains(out, "processed") {
		t.Errorf("status %d:\n%s", status, out)
	}
	if out, _, _ := s.files(dir, nil, "list", "--json"); gjson.Get(out, "data.#").Int() != 4 {
		t.Errorf("got %s", out)
	}
	out, _, status = s.files(dir, nil, "search", "how long is", "the refund window?")
	if status != 0 || !strings.HasPrefix(out, "1. policy.md, Refunds (") || !strings.Contains(out, "30 days") {
		t.Errorf("status %d:\n%s", status, out)
	}
	if out, _, _ := s.files(dir, nil, "search", "--json", "--limit", "1", "refund"); gjson.Get(out, "data.#").Int() != 1 {
		t.Errorf("got %s", out)
	}
	id := gjson.Get(s.get(acme, "/files").body, `data.#(filename=="a.txt").id`).Str
	if out, told, status := s.files(dir, nil, "rm", "policy.md", id, "nothing.md"); status != 1 || strings.Count(out, "removed") != 2 || !strings.Contains(told, "nothing.md: ") {
		t.Errorf("status %d: %s%s", status, out, told)
	}
	if n := s.get(acme, "/files").get("data.#").Int(); n != 2 {
		t.Errorf("%d files are left", n)
	}
	if _, told, status := s.files(dir, nil, "reindex"); status != 0 || !strings.Contains(told, "0 files re-embedded, 0 chunks; 2 already up to date") {
		t.Errorf("status %d: %s", status, told)
	}
	for name, c := range map[string]struct{ env, want string }{
		"a wrong key":       {"SERVICE_KEY=wrong", "ncorrect"},
		"no key":            {"SERVICE_KEY=", "SERVICE_KEY"},
		"no router key":     {"ROUTER_API_KEY=", "ROUTER_API_KEY is not set"},
		"nobody there":      {"BACKSTORY_URL=http://127.0.0.1:1/api/v1", "nothing answers at http://127.0.0.1:1/api/v1"},
		"another address":   {"BACKSTORY_URL=" + s.root, "Is BACKSTORY_URL correct?"},
		"not an address":    {"BACKSTORY_URL=::", "missing protocol"},
		"a key in a header": {"SERVICE_KEY=a\nb", "header"},
	} {
		if _, told, status := s.files(dir, []string{c.env}, "add", "docs"); status != 1 || !strings.Contains(told, c.want) || strings.Contains(told, router) {
			t.Errorf("%s: status %d: %s", name, status, told)
		}
	}
}

// What takes long is waited for, and what comes too fast, too.
func TestFilesCommandsWait(t *testing.T) {
	var mu sync.Mutex
	asked := map[string]int{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		content, err := io.ReadAll(r.Body)
		if err != nil || r.ContentLength < 0 && r.Method == http.MethodPost {
			t.Errorf("%s %s: a body of %d bytes, %v", r.Method, r.URL.Path, r.ContentLength, err)
		}
		id := "file-slow"
		if strings.Contains(string(content), "broken.md") || strings.HasSuffix(r.URL.Path, "file-broken") {
			id = "file-broken"
		}
		mu.Lock()
		asked[r.Method+" "+r.URL.Path+" "+id]++
		n := asked[r.Method+" "+r.URL.Path+" "+id]
		mu.Unlock()
		switch {
		case n == 1:
			w.Header().Set("Retry-After", "0")
			status := http.StatusTooManyRequests
			if r.Method == http.MethodPost && id == "file-slow" { // there is too much to do
				status = http.StatusServiceUnavailable
			}
			w.WriteHeader(status)
			fmt.Fprint(w, `{"error":{"message":"Please try again.","code":null}}`)
		case r.URL.Path == "/files" && r.Method == http.MethodGet:
			fmt.Fprint(w, `{"data":[],"has_more":false}`)
		case r.Method == http.MethodPost || n == 2:
			fmt.Fprintf(w, `{"id":%q,"status":"uploaded"}`, id)
		case id == "file-broken":
			fmt.Fprint(w, `{"id":"file-broken","status":"error","status_details":"No more credit."}`)
		default:
			fmt.Fprint(w, `{"id":"file-slow","status":"processed"}`)
		}
	}))
	defer server.Close()
	s := &site{t: t, url: server.URL}
	dir := t.TempDir()
	write(t, dir, map[string]string{"slow.md": "x", "broken.md": "y"})
	_, told, status := s.files(dir, nil, "add", "slow.md", "broken.md")
	if status != 1 || !strings.Contains(told, "1 file added, 1 failed") || !strings.Contains(told, "broken.md: it could not be indexed. No more credit.") {
		t.Errorf("status %d: %s", status, told)
	}
}

// A store that is full, or isn't there, isn't waited for.
func TestFilesCommandsSayThatTheStoreFails(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "5")
		w.WriteHeader(http.StatusServiceUnavailable)
		fmt.Fprint(w, `{"error":{"message":"The memory store is full.","code":"store_full"}}`)
	}))
	defer server.Close()
	s := &site{t: t, url: server.URL}
	if _, told, status := s.files(t.TempDir(), nil, "list"); status != 1 || !strings.Contains(told, "The memory store is full.") {
		t.Errorf("status %d: %s", status, told)
	}
}

// The operator's key in place of the router's is enough.
func TestFilesWithTheOperatorsRouterKey(t *testing.T) {
	t.Setenv("BACKSTORY_TEST_ROUTER_KEY", operators)
	upstream := newFake(t)
	upstream.other = new(embeddings).ServeHTTP
	o := options{
		upstream: upstream.URL, store: "sqlite " + t.TempDir() + "/backstory.db",
		app: "router_key {env.BACKSTORY_TEST_ROUTER_KEY}",
	}
	s := start(t, o)
	dir := t.TempDir()
	write(t, dir, map[string]string{"a.md": strings.Repeat("A customer is refunded within ten days of the return. ", 100), "b.md": "abba dada cafe"})
	alone := []string{"ROUTER_API_KEY="}
	if _, told, status := s.files(dir, alone, "add", "a.md", "b.md"); status != 0 {
		t.Fatalf("status %d: %s", status, told)
	}
	o.app += "\nembedder router some/model 8"
	s.load(o)
	_, told, status := s.files(dir, alone, "reindex")
	if status != 0 || !strings.Contains(told, "2 files re-embedded, ") {
		t.Errorf("status %d: %s", status, told)
	}
	if n := s.ok(s.post(acme, "/files/search", `{"query":"zzabbazz"}`)).get("data.#").Int(); n == 0 {
		t.Error("they aren't found by vectors")
	}
	if log := s.logged(); strings.Contains(log, operators) || strings.Contains(log, acme) {
		t.Error("a key stands in the log")
	}
}

const operators = "sk-of-the-operator"
