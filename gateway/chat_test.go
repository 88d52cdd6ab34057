package gateway_test

import (
	"compress/gzip"
	"io"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/backstory-proxy/backstory/gateway"
)

func TestAReplyWithoutSessionAndFilesIsTheRouters(t *testing.T) {
	t.Parallel()
	upstream := newFake(t)
	const odd = "{ \"choices\" : [ {\"index\":0,\n\"message\":{\"role\":\"assistant\",\"content\":\"é\\u00e9\"} } ],\"x\":1.0 }\n"
	upstream.replyWith(func(w http.ResponseWriter, _ *http.Request, body string) {
		w.Header().Set("X-Router", "yes")
		if gjson.Get(body, "stream").Bool() {
			writeEvents(w, ": OPENROUTER PROCESSING\n\n", delta("a"), "data: {\"choices\":[]}\r\n\r\n", done)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, odd)
	})
	s := start(t, options{upstream: upstream.URL})

	const body = "{ \"seed\" : 1, \"model\":\"demo/echo\",\n  \"messages\" : [{\"role\":\"user\",\"content\":\"h\\u0069\"}] ,\"unknown\":{\"b\":1,\"a\":[1.50]}}"
	r := s.ok(s.post(acme, "/chat/completions", body))
	if r.body != odd {
		t.Errorf("got  %q\nwant %q", r.body, odd)
	}
	if got := upstream.last(t); got.body != body || got.path != "/v1/chat/completions" {
		t.Errorf("the router got %s %q", got.path, got.body)
	}
	if r.header.Get("X-Router") != "yes" {
		t.Error("a header of the router is missing")
	}
	stream := s.ok(s.post(acme, "/chat/completions", chatBody("hi", `"stream":true`)))
	if want := ": OPENROUTER PROCESSING\n\n" + delta("a") + "data: {\"choices\":[]}\r\n\r\n" + done; stream.body != want {
		t.Errorf("got  %q\nwant %q", stream.body, want)
	}
}

func TestTheExtensionNeverReachesTheRouter(t *testing.T) {
	t.Parallel()
	upstream := newFake(t)
	s := start(t, options{upstream: upstream.URL})
	s.ok(s.post(acme, "/chat/completions",
		`{"sessionId":"s","model":"demo/echo","useRAG":true,"messages":[{"role":"user","content":"hi"}],"saveToMemory":null,"n":1,"ragQuery":"q"}`,
		"X-Backstory-Session-Id", "other", "X-Backstory-RAG-Query", "q2", "x-session-id", "openrouter's"))
	got := upstream.last(t)
	if want := `{"model":"demo/echo","messages":[{"role":"user","content":"hi"}],"n":1}`; got.body != want {
		t.Errorf("got  %s\nwant %s", got.body, want)
	}
	for name := range got.header {
		if strings.HasPrefix(name, "X-Backstory") {
			t.Errorf("the router got %s", name)
		}
	}
	if got.header.Get("x-session-id") != "openrouter's" {
		t.Error("x-session-id is the router's own, and was not passed on")
	}
	if r := s.get(acme, "/sessions/s"); r.status != http.StatusOK {
		t.Errorf("the body's session was not used: %s", r.body)
	}
	if r := s.get(acme, "/sessions/other"); r.status != http.StatusNotFound {
		t.Errorf("the header's session was used, not the body's: %s", r.body)
	}
}

