package caddymodule_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/klauspost/compress/gzip"
)

// stepHeader tells the router which step a request belongs to. It passes
// through like any header that nobody knows.
const stepHeader = "X-Replay-Step"

// scriptedRouter answers as the steps say, and keeps what it got.
type scriptedRouter struct {
	*httptest.Server
	s *script
	t *testing.T

	mu    sync.Mutex
	got   map[string][]received // by step
	said  map[string][]byte     // the bodies of its answers, by step
	holds map[string]*hold      // by step
	kill  func()                // of the store's server
	embed embeddings
}

// hold is a place where an answer waits.
type hold struct {
	arrived chan struct{} // closed when the answer waits
	release chan struct{}
}

func newScriptedRouter(t *testing.T, s *script) *scriptedRouter {
	f := &scriptedRouter{s: s, t: t, got: map[string][]received{}, said: map[string][]byte{}, holds: map[string]*hold{}}
	f.Server = httptest.NewServer(f)
	t.Cleanup(f.Close)
	return f
}

// holdOf is where the answer of a step waits.
func (f *scriptedRouter) holdOf(step string) *hold {
	f.mu.Lock()
	defer f.mu.Unlock()
	h := f.holds[step]
	if h == nil {
		h = &hold{make(chan struct{}), make(chan struct{})}
		f.holds[step] = h
	}
	return h
}

// take returns what the router got in a step and said to it, and forgets it.
func (f *scriptedRouter) take(step string) (got []received, said []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	got, said = f.got[step], f.said[step]
	delete(f.got, step)
	delete(f.said, step)
	return got, said
}

// answering keeps what is written.
type answering struct {
	http.ResponseWriter
	f    *scriptedRouter
	step string
}

func (n answering) Write(b []byte) (int, error) {
	n.f.mu.Lock()
	n.f.said[n.step] = append(n.f.said[n.step], b...)
	n.f.mu.Unlock()
	return n.ResponseWriter.Write(b)
}

func (n answering) Flush() { n.ResponseWriter.(http.Flusher).Flush() }

func (f *scriptedRouter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	name := r.Header.Get(stepHeader)
	f.mu.Lock()
	f.got[name] = append(f.got[name], received{r.Header.Clone(), r.Method + " " + r.URL.RequestURI(), string(body)})
	f.mu.Unlock()
	n, err := strconv.Atoi(name)
	if err != nil || n >= len(f.s.steps) {
		http.Error(w, "no such step", http.StatusTeapot)
		return
	}
	step := f.s.steps[n]
	path, _, _ := strings.Cut(step.path, "?")
	w = answering{w, f, name}
	own := strings.HasSuffix(r.URL.Path, "/chat/completions") || r.URL.EscapedPath() == "/v1"+path
	switch {
	case own && step.answer != nil:
		f.answer(w, r, step.answer, name, body)
	case strings.HasSuffix(r.URL.Path, "/chat/completions"):
		f.say(w, "ok", body)
	case r.URL.Path == "/v1/embeddings":
		r.Body = io.NopCloser(bytes.NewReader(body))
		f.embed.ServeHTTP(w, r)
	case r.URL.Path == "/v1/models" && f.s.models != "":
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, f.s.models)
	default:
		http.NotFound(w, r)
	}
}

// say answers a chat request with a text, as it was asked to.
func (f *scriptedRouter) say(w http.ResponseWriter, text string, body []byte) {
	var asked struct{ Stream bool }
	if _ = json.Unmarshal(body, &asked); !asked.Stream {
		writeReply(w, text)
		return
	}
	var list []string
	for _, word := range strings.SplitAfter(text, " ") {
		list = append(list, delta(word))
	}
	writeEvents(w, append(list, finished, done)...)
}

func (f *scriptedRouter) answer(w http.ResponseWriter, r *http.Request, a *answer, step string, body []byte) {
	for name, values := range a.header {
		w.Header()[name] = values
	}
	send := func(text string) {
		_, _ = io.WriteString(w, text)
		w.(http.Flusher).Flush()
	}
	if len(a.lines) > 0 && f.command(r, a.lines[0], step) {
		a = &answer{a.kind, a.text, a.header, a.lines[1:]}
	}
	switch a.kind {
	case "say":
		f.say(w, a.text, body)
	case "hang":
		<-r.Context().Done()
	case "events", "chunks":
		if w.Header().Get("Content-Type") == "" {
			w.Header().Set("Content-Type", "text/event-stream")
		}
		for _, line := range a.lines {
			if f.command(r, line, step) {
				continue
			}
			text := line + "\n\n"
			if a.kind == "chunks" {
				var err error
				if text, err = strconv.Unquote(line); err != nil {
					f.t.Errorf("%s: %v", line, err)
				}
			}
			send(text)
		}
	default:
		status, err := strconv.Atoi(a.kind)
		if err != nil {
			f.t.Errorf("the answer %q is none", a.kind)
		}
		text, broken := strings.CutSuffix(strings.Join(a.lines, "\n"), "!break")
		b := []byte(text)
		if w.Header().Get("Content-Encoding") == "gzip" {
			b = zipped(b)
		}
		if broken {
			w.Header().Set("Content-Length", strconv.Itoa(len(b)+100))
		}
		w.WriteHeader(status)
		_, _ = w.Write(b)
		if broken {
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}
	}
}

// command runs a line of an answer that is one.
func (f *scriptedRouter) command(r *http.Request, line, step string) bool {
	switch line {
	case "!break":
		panic(http.ErrAbortHandler)
	case "!left": // the client is gone
		<-r.Context().Done()
	case "!kill": // the store's server
		f.kill()
	case "!hold": // until the script finishes the request
		h := f.holdOf(step)
		close(h.arrived)
		<-h.release
	default:
		return false
	}
	return true
}

func zipped(b []byte) []byte {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, _ = z.Write(b)
	_ = z.Close()
	return packed.Bytes()
}
