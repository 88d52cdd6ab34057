package gateway_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/tidwall/gjson"
)

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