func TestInvalidRequestsNameTheParameter(t *testing.T) {
	t.Parallel()
	upstream := newFake(t)
	s := start(t, options{upstream: upstream.URL})
	for param, body := range map[string]string{
		"model":               `{"messages":[{"role":"user","content":"hi"}]}`,
		"messages":            `{"model":"a/b","messages":[]}`,
		"messages[0].role":    `{"model":"a/b","messages":[{"content":"hi"}]}`,
		"messages[0].content": `{"model":"a/b","messages":[{"role":"user","content":3}]}`,
		"temperature":         chatBody("hi", `"temperature":2.5`),
		"max_tokens":          chatBody("hi", `"max_tokens":0`),
		"top_p":               chatBody("hi", `"top_p":"x"`),
		"stream":              chatBody("hi", `"stream":"yes"`),
		"sessionId":           chatBody("hi", `"sessionId":7`),
		"useRAG":              chatBody("hi", `"useRAG":"no"`),
	} {
		t.Run(param, func(t *testing.T) {
			s.t = t
			r := s.post(acme, "/chat/completions", body)
			if r.status != http.StatusBadRequest || r.get("error.param").Str != param || r.get("error.type").Str != "invalid_request_error" {
				t.Errorf("status %d: %s", r.status, r.body)
			}
			if r.header.Get("x-ratelimit-limit-requests") == "" || r.header.Get("x-request-id") == "" {
				t.Errorf("headers %v", r.header)
			}
		})
	}
	s.t = t
	if r := s.post(acme, "/chat/completions", "{"); r.status != http.StatusBadRequest {
		t.Errorf("status %d for what is no JSON", r.status)
	}
	if n := upstream.count(); n != 0 {
		t.Errorf("the router got %d requests", n)
	}
}

func TestABodyOverTheLimitIsRefused(t *testing.T) {
	t.Parallel()
	upstream := newFake(t)
	s := start(t, options{upstream: upstream.URL, adjust: func(o *gateway.Options) { o.MaxBody = 1000 }})
	big := chatBody(strings.Repeat("x", 2000), "")
	for name, body := range map[string]io.Reader{"announced": strings.NewReader(big), "chunked": io.MultiReader(strings.NewReader(big))} {
		r := s.do(s.request("POST", "/chat/completions", acme, body))
		if r.status != http.StatusRequestEntityTooLarge || r.get("error.message").Str == "" {
			t.Errorf("%s: status %d: %s", name, r.status, r.body)
		}
	}
}

func TestASessionRemembers(t *testing.T) {
	t.Parallel()
	upstream := newFake(t)
	s := start(t, options{upstream: upstream.URL})
	first := s.chat(acme, "I am Ada", `"sessionId":"s"`)
	if got := first.get("_metadata.memory.historyMessages").Int(); got != 0 {
		t.Errorf("historyMessages is %d at first", got)
	}
	upstream.replyWith(func(w http.ResponseWriter, _ *http.Request, _ string) { writeReply(w, "Ada") })
	r := s.ok(s.post(acme, "/chat/completions", `{"model":"demo/echo","messages":[{"role":"system","content":"be brief"},{"role":"user","content":"who am I?"}],"sessionId":"s"}`))

	want := "system: be brief\nuser: I am Ada\nassistant: ok\nuser: who am I?\n"
	if got := upstream.last(t).said(); got != want {
		t.Errorf("the router got\n%swant\n%s", got, want)
	}
	m := r.get("_metadata")
	if m.Get("memory.sessionId").Str != "s" || m.Get("memory.historyMessages").Int() != 2 || m.Get("memory.saved").Exists() {
		t.Errorf("memory %s", m.Get("memory"))
	}
	if m.Get("rag").Raw != `{"enabled":false}` {
		t.Errorf("rag %s", m.Get("rag"))
	}
	c := m.Get("context")
	if c.Get("includedMessages").Int() != 4 || c.Get("truncated").Bool() || c.Get("totalTokens").Int() < 20 {
		t.Errorf("context %s", c)
	}
	if r.get("choices.0.message.content").Str != "Ada" || r.get("id").Str != "c-1" {
		t.Errorf("the reply itself was changed: %s", r.body)
	}

	log := s.ok(s.get(acme, "/sessions/s/messages?order=asc"))
	if got := log.get("data.#.content").Raw; got != `["I am Ada","ok","who am I?","Ada"]` {
		t.Errorf("the session holds %s", got)
	}
}

func TestMemorySurvivesARestart(t *testing.T) {
	t.Parallel()
	upstream := newFake(t)
	o := options{upstream: upstream.URL, store: database(filepath.Join(t.TempDir(), "b.db"))}
	s := start(t, o)
	s.chat(acme, "I am Ada", `"sessionId":"s"`)
	s.load(o)
	s.chat(acme, "who am I?", `"sessionId":"s"`)
	if want := "user: I am Ada\nassistant: ok\nuser: who am I?\n"; upstream.last(t).said() != want {
		t.Errorf("the router got\n%s", upstream.last(t).said())
	}
}

