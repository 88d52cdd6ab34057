package gateway_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"mime/multipart"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"
)

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
	return s.do(s.uploading(key, name, content))
}

// uploading is the request of an upload.
func (s *site) uploading(key, name, content string) *http.Request {
	s.t.Helper()
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	f, _ := w.CreateFormFile("file", name)
	_, _ = io.WriteString(f, content)
	_ = w.WriteField("purpose", "assistants")
	_ = w.Close()
	r := s.request("POST", "/files", key, &b)
	r.Header.Set("Content-Type", w.FormDataContentType())
	return r
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

// equalJSON compares values as they are decoded.
func equalJSON(a, b any) bool {
	x, _ := json.Marshal(a)
	y, _ := json.Marshal(b)
	return bytes.Equal(x, y)
}
