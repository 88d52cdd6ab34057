package gateway_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/backstory-proxy/backstory/gateway"
)

// deleted is a word of a file that is to be deleted. The router's replies don't
// hold it: what a model has said of a file is the session's.
const deleted = "quagga-seven"

// fileSite is a site with two files, both about refunds. The first one holds the
// word.
func fileSite(t *testing.T, upstream *fake, adjust func(*gateway.Options)) (s *site, id string) {
	s = start(t, options{upstream: upstream.URL, adjust: adjust})
	id = s.ok(s.upload(acme, "refunds.md", "A customer is refunded within 30 days, says "+deleted+".")).get("id").Str
	s.ok(s.upload(acme, "other.md", "A customer of ours is refunded by cheque only, or in cash."))
	return s, id
}

const refunds = "When is a customer refunded?"

// has fails the test unless the router's last request holds the word, or doesn't.
func has(t *testing.T, upstream *fake, r reply, want bool) {
	t.Helper()
	got := upstream.last(t).body
	if strings.Contains(got, deleted) != want {
		t.Errorf("the router got %s", got)
	}
	if !want && (strings.Contains(r.body, deleted) || strings.Contains(r.get("_metadata.rag").Raw, "refunds.md")) {
		t.Errorf("the client is told %s", r.body)
	}
}

func (s *site) deleteFile(id string) {
	s.t.Helper()
	s.ok(s.do(s.request("DELETE", "/files/"+id, acme, nil)))
}

func TestADeletedFileIsInNoLaterPrompt(t *testing.T) {
	t.Parallel()
	const call = `{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"find","arguments":"{}"}}]}`
	calls := func(w http.ResponseWriter, _ *http.Request, _ string) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, strings.Replace(strings.Replace(jsonReply("x"), `{"role":"assistant","content":"x"}`, call, 1), `"stop"`, `"tool_calls"`, 1))
	}
	const in = `"sessionId":"s"`
	result := func(s *site) reply {
		return s.ok(s.post(acme, "/chat/completions", `{"model":"demo/echo",`+in+`,"messages":[{"role":"tool","tool_call_id":"c1","content":"14"}]}`))
	}
	for name, after := range map[string]func(*site, *fake){
		"of another question": func(s *site, upstream *fake) {
			has(t, upstream, s.chat(acme, refunds, in), false)
		},
		"of another session": func(s *site, upstream *fake) {
			has(t, upstream, s.chat(acme, refunds, `"sessionId":"other"`), false)
		},
		"with the results of a tool": func(s *site, upstream *fake) {
			has(t, upstream, result(s), false)
			if !strings.Contains(upstream.last(t).body, "by cheque only") {
				t.Error("the other file's chunk is gone, too")
			}
		},
		"of the same request sent again": func(s *site, upstream *fake) {
			r := s.ok(s.post(acme, "/chat/completions", chatBody(refunds, in), "X-Stainless-Retry-Count", "1"))
			has(t, upstream, r, false)
		},
		"of a preview": func(s *site, upstream *fake) {
			p := s.ok(s.post(acme, "/chat/completions/preview", chatBody(refunds, in)))
			if strings.Contains(p.body, deleted) || !strings.Contains(p.body, "by cheque only") {
				t.Errorf("the preview is %s", p.body)
			}
		},
		"of the same file sent again and deleted again": func(s *site, upstream *fake) {
			id := s.ok(s.upload(acme, "refunds.md", "A customer is refunded within 30 days, says "+deleted+".")).get("id").Str
			s.deleteFile(id)
			has(t, upstream, result(s), false)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			upstream := newFake(t)
			s, id := fileSite(t, upstream, nil)
			upstream.replyWith(calls)
			s.chat(acme, refunds, in)
			if !strings.Contains(upstream.last(t).body, deleted) {
				t.Fatal("the file isn't found: nothing is tested")
			}
			s.deleteFile(id)
			upstream.replyWith(nil)
			after(s, upstream)
		})
	}
}

// A request that is under way when the file is deleted was given its chunks, and
// says so when it is saved.
func TestAFileDeletedDuringARequestIsInNoLaterPrompt(t *testing.T) {
	t.Parallel()
	upstream := newFake(t)
	s, id := fileSite(t, upstream, small)
	asked, proceed := make(chan struct{}), make(chan struct{})
	upstream.replyWith(func(w http.ResponseWriter, _ *http.Request, _ string) {
		close(asked)
		<-proceed
		writeReply(w, "Soon.")
	})
	done := make(chan reply)
	go func() { done <- s.post(acme, "/chat/completions", chatBody(refunds, `"sessionId":"s"`)) }()
	<-asked
	s.deleteFile(id)
	close(proceed)
	s.ok(<-done)
	if !strings.Contains(upstream.last(t).body, deleted) {
		t.Fatal("the file isn't found: nothing is tested")
	}
	upstream.replyWith(nil)
	for range 2 { // the second time from what is cached
		has(t, upstream, s.chat(acme, refunds, `"sessionId":"s"`), false)
	}
	if r := s.get(acme, "/sessions/s/messages?limit=100"); strings.Contains(r.body, deleted) {
		t.Errorf("the session holds %s", r.body)
	}
	// And when the turn is old, and quoted.
	for i := range 20 {
		s.chat(acme, fmt.Sprintf("number %d: %s", i, strings.Repeat("nothing much ", 30)), `"sessionId":"s"`)
	}
	r := s.chat(acme, "What did I ask about a customer who is refunded?", `"sessionId":"s"`)
	has(t, upstream, r, false)
	if r.get("_metadata.memory.recalledMessages").Int() == 0 {
		t.Error("nothing is quoted, so that nothing is tested")
	}
}

// Nor does a session that is deleted come back, by a cache or by a request that saves late.
func TestADeletedSessionIsInNoLaterPrompt(t *testing.T) {
	t.Parallel()
	for name, open := range stores(t) {
		t.Run(name, func(t *testing.T) {
			upstream := newFake(t)
			s := start(t, options{upstream: upstream.URL, store: open, adjust: small})
			const in = `"sessionId":"s"`
			s.chat(acme, "My boat is called "+deleted+".", in)
			for i := range 12 {
				s.chat(acme, fmt.Sprintf("number %d: %s", i, strings.Repeat("nothing much ", 30)), in)
			}
			const question = "What is my boat called?"
			if s.chat(acme, question, in); !strings.Contains(upstream.last(t).body, deleted) {
				t.Fatal("nothing is recalled: nothing is tested")
			}
			// One request is under way, which has the session and saves late.
			asked, proceed := make(chan struct{}), make(chan struct{})
			upstream.replyWith(func(w http.ResponseWriter, _ *http.Request, _ string) {
				close(asked)
				<-proceed
				writeReply(w, "late")
			})
			done := make(chan reply)
			go func() { done <- s.post(acme, "/chat/completions", chatBody("once more, "+deleted, in)) }()
			<-asked
			s.ok(s.do(s.request("DELETE", "/sessions/s", acme, nil)))
			close(proceed)
			<-done
			upstream.replyWith(nil)
			for range 2 {
				s.chat(acme, question, in)
				if got := upstream.last(t).body; strings.Contains(got, deleted) || gjson.Get(got, "messages.#").Int() > 3 {
					t.Errorf("the router got %s", got)
				}
			}
			if r := s.get(acme, "/sessions/s/messages?limit=100"); strings.Contains(r.body, deleted) || strings.Contains(r.body, "late") {
				t.Errorf("the session holds %s", r.body)
			}
		})
	}
}
