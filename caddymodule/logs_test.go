package caddymodule_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/tidwall/gjson"
)

// shipped is the Caddyfile of this repository, with a few lines changed so that
// a test can run it.
func shipped(t *testing.T, changes ...string) string {
	t.Helper()
	b, err := os.ReadFile("../Caddyfile")
	if err != nil {
		t.Fatal(err)
	}
	config := string(b)
	for i := 0; i < len(changes); i += 2 {
		if !strings.Contains(config, changes[i]) {
			t.Fatalf("the Caddyfile no longer has %q", changes[i])
		}
		config = strings.Replace(config, changes[i], changes[i+1], 1)
	}
	return config
}

// What must never stand in a log, in the words of the requests below.
var secrets = map[string]string{
	"the service key":        acme,
	"a wrong service key":    "not-a-key-of-ours",
	"a key in a URL":         "key-in-a-url",
	"the router's key":       router,
	"a message":              "zanzibar",
	"a reply":                "quagmire",
	"a session's id":         "ada-session-77",
	"the text of a file":     "hippopotamus",
	"the name of a file":     "salaries-2026",
	"the text searched for":  "xylophone",
	"a parameter's value":    "bogus-value",
	"an error of the router": "router-says-no",
}

func TestTheLogsKeepSecrets(t *testing.T) {
	upstream := newFake(t)
	t.Setenv("SERVICE_KEY", acme)
	dir := t.TempDir()
	s := &site{t: t, log: filepath.Join(dir, "log")}
	own := filepath.Join(dir, "own")
	run(t, s, shipped(t,
		"admin localhost:2019", "admin off\npersist_config off\nauto_https off",
		"\tbackstory {\n", "\tbackstory {\nstore flaky "+filepath.Join(dir, "b.db")+"\njournal off\n",
		"import backstory_redact\n\t}\n}", "import backstory_redact\nlevel DEBUG\noutput file "+s.log+"\n}\n}",
		// The site gets a log of its own, as an operator's may have.
		"http://:8080 {\n\tlog\n", "http://127.0.0.1:0 {\nbind 127.0.0.1\nlog\nlog own {\nlevel DEBUG\noutput file "+own+"\nimport backstory_redact\n}\n",
		"{$ROUTER_URL:http://127.0.0.1:8081}", upstream.URL,
		"http://127.0.0.1:8081 {\n\tbind 127.0.0.1\n\tbackstory_demo_router\n}", "",
	))
	scenario(t, s, upstream)

	for _, file := range []string{s.log, own} {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		log := string(b)
		for what, secret := range secrets {
			if i := strings.Index(log, secret); i >= 0 {
				start, end := strings.LastIndexByte(log[:i], '\n')+1, i+strings.IndexByte(log[i:], '\n')
				t.Errorf("%s holds %s: %s", filepath.Base(file), what, log[start:end])
			}
		}
		for _, want := range []string{"REDACTED", "/sessions/REDACTED", "/sessions?REDACTED", `"tenant":"default"`} {
			if !strings.Contains(log, want) {
				t.Errorf("%s doesn't hold %s: nothing was tested", filepath.Base(file), want)
			}
		}
	}
	for _, want := range []string{`"level":"debug"`, "upstream roundtrip", "request failed", "the disk is on fire", "was not saved"} {
		if !strings.Contains(s.logged(), want) {
			t.Errorf("the log doesn't hold %s: nothing was tested", want)
		}
	}
}