func TestSaveToMemoryFalseReadsAndDoesNotSave(t *testing.T) {
	t.Parallel()
	upstream := newFake(t)
	s := start(t, options{upstream: upstream.URL})
	s.chat(acme, "one", `"sessionId":"s"`)
	r := s.chat(acme, "two", `"sessionId":"s","saveToMemory":false`)
	if r.get("_metadata.memory.historyMessages").Int() != 2 || r.get("_metadata.memory.saved").Exists() {
		t.Errorf("metadata %s", r.get("_metadata"))
	}
	s.chat(acme, "three", `"sessionId":"s"`)
	if want := "user: one\nassistant: ok\nuser: three\n"; upstream.last(t).said() != want {
		t.Errorf("the router got\n%s", upstream.last(t).said())
	}
}

func TestAClientThatResendsItsHistoryGetsNothingTwice(t *testing.T) {
	t.Parallel()
	upstream := newFake(t)
	s := start(t, options{upstream: upstream.URL})
	history := ""
	for i := range 30 {
		turn := strconv.Itoa(i)
		upstream.replyWith(func(w http.ResponseWriter, _ *http.Request, _ string) { writeReply(w, "reply "+turn) })
		history += `{"role":"user","content":"question ` + turn + `"}`
		body := `{"model":"demo/echo","sessionId":"s","messages":[` + history + `]}`
		r := s.ok(s.post(acme, "/chat/completions", body))
		if n := r.get("_metadata.memory.historyMessages").Int(); n != 0 {
			t.Fatalf("turn %d: %d messages supplied", i, n)
		}
		if n := gjson.Get(upstream.last(t).body, "messages.#").Int(); n != int64(2*i+1) {
			t.Fatalf("turn %d: the router got %d messages", i, n)
		}
		history += `,{"role":"assistant","content":"reply ` + turn + `"},`
	}
	if n := s.get(acme, "/sessions/s").get("messages").Int(); n != 60 {
		t.Errorf("the session holds %d messages, 60 were said", n)
	}
}

func TestARequestThatIsRefusedCounts(t *testing.T) {
	t.Parallel()
	s := start(t, options{upstream: newFake(t).URL})
	for i, r := range []reply{
		s.post(tiny, "/chat/completions", "{"),
		s.post(tiny, "/chat/completions/preview", "{"),
		s.post(tiny, "/sessions/s/messages", "{"),
		s.post(tiny, "/chat/completions", chatBody("hi", ""), "X-Backstory-Use-RAG", "perhaps"),
		s.post(tiny, "/sessions/s/messages", `{"messages":[]}`, "X-Backstory-Use-RAG", "perhaps"),
		s.post(tiny, "/embeddings", "{}", "X-Backstory-Use-RAG", "perhaps"),
	} {
		if got, want := r.header.Get("x-ratelimit-remaining-requests"), strconv.Itoa(9-i); r.status != http.StatusBadRequest || got != want {
			t.Errorf("request %d: status %d, remaining %s, want %s: %s", i+1, r.status, got, want, r.body)
		}
	}
}

