package gateway_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/tidwall/gjson"
)

// export is a session as JSON Lines.
func (s *site) export(session string) reply {
	s.t.Helper()
	return s.ok(s.do(s.request("GET", "/sessions/"+session+"/messages", acme, nil, "Accept", "application/jsonl")))
}

func TestAnExportCanBeImported(t *testing.T) {
	t.Parallel()
	upstream := newFake(t)
	for name, store := range stores(t) {
		t.Run(name, func(t *testing.T) {
			s := start(t, options{upstream: upstream.URL, store: store})
			s.importInto("a", "{\"role\":\n\"user\",\"content\":\"two\\nlines\",\"id\":\"mine\",\"x\":[1.50,\n{}]},"+
				`{"role":"assistant","content":"a","created_at":1700000000.125}`)
			s.importInto("a", dialogue(500, ""))
			s.chat(acme, "hi", `"sessionId":"a"`)
			first := s.export("a")
			if got := first.header.Get("Content-Type"); got != "application/jsonl" {
				t.Errorf("it is %s", got)
			}
			lines := strings.Split(strings.TrimSuffix(first.body, "\n"), "\n")
			if len(lines) != 1004 {
				t.Fatalf("%d lines", len(lines))
			}
			if want := `{"created_at":1700000000.125,"role":"user","content":"two\nlines","id":"mine","x":[1.50,{}]}`; lines[0] != want {
				t.Errorf("got  %s\nwant %s", lines[0], want)
			}
			for _, line := range lines {
				if !json.Valid([]byte(line)) || gjson.Get(line, "created_at").Num < 1.7e9 {
					t.Errorf("line %s", line)
				}
			}
			s.ok(s.do(s.request("POST", "/sessions/b/messages", acme, strings.NewReader(first.body), "Content-Type", "application/x-ndjson")))
			if again := s.export("b"); again.body != first.body {
				t.Error("what was imported again isn't the same")
			}
			// So can a list.
			page := s.ok(s.get(acme, "/sessions/a/messages?order=asc&limit=100")).get("data").Raw
			s.importInto("c", page[1:len(page)-1])
			if got, want := s.stored("c"), s.stored("a"); !strings.HasPrefix(want, got) || strings.Contains(s.export("c").body, "session.message") {
				t.Errorf("got\n%s", got)
			}
		})
	}
}

func TestAnExportIsOfOneSessionOfTheCallers(t *testing.T) {
	t.Parallel()
	upstream := newFake(t)
	s := start(t, options{upstream: upstream.URL})
	s.importInto("a", dialogue(1, ""))
	for _, c := range []struct{ key, path, param string }{
		{beta, "/sessions/a/messages", "id"}, {acme, "/sessions/b/messages", "id"}, {acme, "/sessions/a/messages?limit=5", "limit"},
	} {
		r := s.do(s.request("GET", c.path, c.key, nil, "Accept", "text/plain;q=0.5, application/x-ndjson"))
		if r.status == http.StatusOK || r.get("error.param").Str != c.param {
			t.Errorf("%s: status %d: %s", c.path, r.status, r.body)
		}
	}
}

func TestALargeExportIsWhole(t *testing.T) {
	t.Parallel()
	upstream := newFake(t)
	s := start(t, options{upstream: upstream.URL})
	text := strings.Repeat("0123456789", 30_000)
	for i := range 5 {
		s.importInto("a", fmt.Sprintf(`{"role":"user","content":"%d %s"},{"role":"assistant","content":"%s"},`, i, text, text)+dialogue(300, ""))
	}
	r := s.export("a")
	if n := strings.Count(r.body, "\n"); n != 5*602 || len(r.body) < 3_000_000 {
		t.Errorf("%d lines, %d bytes", n, len(r.body))
	}
}
