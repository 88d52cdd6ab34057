package caddymodule_test

import (
	"net/http"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/tidwall/gjson"
)

var failPing, failSearch atomic.Bool

func TestReadinessTellsOfStoreIndexAndRouter(t *testing.T) {
	upstream := newFake(t)
	s := start(t, options{upstream: upstream.URL, store: "flaky " + filepath.Join(t.TempDir(), "b.db")})
	ready := func() reply {
		r, _ := http.NewRequestWithContext(t.Context(), "GET", s.root+"/readyz", nil)
		return s.do(r)
	}
	is := func(status int, body string) func() bool {
		return func() bool { r := ready(); return r.status == status && r.body == body+"\n" }
	}
	state := func(index, router string) string {
		return `{"status":"ok","store":"ok","index":"` + index + `","router":"` + router + `"}`
	}
	if r := ready(); r.status != http.StatusOK || r.body != state("ok", "unknown")+"\n" {
		t.Errorf("at first: status %d: %s", r.status, r.body)
	}
	s.chat(acme, "hi", "")
	eventually(t, "the router is said to be there", is(200, state("ok", "ok")))
	s.get(acme, "/models") // 404: an answer, too
	failSearch.Store(true)
	eventually(t, "the index is said to fail, which doesn't take the proxy out", is(200, state("failing", "ok")))
	failSearch.Store(false)
	upstream.Close()
	s.post(acme, "/chat/completions", chatBody("hi", ""))
	eventually(t, "the router is said to be gone, which doesn't take the proxy out", is(200, state("ok", "unreachable")))
	failPing.Store(true)
	eventually(t, "a store that doesn't answer takes the proxy out", func() bool {
		r := ready()
		return r.status == http.StatusServiceUnavailable && r.get("error.type").Str == "server_error"
	})
	failPing.Store(false)
	eventually(t, "it comes back", is(200, state("ok", "unreachable")))
}

func TestHealthAndErrorsOfTheSite(t *testing.T) {
	upstream := newFake(t)
	s := start(t, options{upstream: upstream.URL})
	for path, status := range map[string]int{"/healthz": 200, "/readyz": 200, "/nowhere": 404} {
		req, _ := http.NewRequestWithContext(t.Context(), "GET", s.root+path, nil)
		r := s.do(req)
		if r.status != status || !gjson.Valid(r.body) {
			t.Errorf("%s: status %d: %s", path, r.status, r.body)
		}
		if status == 404 && r.get("error.type").Str != "invalid_request_error" {
			t.Errorf("%s: %s", path, r.body)
		}
	}
}