func TestTenantsNeverSeeEachOther(t *testing.T) {
	t.Parallel()
	upstream := newFake(t)
	s := start(t, options{upstream: upstream.URL})
	s.chat(acme, "acme's secret", `"sessionId":"same"`)
	s.ok(s.upload(acme, "same.md", "The combination of acme's safe is 1234."))
	s.ok(s.upload(beta, "same.md", "The combination of beta's safe is 9876."))
	r := s.chat(beta, "What is the combination of the safe?", `"sessionId":"same"`)
	body := upstream.last(t).body
	if strings.Contains(body, "acme") || strings.Contains(body, "1234") {
		t.Errorf("beta was given what is acme's: %s", body)
	}
	if !strings.Contains(body, "9876") || r.get("_metadata.memory.historyMessages").Int() != 0 {
		t.Errorf("beta was not given its own: %s", body)
	}
	id := s.get(acme, "/files").get("data.0.id").Str
	for _, path := range []string{"/files/" + id, "/files/" + id + "/content"} {
		if r := s.get(beta, path); r.status != http.StatusNotFound {
			t.Errorf("%s: status %d", path, r.status)
		}
	}
	if r := s.do(s.request("DELETE", "/files/"+id, beta, nil)); r.status != http.StatusNotFound {
		t.Errorf("beta deleted acme's file: %d", r.status)
	}
	if n := s.get(beta, "/files").get("data.#").Int(); n != 1 {
		t.Errorf("beta sees %d files", n)
	}
}

func TestThePlansRateIsKept(t *testing.T) {
	t.Parallel()
	upstream := newFake(t)
	s := start(t, options{upstream: upstream.URL})
	for i := range 10 {
		r := s.chat(tiny, "hi", "")
		if got, want := r.header.Get("x-ratelimit-remaining-requests"), strconv.Itoa(9-i); got != want {
			t.Errorf("request %d: remaining %s, want %s", i+1, got, want)
		}
		if r.header.Get("x-ratelimit-limit-requests") != "10" || r.header.Get("x-ratelimit-reset-requests") == "" {
			t.Errorf("request %d: headers %v", i+1, r.header)
		}
	}
	for _, path := range []string{"/chat/completions", "/files", "/embeddings"} {
		r := s.post(tiny, path, chatBody("hi", ""))
		if r.status != http.StatusTooManyRequests || r.get("error.code").Str != "rate_limit_exceeded" || r.get("error.type").Str != "requests" {
			t.Errorf("%s: status %d: %s", path, r.status, r.body)
		}
		if after, err := strconv.Atoi(r.header.Get("Retry-After")); err != nil || after < 1 || after > 60 {
			t.Errorf("%s: Retry-After %q", path, r.header.Get("Retry-After"))
		}
		if r.header.Get("x-ratelimit-remaining-requests") != "0" {
			t.Errorf("%s: remaining %s", path, r.header.Get("x-ratelimit-remaining-requests"))
		}
	}
	// A tenant that is over its rate doesn't make us read anything.
	endless := s.request("POST", "/chat/completions", tiny, struct{ io.Reader }{forever{}}, "Expect", "100-continue")
	if r := s.do(endless); r.status != http.StatusTooManyRequests {
		t.Errorf("status %d", r.status)
	}
	if n := upstream.count(); n != 10 {
		t.Errorf("the router got %d requests", n)
	}
	s.chat(acme, "another tenant is not concerned", "")
}

// forever is a body without end.
type forever struct{}

func (forever) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}

func TestADeadRouterIsABadGateway(t *testing.T) {
	t.Parallel()
	upstream := newFake(t)
	upstream.Close()
	s := start(t, options{upstream: upstream.URL})
	for _, extra := range []string{"", `"sessionId":"s"`, `"sessionId":"s","stream":true`} {
		r := s.post(acme, "/chat/completions", chatBody("hi", extra))
		if r.status != http.StatusBadGateway || r.get("error.type").Str != "server_error" || r.header.Get("x-request-id") == "" {
			t.Errorf("status %d: %s", r.status, r.body)
		}
		if r.header.Get("Content-Type") != "application/json" {
			t.Errorf("content type %s", r.header.Get("Content-Type"))
		}
	}
	if r := s.get(acme, "/sessions/s"); r.status != http.StatusNotFound {
		t.Errorf("something was saved: %s", r.body)
	}
}

