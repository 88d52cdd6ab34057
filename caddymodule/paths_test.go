package caddymodule_test

import (
	"net/http"
	"testing"
)

func TestHeadWorksWhereGetDoes(t *testing.T) {
	s := start(t, options{upstream: newFake(t).URL})
	s.chat(acme, "hi", `"sessionId":"s"`)
	file := s.ok(s.upload(acme, "a.md", "The library opens at nine.")).get("id").Str
	for _, path := range []string{
		"/files", "/files/" + file, "/files/" + file + "/content", "/files/none",
		"/sessions", "/sessions/s", "/sessions/s/messages", "/sessions/none", "/sessions/none/messages", "/usage",
	} {
		get, head := s.get(acme, path), s.do(s.request("HEAD", path, acme, nil))
		if head.status != get.status || head.body != "" {
			t.Errorf("HEAD %s: status %d, GET %d; body %q", path, head.status, get.status, head.body)
		}
		for _, name := range []string{"Content-Type", "Content-Length"} {
			if got, want := head.header.Get(name), get.header.Get(name); got != want {
				t.Errorf("HEAD %s: %s %q, GET %q", path, name, got, want)
			}
		}
		if head.header.Get("x-request-id") == "" || head.header.Get("x-ratelimit-limit-requests") != "1000" {
			t.Errorf("HEAD %s: headers %v", path, head.header)
		}
	}
	lines := s.do(s.request("HEAD", "/sessions/s/messages", acme, nil, "Accept", "application/jsonl"))
	if lines.status != http.StatusOK || lines.body != "" || lines.header.Get("Content-Type") != "application/jsonl" {
		t.Errorf("HEAD of an export: status %d, %v", lines.status, lines.header)
	}
	if r := s.do(s.request("HEAD", "/files/"+file+"/reindex", acme, nil)); r.status != http.StatusMethodNotAllowed {
		t.Errorf("HEAD where there is no GET: status %d", r.status)
	}
}
