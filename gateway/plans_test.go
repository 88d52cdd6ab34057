package gateway_test

import (
	"bytes"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"github.com/backstory-proxy/backstory/gateway"
	"github.com/backstory-proxy/backstory/internal/redistest"
)

// planned starts a site whose key acme is on a plan with the options given.
func planned(t *testing.T, upstream *fake, plan gateway.Plan) *site {
	t.Helper()
	return start(t, options{upstream: upstream.URL, adjust: onPlan(plan)})
}

// onPlan puts the key acme on a plan of 1,000 requests per minute.
func onPlan(plan gateway.Plan) func(*gateway.Options) {
	plan.RequestsPerMinute = 1000
	return func(o *gateway.Options) {
		o.Plans = map[string]gateway.Plan{"mine": plan}
		o.Keys[0].Plan = "mine"
	}
}

// tokens is what the caller has used, as GET /usage tells.
func (s *site) tokens(key string) int64 {
	s.t.Helper()
	return s.ok(s.get(key, "/usage")).get("tokens.used").Int()
}

const usageChunk = `data: {"id":"c-1","object":"chat.completion.chunk","created":1,"model":"demo/echo","choices":[],"usage":{"prompt_tokens":30,"completion_tokens":12,"total_tokens":42}}` + "\n\n"

func streamReply(w http.ResponseWriter, body string) {
	events := []string{": hi\n\n", delta("a"), delta("b"), finished}
	if gjson.Get(body, "stream_options.include_usage").Bool() {
		events = append(events, usageChunk)
	}
	writeEvents(w, append(events, done)...)
}

func TestTokensAreCountedAsTheRouterSays(t *testing.T) {
	t.Parallel()
	upstream := newFake(t)
	s := planned(t, upstream, gateway.Plan{TokensPerMonth: 1000})
	want := int64(0)
	check := func(what string, more int64) {
		t.Helper()
		if want += more; s.tokens(acme) != want {
			t.Fatalf("%s: %d tokens used, want %d", what, s.tokens(acme), want)
		}
	}
	check("at first", 0)
	r := s.chat(acme, "hi", "")
	if r.body != jsonReply("ok") {
		t.Errorf("without a session the reply must be the router's: %s", r.body)
	}
	check("a reply", 2) // as jsonReply says
	s.chat(acme, "hi", `"sessionId":"s"`)
	check("one that is saved", 2)
	s.chat(acme, "hi", `"sessionId":"s","saveToMemory":false`)
	check("one that isn't to be saved", 2)
	s.ok(s.post(acme, "/chat/completions/preview", chatBody("hi", `"sessionId":"s"`)))
	check("a preview", 0)

	upstream.replyWith(func(w http.ResponseWriter, _ *http.Request, body string) { streamReply(w, body) })
	quiet := ": hi\n\n" + delta("a") + delta("b") + finished + done
	if r := s.chat(acme, "hi", `"stream":true`); r.body != quiet {
		t.Errorf("the client didn't ask for the usage, and got %q", r.body)
	}
	if got := upstream.last(t).body; !gjson.Get(got, "stream_options.include_usage").Bool() {
		t.Errorf("the router wasn't asked for the usage: %s", got)
	}
	check("a stream", 42)
	r = s.chat(acme, "hi", `"stream":true,"sessionId":"s","stream_options":{"include_usage":false}`)
	if strings.Contains(r.body, `"usage"`) || strings.Count(r.body, "_metadata") != 1 {
		t.Errorf("got %q", r.body)
	}
	check("a stream that is saved", 42)
	r = s.chat(acme, "hi", `"stream":true,"stream_options":{"include_usage":true}`)
	if r.body != ": hi\n\n"+delta("a")+delta("b")+finished+usageChunk+done {
		t.Errorf("the client asked for the usage, and got %q", r.body)
	}
	check("a stream whose client asked", 42)

	// Nobody else's, and nothing is asked for of a plan without an allowance.
	if r := s.ok(s.get(beta, "/usage")); r.get("tokens").Raw != "null" {
		t.Errorf("got %s", r.body)
	}
	s.chat(beta, "hi", `"stream":true`)
	if got := upstream.last(t).body; strings.Contains(got, "stream_options") {
		t.Errorf("the request was changed: %s", got)
	}

	upstream.replyWith(func(w http.ResponseWriter, _ *http.Request, _ string) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, `{"error":{"message":"no"},"usage":{"prompt_tokens":5}}`)
	})
	s.post(acme, "/chat/completions", chatBody("hi", `"sessionId":"s"`))
	check("an error", 0)
}

