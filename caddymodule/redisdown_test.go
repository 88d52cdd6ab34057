package caddymodule_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"

	"github.com/backstory-proxy/backstory/internal/redistest"
)

// refused fails unless a reply is the store's refusal.
func refused(t *testing.T, r reply) {
	t.Helper()
	if r.status != http.StatusServiceUnavailable || r.header.Get("Retry-After") == "" || r.get("error.code").Str != "store_unavailable" {
		t.Errorf("status %d, Retry-After %q: %s", r.status, r.header.Get("Retry-After"), r.body)
	}
}

func TestAProxyThatIsStartedBeforeRedisComesUpWithIt(t *testing.T) {
	upstream := newFake(t)
	server := redistest.Start(t)
	server.Kill()
	s := start(t, options{upstream: upstream.URL, store: "redis " + server.URL + " {\nfiles off\n}"})
	ready := func() reply {
		r, _ := http.NewRequestWithContext(t.Context(), "GET", s.root+"/readyz", nil)
		return s.do(r)
	}
	refused(t, s.post(acme, "/chat/completions", chatBody("hi", `"sessionId":"s"`)))
	refused(t, s.get(acme, "/sessions"))
	if r := ready(); !strings.Contains(r.body, "has not been there since this proxy was started") {
		t.Errorf("/readyz: %s", r.body)
	} else {
		refused(t, r)
	}
	if upstream.count() != 0 {
		t.Error("the model was called")
	}
	if !strings.Contains(s.logged(), "Redis can't be used yet") || !strings.Contains(s.logged(), "is Redis running there?") {
		t.Error("the log doesn't say why")
	}
	server.Restart()
	eventually(t, "the proxy is ready", func() bool { return ready().status == http.StatusOK })
	s.chat(acme, "hi", `"sessionId":"s"`)
}

func TestTheFirstKeyIsMadeWhenRedisIsThere(t *testing.T) {
	server := redistest.Start(t)
	server.Kill()
	t.Setenv("XDG_DATA_HOME", t.TempDir())
	s := start(t, options{upstream: "127.0.0.1:1", store: "redis " + server.URL + " {\nfiles off\n}", keys: "bare_models"})
	server.Restart()
	eventually(t, "there is a key that is good", func() bool {
		files, _ := filepath.Glob(filepath.Join(caddy.AppDataDir(), "backstory", "service-key-*"))
		if len(files) != 1 {
			return false
		}
		key, _ := os.ReadFile(files[0])
		return s.get(strings.TrimSpace(string(key)), "/sessions").status == http.StatusOK
	})
}

// A reload is refused that would put a Redis which isn't there in the place of a
// store that is.
func TestAReloadToARedisThatIsDownIsRefused(t *testing.T) {
	upstream := newFake(t)
	server := redistest.Start(t)
	s := start(t, options{upstream: upstream.URL})
	s.chat(acme, "hi", `"sessionId":"s"`)
	server.Kill()
	adapter := caddyfile.Adapter{ServerType: httpcaddyfile.ServerType{}}
	adapted, _, err := adapter.Adapt([]byte("{\nadmin off\npersist_config off\nbackstory {\nstore redis "+server.URL+" {\nfiles off\n}\nkey "+acme+" acme enterprise\njournal off\n}\n}\nhttp://127.0.0.1:0 {\nbackstory\n}\n"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := caddy.Load(adapted, true); err == nil || !strings.Contains(err.Error(), "is Redis running there?") {
		t.Errorf("got %v", err)
	}
	s.chat(acme, "hi again", `"sessionId":"s"`)
}

func TestARedisThatHangsCostsOneRequestASecond(t *testing.T) {
	upstream := newFake(t)
	server := redistest.Start(t)
	s := start(t, options{upstream: upstream.URL, store: "redis " + server.URL + " {\nfiles off\n}"})
	s.chat(acme, "one", `"sessionId":"s"`)
	server.Freeze()
	asked := upstream.count()
	for range 200 { // at a second each, the test would be killed
		refused(t, s.post(acme, "/chat/completions", chatBody("two", `"sessionId":"s"`)))
	}
	if upstream.count() != asked {
		t.Error("the model was called")
	}
	server.Thaw()
	eventually(t, "it answers again", func() bool {
		return s.post(acme, "/chat/completions", chatBody("two", `"sessionId":"s"`)).status == http.StatusOK
	})
	if log := s.logged(); strings.Count(log, "Redis has stopped answering") != 1 || strings.Count(log, "Redis answers again") != 1 {
		t.Error("the log doesn't say once that Redis hung, and that it answers again")
	}
}