func TestARoutersErrorPassesAndIsNotSaved(t *testing.T) {
	t.Parallel()
	upstream := newFake(t)
	const body = `{"error":{"message":"no credit","code":402,"metadata":{"x":1}}}`
	for _, status := range []int{200, 402, 429, 500} {
		upstream.replyWith(func(w http.ResponseWriter, _ *http.Request, _ string) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
		})
		s := start(t, options{upstream: upstream.URL})
		r := s.post(acme, "/chat/completions", chatBody("hi", `"sessionId":"s"`))
		if r.status != status || r.body != body {
			t.Errorf("status %d: %s", r.status, r.body)
		}
		if r := s.get(acme, "/sessions/s"); r.status != http.StatusNotFound {
			t.Errorf("status %d: something was saved: %s", status, r.body)
		}
	}
}

func TestAReplyThatBreaksOffIsAnErrorAndNotSaved(t *testing.T) {
	t.Parallel()
	upstream := newFake(t)
	upstream.replyWith(func(w http.ResponseWriter, _ *http.Request, _ string) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", "1000")
		_, _ = io.WriteString(w, jsonReply("half")[:100])
		_ = http.NewResponseController(w).Flush() // else the router wouldn't have answered at all
		panic(http.ErrAbortHandler)
	})
	s := start(t, options{upstream: upstream.URL})
	r := s.post(acme, "/chat/completions", chatBody("hi", `"sessionId":"s"`))
	if r.status != http.StatusBadGateway || r.get("error.message").Str != "The model router's reply broke off." {
		t.Errorf("status %d: %s", r.status, r.body)
	}
	if r := s.get(acme, "/sessions/s"); r.status != http.StatusNotFound {
		t.Errorf("something was saved: %s", r.body)
	}
}

func TestEverythingElsePassesThrough(t *testing.T) {
	t.Parallel()
	upstream := newFake(t)
	upstream.other = func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("X-Path", r.URL.RequestURI())
		w.WriteHeader(http.StatusTeapot)
		_, _ = w.Write(append([]byte(r.Method+" "+r.Header.Get("serviceKey")), body...))
	}
	s := start(t, options{upstream: upstream.URL})
	r := s.post(acme, "/responses?x=1%2F2", `{"sessionId":"stays"}`)
	if r.status != http.StatusTeapot || r.body != `POST {"sessionId":"stays"}` || r.header.Get("X-Path") != "/v1/responses?x=1%2F2" {
		t.Errorf("status %d, path %s: %s", r.status, r.header.Get("X-Path"), r.body)
	}
	if r.header.Get("x-request-id") == "" || r.header.Get("x-ratelimit-limit-requests") != "1000" {
		t.Errorf("headers %v", r.header)
	}
}

