package caddymodule_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	_ "github.com/caddyserver/caddy/v2/modules/standard"
	"github.com/tidwall/gjson"

	_ "github.com/backstory-proxy/backstory/caddymodule"
)

func TestMain(m *testing.M) {
	if benchChild() || commandChild() || serveChild() || extractChild() {
		return
	}
	home, err := os.MkdirTemp("", "backstory-test-")
	if err != nil {
		panic(err)
	}
	for _, name := range []string{"HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME"} {
		os.Setenv(name, home)
	}
	code := m.Run()
	os.RemoveAll(home)
	os.Exit(code)
}

// The keys of the sites under test.
const (
	acme   = "key-of-acme"
	beta   = "key-of-beta"
	tiny   = "key-of-tiny" // on the free plan
	router = "sk-router"
)

// site is a running Caddy with Backstory, on a loopback port. A process runs
// one at a time.
type site struct {
	t      *testing.T
	url    string // ends in /api/v1
	root   string
	log    string // path of the log file
	client http.Client
}

// options adjust a site; the zero value is a fresh store and hashing.
type options struct {
	upstream string // URL of the model router
	store    string // the store directive's arguments; default: a fresh file
	app      string // more options of the app
	site     string // more directives of the site
	pauses   string // timeouts of the server; default: Caddy's
	behind   string // what stands behind backstory; default: rewrite and reverse_proxy
	keys     string // default: acme, beta and tiny
	admin    string // the address of the admin API; default: none
}

func start(t *testing.T, o options) *site {
	t.Helper()
	s := &site{t: t, log: filepath.Join(t.TempDir(), "log")}
	s.load(o)
	t.Cleanup(func() {
		if err := caddy.Stop(); err != nil {
			t.Errorf("stop: %v", err)
		}
	})
	return s
}

// load runs a configuration, in place of the one that runs.
func (s *site) load(o options) {
	s.t.Helper()
	if o.store == "" {
		o.store = "sqlite " + filepath.Join(s.t.TempDir(), "backstory.db")
	}
	o.app = withJournal(s.t, o.store, o.app)
	if o.keys == "" {
		o.keys = "key " + acme + " acme enterprise\nkey " + beta + " beta enterprise\nkey " + tiny + " tiny free"
	}
	if o.admin == "" {
		o.admin = "off"
	}
	if o.behind == "" {
		o.behind = "rewrite * /v1{uri}\nreverse_proxy " + o.upstream
	}
	config := fmt.Sprintf(`{
		admin %s
		persist_config off
		auto_https off
		servers {
			timeouts {
				%s
			}
		}
		backstory {
			store %s
			%s
			%s
		}
		log {
			level DEBUG
			output file %s
			format filter {
				request>headers>Servicekey replace REDACTED
			}
		}
	}
	http://127.0.0.1:0 {
		bind 127.0.0.1
		log
		%s
		backstory_health
		handle_path /api/v1/* {
			route {
				backstory
				%s
			}
		}
		handle {
			error 404
		}
		handle_errors {
			backstory_errors
		}
	}`, o.admin, o.pauses, o.store, o.keys, o.app, s.log, o.site, o.behind)
	s.run(config)
}

// withJournal gives a site a journal of its own, where it would have one in the
// working directory.
func withJournal(t *testing.T, store, app string) string {
	if strings.HasPrefix(store, "sqlite") || strings.Contains(app, "journal ") {
		return app
	}
	return app + "\njournal " + filepath.Join(t.TempDir(), "journal.db")
}

// run runs a Caddyfile with one site.
func (s *site) run(config string) {
	s.t.Helper()
	adapter := caddyfile.Adapter{ServerType: httpcaddyfile.ServerType{}}
	adapted, _, err := adapter.Adapt([]byte(config), nil)
	if err != nil {
		s.t.Fatalf("adapt: %v", err)
	}
	if err := caddy.Load(adapted, true); err != nil {
		s.t.Fatalf("load: %v", err)
	}
	app, err := caddy.ActiveContext().App("http")
	if err != nil {
		s.t.Fatal(err)
	}
	for _, server := range app.(*caddyhttp.App).Servers {
		s.root = "http://" + server.Listeners()[0].Addr().String()
		s.url = s.root + "/api/v1"
	}
}

