package caddymodule_test

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quic-go/quic-go/http3"
	"github.com/tidwall/gjson"
)

// certificate writes a certificate for 127.0.0.1 and its key, and returns a
// configuration that trusts it.
func certificate(t *testing.T) (certFile, keyFile string, trusts *tls.Config) {
	server := httptest.NewTLSServer(nil)
	defer server.Close()
	key, err := x509.MarshalPKCS8PrivateKey(server.TLS.Certificates[0].PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	write := func(name, kind string, der []byte) string {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	return write("cert", "CERTIFICATE", server.Certificate().Raw), write("key", "PRIVATE KEY", key), &tls.Config{RootCAs: roots}
}

func TestEveryHTTPInFront(t *testing.T) {
	certFile, keyFile, trusts := certificate(t)
	h2c := new(http.Protocols)
	h2c.SetUnencryptedHTTP2(true)
	h3 := &http3.Transport{TLSClientConfig: trusts.Clone()}
	t.Cleanup(func() { _ = h3.Close() })

	for name, c := range map[string]struct {
		scheme    string
		transport http.RoundTripper
		major     int
	}{
		"HTTP/2 in clear":  {"http", &http.Transport{Protocols: h2c}, 2},
		"HTTP/2 over TLS":  {"https", &http.Transport{TLSClientConfig: trusts.Clone(), ForceAttemptHTTP2: true}, 2},
		"HTTP/3 over QUIC": {"https", h3, 3},
	} {
		t.Run(name, func(t *testing.T) {
			upstream := newFake(t)
			// In a process of its own: Caddy may still be starting its TLS app
			// while its server takes connections.
			o := processOptions{
				upstream: upstream.URL, store: "sqlite " + filepath.Join(t.TempDir(), "b.db"), admin: "off", address: freeAddress(t),
				scheme: c.scheme, global: "auto_https off\nservers {\nprotocols h1 h2 h2c h3\n}", trusts: trusts,
			}
			if c.scheme == "https" {
				o.site = "tls " + certFile + " " + keyFile
			}
			s, _ := startProcessWith(t, o)
			s.client.Transport = c.transport
			s.chat(acme, "I am Ada", `"sessionId":"s"`)

			upstream.replyWith(func(w http.ResponseWriter, _ *http.Request, _ string) {
				writeEvents(w, delta("Ada"), finished, done)
			})
			r := s.request("POST", "/chat/completions", acme, strings.NewReader(chatBody("who am I?", `"sessionId":"s","stream":true`)))
			res, err := s.client.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			body, err := io.ReadAll(res.Body)
			if err != nil || res.ProtoMajor != c.major || !strings.HasSuffix(string(body), done) || !strings.Contains(string(body), `"historyMessages":2`) {
				t.Errorf("%s, %v: %s", res.Proto, err, body)
			}
			if want := "user: I am Ada\nassistant: ok\nuser: who am I?\n"; upstream.last(t).said() != want {
				t.Errorf("the router got\n%s", upstream.last(t).said())
			}
			// A refused body ends its own request and nothing else.
			big := s.do(s.request("POST", "/chat/completions", "nobody's", bytes.NewReader(make([]byte, 8<<20))))
			if big.status != http.StatusUnauthorized {
				t.Errorf("status %d", big.status)
			}
			s.ok(s.get(acme, "/sessions/s"))
		})
	}
}

func TestAnUploadInChunksArrivesWhole(t *testing.T) {
	upstream := newFake(t)
	s := start(t, options{upstream: upstream.URL})
	r := s.request("POST", "/chat/completions", acme, struct{ io.Reader }{strings.NewReader(chatBody("hi", `"sessionId":"s"`))})
	r.Trailer = http.Header{"X-Checksum": {"abc"}}
	s.ok(s.do(r))
	got := upstream.last(t)
	if gjson.Get(got.body, "messages.0.content").Str != "hi" || got.header.Get("Content-Length") == "" {
		t.Errorf("the router got %v %s", got.header, got.body)
	}
	if got.header.Get("Trailer") != "" || got.header.Get("Transfer-Encoding") != "" {
		t.Errorf("the router got %v", got.header)
	}
}

// watched says whether a body was read.
type watched struct {
	io.Reader
	read atomic.Bool
}

func (w *watched) Read(p []byte) (int, error) {
	w.read.Store(true)
	return w.Reader.Read(p)
}

func TestABodyIsAskedForWhenItIsWanted(t *testing.T) {
	upstream := newFake(t)
	s := start(t, options{upstream: upstream.URL})
	s.client.Transport = &http.Transport{ExpectContinueTimeout: time.Minute}
	for key, status := range map[string]int{acme: http.StatusOK, "nobody's": http.StatusUnauthorized} {
		body := &watched{Reader: strings.NewReader(chatBody("hi", `"sessionId":"s"`))}
		r := s.do(s.request("POST", "/chat/completions", key, body, "Expect", "100-continue"))
		if r.status != status || body.read.Load() != (status == http.StatusOK) {
			t.Errorf("status %d, body read: %t", r.status, body.read.Load())
		}
	}
	if got := upstream.last(t).header.Get("Expect"); got != "" {
		t.Errorf("the router got Expect: %s", got)
	}
}

func TestEveryReplyAndLogLineNamesTheRequest(t *testing.T) {
	upstream := newFake(t)
	upstream.other = func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X-Request-Id", "req-of-the-router") }
	s := start(t, options{upstream: upstream.URL})
	root, _ := http.NewRequestWithContext(t.Context(), "GET", s.root+"/healthz", nil)
	nowhere, _ := http.NewRequestWithContext(t.Context(), "GET", s.root+"/nowhere", nil)
	for name, r := range map[string]reply{
		"a chat":          s.chat(acme, "hi", ""),
		"a bad request":   s.post(acme, "/chat/completions", "{"),
		"a bad key":       s.post("nobody's", "/chat/completions", "{"),
		"no such session": s.get(acme, "/sessions/none"),
		"health":          s.do(root),
		"no such path":    s.do(nowhere),
	} {
		id := r.header.Get("x-request-id")
		if id == "" || r.header.Values("x-request-id")[0] != id {
			t.Errorf("%s: no id in %v", name, r.header)
		}
		eventually(t, name+": an access log line with the id", func() bool {
			return logLine(s, "handled request", "request_id", id).Exists()
		})
		if r.status >= 400 && r.status != http.StatusNotFound && !logLine(s, "request failed", "request_id", id).Exists() {
			t.Errorf("%s: the cause isn't logged with the id", name)
		}
	}
	// The router's own id stands, and the log tells which of ours it was.
	if id := s.get(acme, "/models").header.Get("x-request-id"); id != "req-of-the-router" {
		t.Errorf("id %q", id)
	}
	eventually(t, "an access log line with both ids", func() bool {
		return logLine(s, "handled request", "router_request_id", "req-of-the-router").Get("request_id").Str != ""
	})
}

// logLine is the log's line with the message and the field, where it is there.
func logLine(s *site, message, field, value string) gjson.Result {
	for line := range strings.Lines(s.logged()) {
		l := gjson.Parse(line)
		if l.Get("msg").Str == message && l.Get(field).Str == value {
			return l
		}
	}
	return gjson.Result{}
}