func TestToolCallsAndTheirResultsStayTogether(t *testing.T) {
	t.Parallel()
	upstream := newFake(t)
	s := start(t, options{upstream: upstream.URL})
	s.ok(s.upload(acme, "weather.md", "The weather station of Lisbon is called Gago Coutinho."))

	const call = `{"role":"assistant","content":null,"tool_calls":[{"id":"call_1","type":"function","function":{"name":"weather","arguments":"{\"city\":\"Lisbon\"}"}}]}`
	upstream.replyWith(func(w http.ResponseWriter, _ *http.Request, _ string) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"choices":[{"index":0,"message":`+call+`,"finish_reason":"tool_calls"}]}`)
	})
	s.chat(acme, "What does the weather station of Lisbon say?", `"sessionId":"s"`)
	first := upstream.last(t)
	if !strings.Contains(first.body, "Gago Coutinho") {
		t.Fatalf("no passage in %s", first.body)
	}

	upstream.replyWith(nil)
	r := s.ok(s.post(acme, "/chat/completions", `{"model":"demo/echo","sessionId":"s","messages":[{"role":"tool","tool_call_id":"call_1","content":"sunny"}]}`))
	got := gjson.Get(upstream.last(t).body, "messages").Array()
	if len(got) != 3 || got[1].Raw != call || got[2].Get("role").Str != "tool" {
		t.Fatalf("the router got %s", upstream.last(t).body)
	}
	// The turn's user message stands as it did, with the passages it was given.
	if want := gjson.Get(first.body, "messages.0.content").Str; got[0].Get("content").Str != want {
		t.Errorf("the user message is %q, was %q", got[0].Get("content").Str, want)
	}
	if r.get("_metadata.memory.historyMessages").Int() != 2 || r.get("_metadata.context.includedChunks").Int() != 1 {
		t.Errorf("metadata %s", r.get("_metadata"))
	}

	s.chat(acme, "and now?", `"sessionId":"s","useRAG":false`)
	if got := gjson.Get(upstream.last(t).body, "messages.#.role").Raw; got != `["user","assistant","tool","assistant","user"]` {
		t.Errorf("roles %s", got)
	}
	if strings.Contains(upstream.last(t).body, "Gago") {
		t.Error("quoted text was saved")
	}
}

func TestPreviewShowsWhatWouldBeSent(t *testing.T) {
	t.Parallel()
	upstream := newFake(t)
	s := start(t, options{upstream: upstream.URL})
	s.chat(acme, "I am Ada", `"sessionId":"s"`)
	s.ok(s.upload(acme, "tower.md", "The tower is 93 metres tall."))
	calls := upstream.count()
	body := `{"model":"demo/echo","messages":[{"role":"system","content":"be brief"},{"role":"user","content":"How tall is the tower?"}],"sessionId":"s"}`
	p := s.ok(s.post(acme, "/chat/completions/preview", body))
	if upstream.count() != calls {
		t.Error("the model was called")
	}
	if p.get("object").Str != "chat.completion.preview" || p.get("model").Str != "demo/echo" {
		t.Errorf("preview %s", p.body)
	}
	if got := p.get("parts.#.kind").Raw; got != `["system","history","history","file","request","request"]` {
		t.Errorf("parts %s", got)
	}
	s.addsUp(p)
	if n := s.get(acme, "/sessions/s").get("messages").Int(); n != 2 {
		t.Errorf("the preview was saved: %d messages", n)
	}
	r := s.ok(s.post(acme, "/chat/completions", body))
	var sent, shown any
	sent, shown = gjson.Get(upstream.last(t).body, "messages").Value(), p.get("messages").Value()
	if !equalJSON(sent, shown) {
		t.Errorf("shown %s\nsent  %s", p.get("messages"), upstream.last(t).body)
	}
	if p.get("_metadata").Raw != r.get("_metadata").Raw {
		t.Errorf("metadata shown %s\nsent %s", p.get("_metadata"), r.get("_metadata"))
	}
}

func TestSessionsAreListedReadAndDeleted(t *testing.T) {
	t.Parallel()
	upstream := newFake(t)
	s := start(t, options{upstream: upstream.URL})
	const odd = "a/b?c#d\"e f\u00e9%2F"
	const path = "/sessions/a%2Fb%3Fc%23d%22e%20f%C3%A9%252F"
	s.chat(acme, "one", `"sessionId":"plain"`)
	s.chat(acme, "two", `"sessionId":"a/b?c#d\"e f\u00e9%2F"`)
	list := s.ok(s.get(acme, "/sessions?limit=1"))
	if list.get("data.0.id").Str != odd || !list.get("has_more").Bool() {
		t.Fatalf("list %s", list.body)
	}
	if r := s.ok(s.get(acme, path)); r.get("id").Str != odd || r.get("messages").Int() != 2 || r.get("object").Str != "session" {
		t.Errorf("session %s", r.body)
	}
	page := s.ok(s.get(acme, path+"/messages?limit=1"))
	if page.get("data.0.content").Str != "ok" || !page.get("has_more").Bool() {
		t.Errorf("page %s", page.body)
	}
	page = s.ok(s.get(acme, path+"/messages?limit=1&after="+page.get("last_id").Str))
	if page.get("data.0.content").Str != "two" || page.get("has_more").Bool() {
		t.Errorf("page %s", page.body)
	}
	for _, id := range []string{".", ".."} { // which are steps in a path, elsewhere
		s.chat(acme, "dots", `"sessionId":"`+id+`"`)
		escaped := "/sessions/" + strings.ReplaceAll(id, ".", "%2E")
		if r := s.ok(s.get(acme, escaped+"/messages")); r.get("data.#").Int() != 2 {
			t.Errorf("messages of %q: %s", id, r.body)
		}
		if r := s.ok(s.do(s.request("DELETE", escaped+"/", acme, nil))); r.get("id").Str != id {
			t.Errorf("deletion of %q: %s", id, r.body)
		}
	}
	if r := s.ok(s.do(s.request("DELETE", path, acme, nil))); r.get("id").Str != odd || !r.get("deleted").Bool() {
		t.Errorf("deletion %s", r.body)
	}
	for _, p := range []string{path, path + "/messages", "/sessions/plain/nothing"} {
		if r := s.get(acme, p); r.status != http.StatusNotFound || r.get("error.message").Str == "" {
			t.Errorf("%s: status %d: %s", p, r.status, r.body)
		}
	}
	if r := s.get(beta, "/sessions/plain"); r.status != http.StatusNotFound {
		t.Errorf("beta sees acme's session: %s", r.body)
	}
}

func TestMessageIDsAreOurs(t *testing.T) {
	t.Parallel()
	upstream := newFake(t)
	s := start(t, options{upstream: upstream.URL})
	s.ok(s.post(acme, "/chat/completions",
		`{"model":"a/b","sessionId":"s","messages":[{"id":"mine","created_at":5,"object":"odd","role":"user","content":"hi"}]}`))
	m := s.ok(s.get(acme, "/sessions/s/messages?order=asc")).get("data.0")
	if m.Get("id").Str != "msg_1_0" || m.Get("object").Str != "session.message" || m.Get("content").Str != "hi" || strings.Contains(m.Raw, "mine") {
		t.Errorf("message %s", m.Raw)
	}
	if r := s.get(acme, "/sessions/s/messages?after=msg_1_0x"); r.status != http.StatusBadRequest {
		t.Errorf("status %d: %s", r.status, r.body)
	}
}

func TestAReplyTooLargeToBeKeptSaysSo(t *testing.T) {
	t.Parallel()
	upstream := newFake(t)
	text := strings.Repeat("0123456789abcdef", 33<<20/16)
	upstream.replyWith(func(w http.ResponseWriter, _ *http.Request, _ string) { writeReply(w, text) })
	s := start(t, options{upstream: upstream.URL})
	r := s.chat(acme, "hi", `"sessionId":"s"`)
	if r.get("_metadata.memory.saved").Raw != "false" || r.get("choices.0.message.content").Str != text {
		t.Errorf("reply of %d bytes begins %.200q", len(r.body), r.body)
	}
}

func TestInlineFilesAreWeighed(t *testing.T) {
	t.Parallel()
	upstream := newFake(t)
	s := start(t, options{upstream: upstream.URL})
	data := strings.Repeat("QUJD", 1<<20)
	for range 3 {
		s.ok(s.post(acme, "/chat/completions", `{"model":"a/b","sessionId":"s","messages":[{"role":"user","content":[{"type":"file","file":{"file_data":"`+data+`"}}]}]}`))
	}
	r := s.chat(acme, "and now?", `"sessionId":"s"`)
	if n := len(upstream.last(t).body); n > 1<<20 || !r.get("_metadata.context.truncated").Bool() {
		t.Errorf("%d bytes went to the router: %s", n, r.get("_metadata"))
	}
}

func TestARouterThatCompressesIsStillUnderstood(t *testing.T) {
	t.Parallel()
	upstream := newFake(t)
	upstream.replyWith(func(w http.ResponseWriter, r *http.Request, _ string) {
		if !strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
			writeReply(w, "plain")
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		_, _ = io.WriteString(z, jsonReply("packed"))
		_ = z.Close()
	})
	s := start(t, options{upstream: upstream.URL})
	r := s.ok(s.post(acme, "/chat/completions", chatBody("hi", `"sessionId":"s"`), "Accept-Encoding", "gzip, br"))
	if r.get("choices.0.message.content").Str != "packed" || r.get("_metadata.memory.sessionId").Str != "s" {
		t.Errorf("reply %q", r.body)
	}
	if n := s.get(acme, "/sessions/s").get("messages").Int(); n != 2 {
		t.Errorf("the session holds %d messages", n)
	}
}