// reply is what a request got, read to its end.
type reply struct {
	status int
	header http.Header
	body   string
}

func (r reply) get(path string) gjson.Result { return gjson.Get(r.body, path) }

// request sends a request with both keys.
func (s *site) request(method, path, key string, body io.Reader, header ...string) *http.Request {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), method, s.url+path, body)
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("serviceKey", key)
	r.Header.Set("Authorization", "Bearer "+router)
	for i := 0; i+1 < len(header); i += 2 {
		if header[i+1] == "" {
			r.Header.Del(header[i])
			continue
		}
		r.Header.Set(header[i], header[i+1])
	}
	return r
}

func (s *site) do(r *http.Request) reply {
	s.t.Helper()
	res, err := s.client.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		s.t.Fatalf("read the reply: %v", err)
	}
	return reply{res.StatusCode, res.Header, string(body)}
}

func (s *site) post(key, path, body string, header ...string) reply {
	s.t.Helper()
	r := s.request("POST", path, key, strings.NewReader(body), header...)
	r.Header.Set("Content-Type", "application/json")
	return s.do(r)
}

func (s *site) get(key, path string) reply {
	s.t.Helper()
	return s.do(s.request("GET", path, key, nil))
}

// chat sends a chat request that must succeed; extra are more members of its
// body, such as `"sessionId":"s"`.
func (s *site) chat(key, text, extra string) reply {
	s.t.Helper()
	return s.ok(s.post(key, "/chat/completions", chatBody(text, extra)))
}

func (s *site) ok(r reply) reply {
	s.t.Helper()
	if r.status != http.StatusOK {
		s.t.Fatalf("status %d: %s", r.status, r.body)
	}
	return r
}

func chatBody(text, extra string) string {
	quoted, _ := json.Marshal(text)
	if extra != "" {
		extra = "," + extra
	}
	return `{"model":"demo/echo","messages":[{"role":"user","content":` + string(quoted) + `}]` + extra + `}`
}

// upload sends a file.
func (s *site) upload(key, name, content string) reply {
	s.t.Helper()
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	f, _ := w.CreateFormFile("file", name)
	_, _ = io.WriteString(f, content)
	_ = w.WriteField("purpose", "assistants")
	_ = w.Close()
	r := s.request("POST", "/files", key, &b)
	r.Header.Set("Content-Type", w.FormDataContentType())
	return s.do(r)
}

// logged is what the site has logged so far.
func (s *site) logged() string {
	b, err := os.ReadFile(s.log)
	if err != nil {
		s.t.Fatal(err)
	}
	return string(b)
}

// fake is a model router whose replies a test writes. It keeps the chat
// requests that it got.
type fake struct {
	*httptest.Server
	mu    sync.Mutex
	chats []received
	// answer replies to chat requests; default: text "ok".
	answer func(w http.ResponseWriter, r *http.Request, body string)
	// other replies to everything else; default: 404.
	other http.HandlerFunc
}

type received struct {
	header http.Header
	path   string
	body   string
}

func newFake(t *testing.T) *fake {
	f := &fake{}
	f.Server = httptest.NewServer(f)
	t.Cleanup(f.Close)
	return f
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !strings.HasSuffix(r.URL.Path, "/chat/completions") {
		if f.other == nil {
			http.NotFound(w, r)
			return
		}
		f.other(w, r)
		return
	}
	body, _ := io.ReadAll(r.Body)
	f.mu.Lock()
	f.chats = append(f.chats, received{r.Header.Clone(), r.URL.Path, string(body)})
	answer := f.answer
	f.mu.Unlock()
	if answer == nil {
		answer = func(w http.ResponseWriter, _ *http.Request, _ string) { writeReply(w, "ok") }
	}
	answer(w, r, string(body))
}

