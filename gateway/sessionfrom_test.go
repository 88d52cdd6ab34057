package gateway_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/backstory-proxy/backstory/gateway"
)

func TestSessionsAreNamedByWhatTheClientSendsAnyway(t *testing.T) {
	t.Parallel()
	upstream := newFake(t)
	s := start(t, options{
		upstream: upstream.URL,
		adjust: func(o *gateway.Options) {
			o.SessionFrom = []string{"body:metadata.thread_id", "header:X-Thread", "body:prompt_cache_key"}
		},
	})
	const thread = `"metadata":{"a":1,"thread_id":"t1"}`
	for name, c := range map[string]struct {
		extra   string
		header  []string
		session string // empty: none
	}{
		"a field of the body":         {thread, nil, "t1"},
		"a header":                    {"", []string{"X-Thread", "t2"}, "t2"},
		"the first of two":            {thread, []string{"X-Thread", "t2"}, "t1"},
		"the second, as it is first":  {`"prompt_cache_key":"k"`, []string{"X-Thread", "t2"}, "t2"},
		"the third":                   {`"prompt_cache_key":"k","metadata":{}`, nil, "k"},
		"a number":                    {`"metadata":{"thread_id":42}`, nil, "42"},
		"an object is no name":        {`"metadata":{"thread_id":{}},"prompt_cache_key":"k"`, nil, "k"},
		"nor is an empty text":        {`"metadata":{"thread_id":""}`, []string{"X-Thread", ""}, ""},
		"nor is null":                 {`"metadata":null`, nil, ""},
		"the sessionId wins":          {thread + `,"sessionId":"mine"`, []string{"X-Thread", "t2"}, "mine"},
		"an empty one wins, too":      {thread + `,"sessionId":""`, nil, ""},
		"a null one says nothing":     {thread + `,"sessionId":null`, nil, "t1"},
		"our own header wins":         {thread, []string{"X-Backstory-Session-Id", "h"}, "h"},
		"nothing names a session":     {"", nil, ""},
		"a text with escapes is read": {`"metadata":{"thread_id":"\u00e9\n"}`, nil, "é\n"},
	} {
		t.Run(name, func(t *testing.T) {
			s.t = t
			r := s.ok(s.post(acme, "/chat/completions", chatBody("hi", c.extra), c.header...))
			if got := r.get("_metadata.memory.sessionId").Str; got != c.session {
				t.Errorf("session %q, want %q", got, c.session)
			}
			got := upstream.last(t)
			for _, field := range []string{"metadata", "prompt_cache_key"} {
				if want := gjson.Get("{"+c.extra+"}", field).Raw; gjson.Get(got.body, field).Raw != want {
					t.Errorf("%s arrived as %s, was %s", field, gjson.Get(got.body, field).Raw, want)
				}
			}
			for i := 0; i+1 < len(c.header); i += 2 {
				if want := c.header[i+1]; c.header[i] == "X-Thread" && got.header.Get("X-Thread") != want {
					t.Errorf("X-Thread arrived as %q, was %q", got.header.Get("X-Thread"), want)
				}
			}
		})
	}
	s.t = t
	p := s.ok(s.post(acme, "/chat/completions/preview", chatBody("hi", thread)))
	if p.get("_metadata.memory.sessionId").Str != "t1" {
		t.Errorf("the preview is of another session: %s", p.body)
	}
	if r := s.get(acme, "/sessions/t1"); r.status != http.StatusOK {
		t.Errorf("the session was not kept: %s", r.body)
	}
}

func TestUselessSourcesOfSessionsAreRefused(t *testing.T) {
	t.Parallel()
	for source, message := range map[string]string{
		"body:":                         "body:<path.to.field>",
		"body:messages.#.role":          "body:<path.to.field>",
		"body:metadata.*":               "body:<path.to.field>",
		"header:":                       "header:<Name>",
		"header:X Y":                    "header:<Name>",
		"query:thread":                  "header:<Name>",
		"metadata.thread_id":            "body:<path.to.field>",
		"header:authorization":          "secret",
		"header:serviceKey":             "secret",
		"header:x-backstory-session-id": "Backstory's own",
	} {
		_, err := gateway.New(gateway.Options{SessionFrom: []string{"header:X-Thread", source}})
		if err == nil || !strings.Contains(err.Error(), message) {
			t.Errorf("%s: got %v, want something about %q", source, err, message)
		}
	}
}
