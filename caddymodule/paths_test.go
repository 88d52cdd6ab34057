package caddymodule_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
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

// raw sends a request whose path stands on the wire as it is here.
func (s *site) raw(method, path, key string) reply {
	s.t.Helper()
	r := s.request(method, "", key, nil)
	r.URL.Opaque = "//" + r.URL.Host + "/api/v1" + path
	return s.do(r)
}

func TestAnIDIsWhatThePathSaysEscaped(t *testing.T) {
	upstream := newFake(t)
	asked := 0
	upstream.other = func(http.ResponseWriter, *http.Request) { asked++ }
	s := start(t, options{upstream: upstream.URL})
	file := s.ok(s.upload(acme, "a.md", "The library opens at nine.")).get("id").Str
	s.chat(acme, "hi", `"sessionId":"victim"`)
	asked = 0 // for the list of models, until here
	for _, id := range []string{
		"x/../victim", "../victim", "x/../../files/" + file, "../files/" + file, "../x/../secret", "../usage", "./victim", "a/./b", "a/../b",
		"/", "//", "/a", "a/", "a//b", "a//../b", "/..", "../", "./", ".", "..", "...", ".../..", "messages", "a/messages", "victim/messages",
		"%", "%2F", "a%2F..%2Fb", "%2e%2e", "a?b#c", "a;b,c", `a\..\b`, "a\x00b", "\x01", "é", "日本/語", "😀", "a b", "a+b", "{id}", "*", `"`, "ﬃ",
	} {
		escaped := url.PathEscape(id)
		if strings.Trim(id, ".") == "" {
			escaped = strings.ReplaceAll(id, ".", "%2E")
		}
		lower := regexp.MustCompile("%..").ReplaceAllStringFunc(escaped, strings.ToLower)
		all := strings.ToUpper(strings.ReplaceAll(fmt.Sprintf("% x", id), " ", "%"))
		for _, spelled := range []string{escaped, lower, "%" + all} {
			name, _ := json.Marshal(id)
			s.chat(acme, "hello", `"sessionId":`+string(name))
			if r := s.raw("GET", "/sessions/"+spelled+"/messages", acme); r.status != http.StatusOK || r.get("data.#").Int() != 2 || r.get("data.1.content").Str != "hello" {
				t.Errorf("messages of %q as %s: status %d: %s", id, spelled, r.status, r.body)
			}
			// Caddy takes the site's own address off before we see the request:
			// what leaves nothing of it behind isn't ours.
			slash := ""
			if id == ".." || id == "/.." || id == "./" {
				slash = "/"
			}
			if r := s.raw("DELETE", "/sessions/"+spelled+slash, acme); r.status != http.StatusOK || r.get("id").Str != id {
				t.Errorf("deletion of %q as %s: status %d: %s", id, spelled, r.status, r.body)
			}
		}
		s.raw("DELETE", "/files/"+escaped, acme)
	}
	s.ok(s.get(acme, "/sessions/victim"))
	s.ok(s.get(acme, "/files/"+file))
	if asked > 0 {
		t.Errorf("the router was asked %d times", asked)
	}

	// A client that doesn't escape what it should is understood all the same.
	s.chat(acme, "hi", `"sessionId":"a\"/../victim"`)
	if r := s.raw("DELETE", `/sessions/a"%2F..%2Fvictim`, acme); r.get("id").Str != `a"/../victim` {
		t.Errorf("status %d: %s", r.status, r.body)
	}
	s.ok(s.get(acme, "/sessions/victim"))
}

func TestNoPathIsTheRoutersByItsEscapes(t *testing.T) {
	upstream := newFake(t)
	var asked []string
	upstream.other = func(_ http.ResponseWriter, r *http.Request) { asked = append(asked, r.URL.Path) }
	s := start(t, options{upstream: upstream.URL})
	s.chat(acme, "hi", `"sessionId":"s"`)
	for _, path := range []string{
		"/models/%2e%2e/key", "/models/x%2f..%2f..%2fkey", "/models/%2E/m", "/x%2F..%2Fsecret", "/..%2Fv1%2Fsecret", "/models/%2E%2E%2Fm/",
		"/x%2F..%2Fsessions/s", "/x/%2E%2E/sessions/s", "/sessions%2Fs", "/x%2F..%2Ffiles", "/files%2Fsearch", "/x%2F..%2Fusage",
		"/chat%2Fcompletions", "/x%2F..%2Fchat/completions", "/chat/x%2F..%2Fcompletions", "%2Fmodels", "%2F..%2Fv1/models",
		"/../../x%2F..%2Fapi/v1/models", `/models/"%2F..%2Fkey`,
	} {
		for _, method := range []string{"GET", "POST", "DELETE"} {
			asked = nil
			r := s.raw(method, path, acme)
			if r.status != http.StatusNotFound || r.get("error.message").Str == "" || len(asked) != 0 || upstream.count() != 1 {
				t.Errorf("%s %s: status %d, asked %q: %s", method, path, r.status, asked, r.body)
			}
		}
	}
	s.ok(s.get(acme, "/sessions/s"))
	for path, want := range map[string]string{
		"/models/openai%2Fgpt-5": "/v1/models/openai/gpt-5", "/models/../m": "/v1/m", "//models//m": "/v1/models/m",
		"/models/%2Ehidden": "/v1/models/.hidden", "/models/a..b%2f...": "/v1/models/a..b/...", "/models/a(b)%C3%A9%c3%a9": "/v1/models/a(b)éé",
		`/models/a"b`: `/v1/models/a"b`, "/models/%6D?x=%2F..": "/v1/models/m", "/models/a%252F..": "/v1/models/a%2F..",
	} {
		asked = nil
		if s.ok(s.raw("GET", path, acme)); len(asked) != 1 || asked[0] != want {
			t.Errorf("GET %s: the router was asked for %q", path, asked)
		}
	}
}
