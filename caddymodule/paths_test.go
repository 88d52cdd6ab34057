package caddymodule_test

import (
	"net/http"
	"strings"
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

func TestOneSlashTooManyIsForgiven(t *testing.T) {
	upstream := newFake(t)
	var asked []string
	upstream.other = func(_ http.ResponseWriter, r *http.Request) { asked = append(asked, r.Method+" "+r.URL.Path) }
	s := start(t, options{upstream: upstream.URL})
	s.ok(s.post(acme, "/chat/completions/", chatBody("I am Ada", `"sessionId":"s"`)))
	if got := upstream.last(t).path; got != "/v1/chat/completions" {
		t.Errorf("the router was asked for %s", got)
	}
	if r := s.ok(s.post(acme, "/chat/completions/preview/", chatBody("who am I?", `"sessionId":"s"`))); r.get("messages.#").Int() != 3 || upstream.count() != 1 {
		t.Errorf("preview %s", r.body)
	}
	s.chat(acme, "hi", `"sessionId":"a/"`)
	file := s.ok(s.upload(acme, "a.md", "The library opens at nine.")).get("id").Str
	for path, object := range map[string]string{
		"/files/": "list", "/files/" + file + "/": "file", "/usage/": "usage",
		"/sessions/": "list", "/sessions/s/": "session", "/sessions/s/messages/": "list",
		"/sessions/a%2F": "session", "/sessions/a%2F/": "session", "/sessions/a%2F/messages/?order=asc": "list",
	} {
		if r := s.ok(s.get(acme, path)); r.get("object").Str != object {
			t.Errorf("%s: %s", path, r.body)
		}
	}
	s.ok(s.get(acme, "/files/"+file+"/content/"))
	s.ok(s.post(acme, "/files/search/", `{"query":"library"}`))
	s.ok(s.post(acme, "/sessions/s/messages/", `{"messages":[{"role":"user","content":"hi"}]}`))

	// What isn't ours is the router's to judge.
	asked = nil
	for _, path := range []string{"/models/", "/chat/completions/"} {
		s.ok(s.get(acme, path))
	}
	if len(asked) != 2 || asked[0] != "GET /v1/models/" || asked[1] != "GET /v1/chat/completions/" {
		t.Errorf("the router was asked for %q", asked)
	}
}

func TestAMethodThatAPathLacksIsNamed(t *testing.T) {
	upstream := newFake(t)
	s := start(t, options{upstream: upstream.URL})
	s.chat(acme, "hi", `"sessionId":"s"`)
	for path, methods := range map[string]string{
		"/files": "GET, HEAD, POST", "/files/search": "DELETE, GET, HEAD, POST", "/files/x": "DELETE, GET, HEAD",
		"/files/x/content": "GET, HEAD", "/files/x/reindex": "POST",
		"/sessions": "GET, HEAD", "/sessions/s": "DELETE, GET, HEAD", "/sessions/s/messages": "GET, HEAD, POST",
		"/sessions/none/messages/": "GET, HEAD, POST", "/usage": "GET, HEAD",
	} {
		r := s.do(s.request("PATCH", path, acme, nil))
		if r.status != http.StatusMethodNotAllowed || r.header.Get("Allow") != methods ||
			r.get("error.message").Str != "Not allowed to PATCH on "+strings.TrimSuffix(path, "/")+"." {
			t.Errorf("PATCH %s: status %d, Allow %q: %s", path, r.status, r.header.Get("Allow"), r.body)
		}
	}
	for _, path := range []string{"/files/x/y", "/files/x/content/y", "/sessions/s/nothing", "/sessions/s/messages/1"} {
		if r := s.do(s.request("PATCH", path, acme, nil)); r.status != http.StatusNotFound || r.get("error.message").Str != "Unknown request URL: PATCH "+path+"." {
			t.Errorf("PATCH %s: status %d: %s", path, r.status, r.body)
		}
	}
	// The router has other methods of the paths that we share with it.
	upstream.replyWith(func(w http.ResponseWriter, r *http.Request, _ string) { w.Header().Set("X-Method", r.Method) })
	if r := s.ok(s.get(acme, "/chat/completions?limit=1")); r.header.Get("X-Method") != "GET" || upstream.last(t).body != "" {
		t.Errorf("headers %v", r.header)
	}
}