// last is the newest chat request.
func (f *fake) last(t *testing.T) received {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.chats) == 0 {
		t.Fatal("the router got no chat request")
	}
	return f.chats[len(f.chats)-1]
}

func (f *fake) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.chats)
}

func (f *fake) replyWith(answer func(w http.ResponseWriter, r *http.Request, body string)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.answer = answer
}

// said are the messages of a request as "role: content" lines.
func (r received) said() string {
	var b strings.Builder
	for _, m := range gjson.Get(r.body, "messages").Array() {
		b.WriteString(m.Get("role").String() + ": " + m.Get("content").String() + "\n")
	}
	return b.String()
}

func jsonReply(text string) string {
	quoted, _ := json.Marshal(text)
	return `{"id":"c-1","object":"chat.completion","created":1,"model":"demo/echo","choices":[{"index":0,"message":{"role":"assistant","content":` +
		string(quoted) + `},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}`
}

func writeReply(w http.ResponseWriter, text string) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, jsonReply(text))
}

// delta is an event with a piece of text.
func delta(text string) string {
	quoted, _ := json.Marshal(text)
	return `data: {"id":"c-1","object":"chat.completion.chunk","created":1,"model":"demo/echo","choices":[{"index":0,"delta":{"content":` + string(quoted) + `},"finish_reason":null}]}` + "\n\n"
}

const (
	finished = `data: {"id":"c-1","object":"chat.completion.chunk","created":1,"model":"demo/echo","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\n"
	done     = "data: [DONE]\n\n"
)

// writeEvents sends events, each at once.
func writeEvents(w http.ResponseWriter, events ...string) {
	w.Header().Set("Content-Type", "text/event-stream")
	for _, e := range events {
		_, _ = io.WriteString(w, e)
		w.(http.Flusher).Flush()
	}
}

// events is a stream under way.
type events struct {
	t    *testing.T
	body io.ReadCloser
	in   *bufio.Reader
}

func (s *site) stream(key, text, extra string) *events {
	s.t.Helper()
	r := s.request("POST", "/chat/completions", key, strings.NewReader(chatBody(text, `"stream":true,`+extra)))
	res, err := s.client.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { res.Body.Close() })
	if res.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(res.Body)
		s.t.Fatalf("status %d: %s", res.StatusCode, body)
	}
	return &events{s.t, res.Body, bufio.NewReader(res.Body)}
}

// next reads one event, or a comment with the line that ends it.
func (e *events) next() string {
	e.t.Helper()
	var b strings.Builder
	for {
		line, err := e.in.ReadString('\n')
		if err != nil {
			e.t.Fatalf("the stream ended with %v after %q", err, b.String())
		}
		if line == "\n" {
			return b.String()
		}
		b.WriteString(line)
	}
}

// until reads up to the event that has the text, and returns all of it.
func (e *events) until(text string) string {
	e.t.Helper()
	var b strings.Builder
	for {
		event := e.next()
		b.WriteString(event + "\n")
		if strings.Contains(event, text) {
			return b.String()
		}
	}
}

// eventually polls for what happens in the background.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); <-tick.C {
		if ok() {
			return
		}
	}
	t.Fatalf("it never happened: %s", what)
}

// validate adapts a configuration and provisions it, as `caddy validate` does.
func validate(config string) error {
	adapter := caddyfile.Adapter{ServerType: httpcaddyfile.ServerType{}}
	adapted, _, err := adapter.Adapt([]byte(config), nil)
	if err != nil {
		return err
	}
	var c caddy.Config
	if err := json.Unmarshal(adapted, &c); err != nil {
		return err
	}
	return caddy.Validate(&c)
}

// equalJSON compares values as they are decoded.
func equalJSON(a, b any) bool {
	x, _ := json.Marshal(a)
	y, _ := json.Marshal(b)
	return bytes.Equal(x, y)
}
