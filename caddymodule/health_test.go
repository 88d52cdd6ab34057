package caddymodule_test

import (
	"net/http"
	"testing"

	"github.com/tidwall/gjson"
)

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
