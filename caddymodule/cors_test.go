package caddymodule_test

import (
	"net/http"
	"testing"
)

func TestCaddysOwnErrorsCanBeReadByABrowserApp(t *testing.T) {
	const app = "https://app.example"
	s := start(t, options{upstream: newFake(t).URL, app: "cors " + app, site: "handle /api/v2/* {\nerror 503\n}"})
	r := s.do(s.request("GET", "/../v2/x", acme, nil, "Origin", app))
	if r.status != http.StatusServiceUnavailable || r.get("error.type").Str != "server_error" {
		t.Errorf("status %d: %s", r.status, r.body)
	}
	if got := r.header.Values("Access-Control-Allow-Origin"); len(got) != 1 || got[0] != app {
		t.Errorf("allowed %q", got)
	}
	if r.header.Get("Access-Control-Expose-Headers") == "" || r.header.Get("Access-Control-Allow-Credentials") != "" {
		t.Errorf("headers %v", r.header)
	}
}
