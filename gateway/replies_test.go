package gateway_test

import (
	"bytes"
	"io"
	"mime/multipart"
	"net/http"
	"strings"
	"testing"
)

// A router that compresses although it wasn't asked to, or that answers with
// something else than a completion, is passed on as it is; and the client and
// the operator are told that nothing was kept.
func TestAReplyThatCantBeReadPassesAndSaysSo(t *testing.T) {
	t.Parallel()
	upstream := newFake(t)
	s := start(t, options{upstream: upstream.URL})
	for name, c := range map[string]struct {
		status       int
		kind, coding string
		body         string
	}{
		"brotli":             {200, "application/json", "br", "\x8b\x03\x80no brotli, but nobody here knows\x03"},
		"zstd":               {200, "application/json", "zstd", zstded(jsonReply("packed"))},
		"a packed stream":    {200, "text/event-stream", "zstd", zstded(delta("a") + done)},
		"text":               {200, "text/plain", "", jsonReply("which is no JSON")},
		"another object":     {200, "application/json", "", `{}`},
		"no object":          {200, "application/json", "", `["hi"]`},
		"JSON that ends":     {200, "application/json", "", `{"choices":[{"message":{"role":"assistant","content":"h`},
		"nothing":            {204, "", "", ""},
		"accepted for later": {202, "application/json", "", `{"id":"later"}`},
	} {
		t.Run(name, func(t *testing.T) {
			s.t = t
			upstream.replyWith(func(w http.ResponseWriter, _ *http.Request, _ string) {
				for header, value := range map[string]string{"Content-Type": c.kind, "Content-Encoding": c.coding} {
					if value != "" {
						w.Header().Set(header, value)
					}
				}
				w.WriteHeader(c.status)
				_, _ = io.WriteString(w, c.body)
			})
			r := s.post(acme, "/chat/completions", chatBody("hi", `"sessionId":"unread"`), "Accept-Encoding", "br, zstd")
			if r.status != c.status || r.body != c.body || r.header.Get("Content-Encoding") != c.coding {
				t.Errorf("status %d, %q: %q", r.status, r.header.Get("Content-Encoding"), r.body)
			}
			if r.header.Get("X-Backstory-Saved") != "false" {
				t.Errorf("headers %v", r.header)
			}
			if !logLine(s, "the exchange was not saved: the reply is no chat completion that can be read", "request_id", r.header.Get("x-request-id")).Exists() {
				t.Error("nothing of it in the log")
			}
			r = s.post(acme, "/chat/completions", chatBody("hi", `"sessionId":"unread","saveToMemory":false`), "Accept-Encoding", "br, zstd")
			if r.header.Get("X-Backstory-Saved") != "" {
				t.Error("nothing was to be saved, and the reply says that it wasn't")
			}
		})
	}
	s.t = t
	if r := s.get(acme, "/sessions/unread"); r.status != http.StatusNotFound {
		t.Errorf("something was saved: %s", r.body)
	}
}

func TestWhatPassesThroughIsNotTouched(t *testing.T) {
	t.Parallel()
	upstream := newFake(t)
	speech := strings.Repeat("\x00\xff\x1f\x8bRIFF", 100_000)
	more := make(chan struct{})
	upstream.other = func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/v1/audio/speech":
			w.Header().Set("Content-Type", "audio/wav")
			_, _ = io.WriteString(w, speech)
		case "/v1/audio/transcriptions":
			file, _, err := r.FormFile("file")
			if err != nil {
				http.Error(w, err.Error(), http.StatusBadRequest)
				return
			}
			_, _ = io.Copy(w, file)
		case "/v1/responses":
			writeEvents(w, "event: response.created\ndata: {\"choices\":[],\"sessionId\":\"x\"}\n\n")
			<-more
			writeEvents(w, "event: response.completed\r\ndata: {}\r\n\r\n")
		case "/v1/models":
			w.Header().Set("Content-Encoding", "gzip")
			w.Header().Set("X-Asked", r.Method+" "+r.Header.Get("Accept-Encoding"))
			_, _ = io.WriteString(w, gzipped("models"))
		}
	}
	s := start(t, options{upstream: upstream.URL})
	if r := s.ok(s.post(acme, "/audio/speech", `{"input":"hi"}`)); r.body != speech || r.header.Get("Content-Type") != "audio/wav" {
		t.Errorf("%d bytes of speech as %s, want %d", len(r.body), r.header.Get("Content-Type"), len(speech))
	}
	var form bytes.Buffer
	w := multipart.NewWriter(&form)
	f, _ := w.CreateFormFile("file", "a.wav")
	_, _ = io.WriteString(f, speech)
	_ = w.Close()
	if r := s.ok(s.do(s.request("POST", "/audio/transcriptions", acme, &form, "Content-Type", w.FormDataContentType()))); r.body != speech {
		t.Errorf("%d bytes came back of %d", len(r.body), len(speech))
	}
	for _, method := range []string{"GET", "HEAD"} {
		r := s.do(s.request(method, "/models", acme, nil, "Accept-Encoding", "gzip;q=0.5, br"))
		if r.header.Get("X-Asked") != method+" gzip;q=0.5, br" || r.header.Get("Content-Encoding") != "gzip" {
			t.Errorf("%s: %v", method, r.header)
		}
		if want := map[string]string{"GET": gzipped("models")}[method]; r.body != want {
			t.Errorf("%s: %q", method, r.body)
		}
	}
	res, err := s.client.Do(s.request("POST", "/responses", acme, strings.NewReader(`{"stream":true}`)))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	first := make([]byte, len("event: response.created\ndata: {\"choices\":[],\"sessionId\":\"x\"}\n\n"))
	if _, err := io.ReadFull(res.Body, first); err != nil { // it comes before the rest is sent
		t.Fatal(err)
	}
	close(more)
	rest, err := io.ReadAll(res.Body)
	if err != nil || string(first)+string(rest) != "event: response.created\ndata: {\"choices\":[],\"sessionId\":\"x\"}\n\nevent: response.completed\r\ndata: {}\r\n\r\n" {
		t.Errorf("%v: %s%s", err, first, rest)
	}
}
