package caddymodule_test

import (
	"cmp"
	"crypto/tls"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/tidwall/gjson"
)

// childConfig names the environment variable with the path of a Caddyfile that
// this binary, run again, serves as the real program would.
const childConfig = "BACKSTORY_TEST_CADDYFILE"

func serveChild() bool {
	config := os.Getenv(childConfig)
	if config == "" {
		return false
	}
	os.Args = []string{"backstory", "run", "--adapter", "caddyfile", "--config", config}
	caddycmd.Main()
	return true
}

// startProcess runs Backstory in a process of its own, which a test can kill.
// store is the store directive's arguments.
func startProcess(t *testing.T, upstream, store string) (*site, *exec.Cmd) {
	t.Helper()
	return startProcessWith(t, processOptions{upstream: upstream, store: store, admin: "off", address: freeAddress(t)})
}

// processOptions are what a process's Caddyfile is made of.
type processOptions struct {
	upstream, store string
	admin, address  string
	app             string // more options of the app
	scheme          string // default: http
	global, site    string // more global options, more directives of the site
	trusts          *tls.Config
}

func (o processOptions) caddyfile() string {
	return fmt.Sprintf(`{
		admin %s
		persist_config off
		grace_period 100ms
		backstory {
			store %s
			key %s acme enterprise
			key %s tiny free
			%s
		}
		%s
	}
	%s {
		%s
		backstory_health
		handle_path /api/v1/* {
			route {
				backstory
				rewrite * /v1{uri}
				reverse_proxy %s
			}
		}
	}`, o.admin, o.store, acme, tiny, o.app, o.global, o.root(), o.site, o.upstream)
}

func (o processOptions) root() string { return cmp.Or(o.scheme, "http") + "://" + o.address }

func startProcessWith(t *testing.T, o processOptions) (*site, *exec.Cmd) {
	t.Helper()
	o.app = withJournal(t, o.store, o.app)
	config := filepath.Join(t.TempDir(), "Caddyfile")
	if err := os.WriteFile(config, []byte(o.caddyfile()), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childConfig+"="+config)
	stderr, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
	if err != nil {
		t.Fatal(err)
	}
	defer stderr.Close()
	cmd.Stderr = stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		if t.Failed() {
			t.Logf("the process said:\n%s", complaints(stderr.Name()))
		}
	})
	s := &site{t: t, root: o.root(), url: o.root() + "/api/v1"}
	probe := http.Client{Transport: &http.Transport{TLSClientConfig: o.trusts}}
	defer probe.CloseIdleConnections()
	eventually(t, "the process answers", func() bool {
		res, err := probe.Get(s.root + "/readyz")
		if err != nil {
			return false
		}
		_ = res.Body.Close()
		return res.StatusCode == http.StatusOK
	})
	return s, cmd
}

// complaints are the warnings and errors in a log, and what isn't Caddy's.
func complaints(path string) string {
	b, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	var lines []string
	for line := range strings.Lines(string(b)) {
		if level := gjson.Get(line, "level").Str; level != "info" && level != "debug" {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "")
}

func TestWhatWasDeliveredSurvivesAShutdown(t *testing.T) {
	upstream := newFake(t)
	upstream.replyWith(func(w http.ResponseWriter, r *http.Request, _ string) {
		writeEvents(w, delta("Once upon"), delta(" a time"))
		<-r.Context().Done()
	})
	database := "sqlite " + filepath.Join(t.TempDir(), "b.db")
	s, process := startProcess(t, upstream.URL, database)
	e := s.stream(acme, "tell", `"sessionId":"s"`)
	e.until("a time")
	if err := process.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	_ = process.Wait() // by now everything that will be saved is saved

	upstream.replyWith(nil)
	s, _ = startProcess(t, upstream.URL, database)
	s.chat(acme, "go on", `"sessionId":"s"`)
	if want := "user: tell\nassistant: Once upon a time\nuser: go on\n"; upstream.last(t).said() != want {
		t.Errorf("the router got\n%s", upstream.last(t).said())
	}
}

func TestAClientThatTakesNothingDoesNotHoldUpAShutdown(t *testing.T) {
	upstream := newFake(t)
	upstream.replyWith(func(w http.ResponseWriter, r *http.Request, _ string) {
		word := delta(strings.Repeat("word ", 1000))
		for r.Context().Err() == nil {
			writeEvents(w, word)
		}
	})
	s, process := startProcess(t, upstream.URL, "sqlite "+filepath.Join(t.TempDir(), "b.db"))
	e := s.stream(acme, "talk", `"sessionId":"s"`)
	e.next()
	if err := process.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	_ = process.Wait() // a test that hangs here has failed
}

func TestWhatTheClientSawTheEndOfSurvivesAKill(t *testing.T) {
	upstream := newFake(t)
	database := "sqlite " + filepath.Join(t.TempDir(), "b.db")
	s, process := startProcess(t, upstream.URL, database)
	s.chat(acme, "plain", `"sessionId":"s"`)
	hang := make(chan struct{})
	defer close(hang)
	upstream.replyWith(func(w http.ResponseWriter, _ *http.Request, _ string) {
		writeEvents(w, delta("streamed"), finished, done)
		<-hang
	})
	e := s.stream(acme, "stream", `"sessionId":"s"`)
	e.until("[DONE]")
	if err := process.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = process.Wait()

	upstream.replyWith(nil)
	s, _ = startProcess(t, upstream.URL, database)
	s.chat(acme, "next", `"sessionId":"s"`)
	want := "user: plain\nassistant: ok\nuser: stream\nassistant: streamed\nuser: next\n"
	if got := upstream.last(t).said(); got != want {
		t.Errorf("the router got\n%s", got)
	}
}