func TestTokensAreCountedByUsWhereTheRouterDoesNot(t *testing.T) {
	t.Parallel()
	upstream := newFake(t)
	s := planned(t, upstream, gateway.Plan{TokensPerMonth: 1_000_000})
	text := strings.Repeat("word ", 500)
	for _, stream := range []bool{false, true} {
		upstream.replyWith(func(w http.ResponseWriter, _ *http.Request, _ string) {
			if stream {
				writeEvents(w, delta(text), finished, done)
				return
			}
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, strings.Replace(jsonReply(text), `"usage"`, `"x"`, 1))
		})
		for _, session := range []string{"", `,"sessionId":"s"`} {
			before := s.tokens(acme)
			s.chat(acme, text, fmt.Sprintf(`"stream":%v`, stream)+session)
			// What was added from the session counts too.
			if n := s.tokens(acme) - before; n < 1000 || n > 1100 && session == "" || n > 2200 {
				t.Errorf("stream=%v, session=%q: %d tokens counted", stream, session, n)
			}
		}
	}
	// A client that leaves pays for what it was given.
	release := make(chan bool)
	defer close(release)
	upstream.replyWith(func(w http.ResponseWriter, r *http.Request, _ string) {
		writeEvents(w, delta(text), delta("more"))
		select {
		case <-release:
		case <-r.Context().Done():
		}
	})
	before := s.tokens(acme)
	e := s.stream(acme, text, `"useRAG":false`)
	e.until("more")
	e.body.Close()
	eventually(t, "what was delivered is counted", func() bool { return s.tokens(acme) >= before+1000 })
}