// scenario sends requests of all kinds, with something secret in each.
func scenario(t *testing.T, s *site, upstream *fake) {
	const session = `"sessionId":"ada-session-77"`
	upstream.replyWith(func(w http.ResponseWriter, _ *http.Request, _ string) { writeReply(w, "quagmire") })
	s.ok(s.upload(acme, "salaries-2026.md", "The hippopotamus earns nothing."))
	s.upload(acme, "salaries-2026.xyz", "hippopotamus \x00\x01")
	s.chat(acme, "zanzibar", session+`,"ragQuery":"xylophone"`)
	s.chat(acme, "zanzibar", session)
	s.ok(s.post(acme, "/chat/completions", chatBody("zanzibar", ""), "X-Backstory-Session-Id", "ada-session-77", "X-Backstory-RAG-Query", "xylophone"))
	s.ok(s.post(acme, "/chat/completions/preview", chatBody("zanzibar", session)))
	s.ok(s.post(acme, "/files/search", `{"query":"hippopotamus xylophone"}`))
	for _, path := range []string{
		"/sessions", "/sessions?limit=1&after=ada-session-77", "/sessions/ada-session-77", "/sessions/ada-session-77/messages",
		"/sessions/ada-session-77/nothing", "/sessions/ada-session-77%2Fmore", "/sessions/ada-session-77/messages?limit=0",
	} {
		s.get(acme, path)
	}
	s.do(s.request("PUT", "/sessions/ada-session-77", acme, nil))
	s.do(s.request("DELETE", "/sessions/ada-session-77", acme, nil))

	for _, body := range []string{
		`{"model":"bogus-value","messages":[{"role":"user","content":"zanzibar"}]}`,
		`{"model":"a/b","messages":[{"role":"user","content":"zanzibar"}],"temperature":"bogus-value"}`,
		`{"model":"a/b","messages":[{"role":"user","content":{"zanzibar":1}}]}`,
		`{"model":"a/b","messages":["zanzibar"`,
	} {
		if r := s.post(acme, "/chat/completions", body); r.status != http.StatusBadRequest {
			t.Errorf("status %d", r.status)
		}
	}
	s.post("not-a-key-of-ours", "/chat/completions", chatBody("zanzibar", session))
	for _, query := range []string{
		"?serviceKey=key-in-a-url", "?a=b&SERVICEKEY=key-in-a-url", "?%73erviceKey=key-in-a-url", "?key=" + acme, "?" + acme, "?a;servicekey=key-in-a-url",
	} {
		for _, key := range []string{acme, ""} {
			r := s.post(key, "/chat/completions"+query, chatBody("zanzibar", session), "serviceKey", key)
			if r.status != http.StatusUnauthorized || key == acme && !strings.Contains(r.get("error.message").Str, "header serviceKey") {
				t.Errorf("%s: status %d: %s", query, r.status, r.body)
			}
		}
	}
	s.post(acme, "/chat/completions", chatBody("zanzibar", session), "Authorization", "Bearer "+acme)

	upstream.replyWith(func(w http.ResponseWriter, r *http.Request, _ string) {
		writeEvents(w, delta("quagmire"))
		<-r.Context().Done()
	})
	e := s.stream(acme, "zanzibar", session)
	e.until("quagmire")
	e.body.Close()
	eventually(t, "the abandoned stream is saved", func() bool { return s.get(acme, "/sessions/ada-session-77").status == http.StatusOK })

	upstream.replyWith(func(w http.ResponseWriter, _ *http.Request, _ string) {
		writeEvents(w, delta("quagmire"), finished, done)
	})
	failAppend.Store(true)
	s.chat(acme, "zanzibar", `"stream":true,`+session)
	failAppend.Store(false)
	failGather.Store(true)
	s.post(acme, "/chat/completions", chatBody("zanzibar", session))
	failGather.Store(false)
	upstream.replyWith(func(w http.ResponseWriter, _ *http.Request, _ string) {
		http.Error(w, `{"error":{"message":"router-says-no to zanzibar"}}`, http.StatusBadGateway)
	})
	s.post(acme, "/chat/completions", chatBody("zanzibar", session))
	upstream.replyWith(func(http.ResponseWriter, *http.Request, string) { panic(http.ErrAbortHandler) })
	s.post(acme, "/chat/completions", chatBody("zanzibar", session))
	s.post(acme, "/responses", `{"input":"zanzibar"}`)
	upstream.Close()
	s.post(acme, "/chat/completions", chatBody("zanzibar", session))
}

func TestTheAccessLogTellsOfARequest(t *testing.T) {
	upstream := newFake(t)
	upstream.replyWith(func(w http.ResponseWriter, _ *http.Request, _ string) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(strings.Replace(jsonReply("ok"), `"prompt_tokens":1,"completion_tokens":1`, `"prompt_tokens":70,"completion_tokens":7`, 1)))
	})
	s := start(t, options{upstream: upstream.URL})
	s.ok(s.upload(acme, "f.md", "The refund window is 30 days."))
	s.chat(acme, "hi", `"sessionId":"s"`)
	r := s.chat(acme, "refund window", `"sessionId":"s"`)
	s.post(tiny, "/chat/completions", "nonsense")

	var lines []gjson.Result
	eventually(t, "the requests are logged", func() bool {
		lines = lines[:0]
		for line := range strings.Lines(s.logged()) {
			if b := gjson.Get(line, "backstory"); b.Exists() && gjson.Get(line, "msg").Str == "handled request" {
				lines = append(lines, b)
			}
		}
		return len(lines) == 4
	})
	b := lines[2]
	context := r.get("_metadata.context")
	for path, want := range map[string]any{
		"request_id": r.header.Get("X-Request-Id"), "tenant": "acme", "plan": "enterprise", "endpoint": "chat", "outcome": "ok",
		"model": "demo/echo", "context_tokens": context.Get("totalTokens").Value(), "history_messages": 2.0, "chunks": 1.0,
		"truncated": false, "tokens_in": 70.0, "tokens_out": 7.0,
	} {
		if got := b.Get(path).Value(); got != want {
			t.Errorf("%s is %v, want %v", path, got, want)
		}
	}
	if id := b.Get("session").Str; len(id) != 16 || id != lines[1].Get("session").Str {
		t.Errorf("the session is %q, and was %q", id, lines[1].Get("session").Str)
	}
	for _, stage := range []string{"auth", "gather", "search", "assemble", "router", "save"} {
		if !b.Get("ms." + stage).Exists() {
			t.Errorf("no time of %s: %s", stage, b)
		}
	}
	if o := lines[3]; o.Get("outcome").Str != "invalid" || o.Get("plan").Str != "free" || o.Get("ms.router").Exists() {
		t.Errorf("the invalid request: %s", o)
	}
	// What is known before the reply begins stands in its header.
	timing := r.header.Get("Server-Timing")
	for _, stage := range []string{"auth;dur=", ", gather;dur=", ", search;dur=", ", assemble;dur=", ", router;dur=", ", save;dur="} {
		if !strings.Contains(timing, stage) {
			t.Errorf("Server-Timing is %q", timing)
		}
	}
}

// run runs a Caddyfile until the test ends.
func run(t *testing.T, s *site, config string) {
	t.Helper()
	s.run(config)
	t.Cleanup(func() {
		if err := caddy.Stop(); err != nil {
			t.Errorf("stop: %v", err)
		}
	})
}