func TestPastTheAllowanceNoModelIsCalled(t *testing.T) {
	t.Parallel()
	upstream := newFake(t)
	upstream.other = func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"object":"list","data":[{"usage":7}],"usage":{"prompt_tokens":6,"total_tokens":6}}`)
	}
	s := planned(t, upstream, gateway.Plan{TokensPerMonth: 9})
	r := s.ok(s.post(acme, "/embeddings", `{"model":"a/b","input":"x"}`))
	if r.get("data.0.usage").Int() != 7 {
		t.Errorf("got %s", r.body)
	}
	eventually(t, "the embedding is counted", func() bool { return s.tokens(acme) == 6 })
	s.chat(acme, "hi", `"sessionId":"s"`)
	s.chat(acme, "hi", "") // used are 8 of 9: the last one may go beyond
	calls := upstream.count()
	for _, r := range []reply{
		s.post(acme, "/chat/completions", chatBody("hi", "")),
		s.post(acme, "/chat/completions", chatBody("hi", `"sessionId":"s","stream":true`)),
		s.post(acme, "/embeddings", `{"model":"a/b","input":"x"}`),
		s.post(acme, "/responses", `{"model":"a/b","input":"x"}`),
	} {
		if r.status != http.StatusTooManyRequests || r.get("error.code").Str != "insufficient_quota" || r.get("error.type").Str != "insufficient_quota" ||
			r.get("error.param").Raw != "null" || r.header.Get("x-should-retry") != "false" || r.header.Get("x-ratelimit-limit-requests") != "1000" {
			t.Errorf("status %d, %v: %s", r.status, r.header, r.body)
		}
	}
	if upstream.count() != calls {
		t.Error("the model was called")
	}
	for _, path := range []string{"/models", "/sessions", "/files", "/usage"} {
		s.ok(s.get(acme, path))
	}
	s.ok(s.post(acme, "/chat/completions/preview", chatBody("hi", `"sessionId":"s"`)))
	u := s.ok(s.get(acme, "/usage"))
	if u.get("tokens.used").Int() != 10 || u.get("tokens.limit").Int() != 9 || u.get("tokens.remaining").Int() != 0 {
		t.Errorf("got %s", u.body)
	}
	reset := time.Unix(u.get("tokens.resets_at").Int(), 0).UTC()
	if until := time.Until(reset); reset.Day() != 1 || reset.Hour() != 0 || until < 0 || until > 31*24*time.Hour {
		t.Errorf("it resets at %s", reset)
	}
	s.chat(beta, "hi", "")
}

func TestResponsesAreCountedToo(t *testing.T) {
	t.Parallel()
	upstream := newFake(t)
	upstream.other = func(w http.ResponseWriter, r *http.Request) {
		writeEvents(w, "event: response.created\ndata: {\"response\":{\"usage\":null}}\n\n",
			"event: response.completed\ndata: {\"response\":{\"usage\":{\"input_tokens\":5,\"output_tokens\":7}}}\n\n")
	}
	s := planned(t, upstream, gateway.Plan{TokensPerMonth: 100})
	s.ok(s.post(acme, "/responses", `{"model":"a/b","stream":true}`))
	eventually(t, "the response is counted", func() bool { return s.tokens(acme) == 12 })
}

func TestAPlanMayNameModels(t *testing.T) {
	t.Parallel()
	upstream := newFake(t)
	upstream.other = func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		_, _ = w.Write(body)
	}
	s := planned(t, upstream, gateway.Plan{Models: []string{"demo/*", "openai/gpt-5-mini"}})
	s.chat(acme, "hi", `"models":["openai/gpt-5-mini"]`)
	form := func(model string) reply {
		var b bytes.Buffer
		w := multipart.NewWriter(&b)
		_ = w.WriteField("file", "...")
		_ = w.WriteField("model", model)
		_ = w.Close()
		r := s.request("POST", "/audio/transcriptions", acme, &b)
		r.Header.Set("Content-Type", w.FormDataContentType())
		return s.do(r)
	}
	for name, r := range map[string]reply{
		"chat":            s.post(acme, "/chat/completions", strings.Replace(chatBody("hi", ""), "demo/echo", "openai/gpt-5", 1)),
		"preview":         s.post(acme, "/chat/completions/preview", strings.Replace(chatBody("hi", ""), "demo/echo", "openai/gpt-5", 1)),
		"embeddings":      s.post(acme, "/embeddings", `{"model":"openai/e","input":"x"}`),
		"a fallback":      s.post(acme, "/chat/completions", chatBody("hi", `"models":["demo/echo","openai/gpt-5"]`)),
		"another case":    s.post(acme, "/responses", `{"model":"demo/a","MODEL":"openai/gpt-5"}`),
		"fallbacks' case": s.post(acme, "/responses", `{"model":"demo/a","Models":["openai/gpt-5"]}`),
		"one elsewhere":   s.post(acme, "/responses", `{"model":"demo/a","models":["openai/gpt-5"]}`),
		"named twice":     s.post(acme, "/responses", `{"model":"demo/a","model":"openai/e"}`),
		"named nowhere":   s.post(acme, "/responses", `{"input":"x"}`),
		"below a pattern": s.post(acme, "/responses", `{"model":"demo/a/b"}`),
		"no JSON":         s.post(acme, "/responses", `model=demo/a`),
		"a form":          form("openai/whisper"),
	} {
		if r.status != http.StatusNotFound || r.get("error.code").Str != "model_not_found" || r.get("error.param").Str != "model" {
			t.Errorf("%s: status %d: %s", name, r.status, r.body)
		}
	}
	const body = `{ "model":"openai/gpt-5-mini", "input":"x"}`
	if r := s.ok(s.post(acme, "/responses", body)); r.body != body {
		t.Errorf("the body came as %q", r.body)
	}
	s.ok(form("demo/whisper"))
	s.ok(s.post(beta, "/responses", `{"model":"openai/gpt-5"}`))
}

func TestAPlanBoundsFiles(t *testing.T) {
	t.Parallel()
	const chunk = 2048 + 4*testDimensions
	s := planned(t, newFake(t), gateway.Plan{Files: 2, FileSize: 1000, Storage: 1500 + 3*chunk}) // the first has two
	text := func(n int, c string) string { return strings.Repeat(c, n) }
	r := s.upload(acme, "large.txt", text(1001, "a"))
	if r.status != http.StatusRequestEntityTooLarge || r.get("error.param").Str != "file" {
		t.Errorf("status %d: %s", r.status, r.body)
	}
	first := s.ok(s.upload(acme, "one.txt", text(1000, "a ")[:1000]))
	if r := s.upload(acme, "two.txt", text(250, "b c ")[:501]); r.status != http.StatusBadRequest || r.get("error.code").Str != "storage_limit_exceeded" {
		t.Errorf("status %d: %s", r.status, r.body)
	}
	s.ok(s.upload(acme, "two.txt", "some words"))
	if r := s.upload(acme, "three.txt", "more words"); r.status != http.StatusBadRequest || r.get("error.code").Str != "file_limit_exceeded" {
		t.Errorf("status %d: %s", r.status, r.body)
	}
	again := s.ok(s.upload(acme, "one.txt", text(1000, "a ")[:1000]))
	if again.get("id").Str != first.get("id").Str {
		t.Error("the same file again is another one")
	}
	u := s.ok(s.get(acme, "/usage"))
	for path, want := range map[string]int64{
		"files.used": 2, "files.limit": 2, "files.remaining": 0, "storage.used": 1010 + 3*chunk, "storage.limit": 1500 + 3*chunk, "storage.remaining": 490,
	} {
		if u.get(path).Int() != want || !u.get(path).Exists() {
			t.Errorf("%s: want %d in %s", path, want, u.body)
		}
	}
	s.ok(s.do(s.request("DELETE", "/files/"+first.get("id").Str, acme, nil)))
	if used := s.ok(s.get(acme, "/usage")).get("storage.used").Int(); used != 10+chunk {
		t.Errorf("after a deletion %d bytes are used", used)
	}
	s.ok(s.upload(acme, "three.txt", "more words"))
	for range 3 {
		s.ok(s.upload(beta, "large.txt", text(4000, "a ")))
	}
}

func TestStorageCountsWhatIsStored(t *testing.T) {
	t.Parallel()
	const storage = 300_000
	text := strings.Repeat("Some words that aren't many by themselves. ", 1500)
	for i := range 1500 { // no two sentences the same
		text = strings.Replace(text, "Some", fmt.Sprint("S", i), 1)
	}
	m := &originals{path: filepath.Join(t.TempDir(), "b.db")}
	upstream := newFake(t)
	onTime := onPlan(gateway.Plan{Storage: storage})
	for name, wait := range map[string]time.Duration{"in time": 0, "late": time.Nanosecond} {
		t.Run(name, func(t *testing.T) {
			s := start(t, options{upstream: upstream.URL, store: m.open, adjust: func(o *gateway.Options) { onTime(o); o.UploadWait = wait }})
			r := s.upload(acme, "a.txt", text)
			if len(text) > storage/3 {
				t.Fatalf("the text itself has %d bytes", len(text))
			}
			const why = "file storage quota"
			if wait == 0 {
				if r.status != http.StatusBadRequest || r.get("error.code").Str != "storage_limit_exceeded" || !strings.Contains(r.get("error.message").Str, why) {
					t.Errorf("status %d: %s", r.status, r.body)
				}
			} else {
				eventually(t, "the file has failed", func() bool {
					f := s.ok(s.get(acme, "/files/"+r.get("id").Str))
					return f.get("status").Str == "error" && strings.Contains(f.get("status_details").Str, why)
				})
			}
			s.ok(s.upload(acme, name+".txt", text[:300]))
			want := int64(300 + 2048 + 4*testDimensions)
			if wait != 0 {
				want += int64(len(text)) // of a file that failed, the original is kept
			}
			eventually(t, "what is stored is counted", func() bool {
				return s.ok(s.get(acme, "/usage")).get("storage.used").Int() == want
			})
			s.ok(s.do(s.request("DELETE", "/files/"+s.get(acme, "/files").get("data.0.id").Str, acme, nil)))
		})
	}
}

func TestAnUploadListsNoFiles(t *testing.T) {
	t.Parallel()
	m := &originals{path: filepath.Join(t.TempDir(), "b.db")}
	s := start(t, options{upstream: newFake(t).URL, store: m.open, adjust: onPlan(gateway.Plan{Files: 2, Storage: 1 << 20})})
	s.ok(s.upload(acme, "a.txt", "some words"))
	s.ok(s.upload(acme, "b.txt", "other words"))
	if r := s.upload(acme, "c.txt", "more words"); r.get("error.code").Str != "file_limit_exceeded" {
		t.Errorf("status %d: %s", r.status, r.body)
	}
	s.ok(s.upload(acme, "a.txt", "some words"))
	s.ok(s.get(acme, "/usage"))
	if n := m.listed.Load(); n != 0 {
		t.Errorf("they were listed %d times", n)
	}
}

func TestUsageTellsTheCallerItsPlan(t *testing.T) {
	t.Parallel()
	s := start(t, options{upstream: newFake(t).URL})
	s.ok(s.get(tiny, "/sessions"))
	r := s.ok(s.get(tiny, "/usage"))
	for path, want := range map[string]string{
		"object": `"usage"`, "plan": `"free"`, "requests.limit": "10", "requests.used": "2", "requests.remaining": "8",
		"tokens": "null", "files.used": "0", "files.limit": "null", "files.remaining": "null", "storage.used": "0", "storage.limit": "null",
	} {
		if r.get(path).Raw != want {
			t.Errorf("%s: want %s in %s", path, want, r.body)
		}
	}
	if until := time.Until(time.Unix(r.get("requests.resets_at").Int(), 0)); until < 50*time.Second || until > 62*time.Second {
		t.Errorf("the rate resets in %s", until)
	}
	if r := s.post(tiny, "/usage", "{}"); r.status != http.StatusMethodNotAllowed || r.header.Get("Allow") != "GET, HEAD" {
		t.Errorf("status %d", r.status)
	}
	if r := s.do(s.request("GET", "/usage", "wrong", nil)); r.status != http.StatusUnauthorized {
		t.Errorf("status %d", r.status)
	}
}

func TestTheAllowanceOnRedis(t *testing.T) {
	t.Parallel()
	upstream := newFake(t)
	o := options{upstream: upstream.URL, store: redisAt(redistest.Start(t).URL), adjust: onPlan(gateway.Plan{TokensPerMonth: 5})}
	s := start(t, o)
	s.chat(acme, "hi", `"sessionId":"s"`)
	s.load(o) // as another proxy would, it knows nothing but what the store tells
	s.chat(acme, "hi", "")
	s.chat(acme, "hi", `"sessionId":"s"`)
	if r := s.post(acme, "/chat/completions", chatBody("hi", "")); r.get("error.code").Str != "insufficient_quota" {
		t.Errorf("status %d: %s", r.status, r.body)
	}
	if u := s.ok(s.get(acme, "/usage")); u.get("tokens.used").Int() != 6 || u.get("files.used").Int() != 0 {
		t.Errorf("got %s", u.body)
	}
}

func TestAPlanGivesSessionsATimeToLive(t *testing.T) {
	t.Parallel()
	upstream := newFake(t)
	keptFor := func(d time.Duration) func(*gateway.Options) {
		return func(o *gateway.Options) {
			o.Plans = map[string]gateway.Plan{"enterprise": {RequestsPerMinute: 1000, SessionsTTL: d}}
		}
	}
	brief := options{upstream: upstream.URL, store: database(filepath.Join(t.TempDir(), "b.db")), adjust: keptFor(50 * time.Millisecond)}
	s := start(t, brief)
	gone := func(session string) {
		t.Helper()
		eventually(t, session+" is gone", func() bool { return s.get(acme, "/sessions/"+session).status == http.StatusNotFound })
	}
	s.chat(acme, "one", `"sessionId":"chat"`)
	s.importInto("imported", dialogue(1, ""))
	gone("chat")
	gone("imported")
	if r := s.get(acme, "/sessions"); r.get("data.#").Int() != 0 {
		t.Errorf("listed are %s", r.body)
	}
	if n := s.chat(acme, "two", `"sessionId":"chat"`).get("_metadata.memory.historyMessages").Int(); n != 0 {
		t.Errorf("%d messages were supplied", n)
	}
	// Another plan counts from the next exchange on.
	brief.adjust = keptFor(30 * 24 * time.Hour)
	s.load(brief)
	gone("chat")
	began := time.Now()
	s.chat(acme, "three", `"sessionId":"chat"`)
	d := s.ok(s.get(acme, "/sessions/chat"))
	if life := time.Unix(d.get("expires_at").Int(), 0).Sub(began); life < 30*24*time.Hour-time.Minute || life > 30*24*time.Hour+time.Minute {
		t.Errorf("session %s", d.body)
	}
	brief.adjust = nil
	s.load(brief)
	s.chat(acme, "four", `"sessionId":"chat"`)
	if d := s.ok(s.get(acme, "/sessions/chat")); d.get("expires_at").Raw != "null" || d.get("messages").Int() != 4 {
		t.Errorf("session %s", d.body)
	}
}
