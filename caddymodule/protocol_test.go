package caddymodule_test

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
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

// OpenAI's realtime API speaks over a WebSocket.
func TestAnUpgradedConnectionPassesThrough(t *testing.T) {
	upstream := newFake(t)
	upstream.other = func(w http.ResponseWriter, _ *http.Request) {
		conn, in, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
		said, _ := in.ReadString('\n')
		_, _ = io.WriteString(conn, "heard "+said)
	}
	s := start(t, options{upstream: upstream.URL})
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.root, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
	_, _ = io.WriteString(conn, "GET /api/v1/realtime?model=x HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+
		"Authorization: Bearer k\r\nserviceKey: "+acme+"\r\n\r\nhello\n")
	in := bufio.NewReader(conn)
	res, err := http.ReadResponse(in, nil)
	if err != nil || res.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("%v, %v", res, err)
	}
	if got, err := in.ReadString('\n'); got != "heard hello\n" {
		t.Errorf("got %q, %v", got, err)
	}
	// Caddy must not stop while the proxy still holds the connection: its own
	// closing of such races with what it copies.
	_, _ = io.Copy(io.Discard, in)
	eventually(t, "the connection has ended", func() bool { return strings.Contains(s.logged(), `"status":101`) })
}

// TestTenThousandEventsDifferByOneField streams the same reply through plain
// Caddy and through Backstory.
func TestTenThousandEventsDifferByOneField(t *testing.T) {
	upstream := newFake(t)
	const n = 10_000
	var sent bytes.Buffer
	sent.WriteString(": OPENROUTER PROCESSING\r\n\r\n")
	for i := range n {
		switch {
		case i%500 == 499:
			sent.WriteString(": still here\n\n")
		case i%700 == 0:
			fmt.Fprintf(&sent, "id: %d\r\ndata: {\"id\":\"c\",\"choices\":[{\"index\":1,\"delta\":\rdata: {\"reasoning\":\"é😀\"}}], \"x\" : 1.0}\n\n", i)
		default:
			sent.WriteString(delta("word " + strconv.Itoa(i) + " é😀"))
		}
	}
	sent.WriteString(finished + `data: {"choices":[],"usage":{"total_tokens":3}}` + "\n\n" + done)
	upstream.replyWith(func(w http.ResponseWriter, _ *http.Request, _ string) {
		w.Header().Set("Content-Type", "text/event-stream")
		rest := sent.Bytes()
		for size := 1; len(rest) > 0; size = size*7%4093 + 1 { // split anywhere
			_, _ = w.Write(rest[:min(size, len(rest))])
			rest = rest[min(size, len(rest)):]
		}
	})
	s := start(t, options{upstream: upstream.URL, site: "handle_path /plain/* {\nrewrite * /v1{uri}\nreverse_proxy " + upstream.URL + "\n}"})
	body := chatBody("hi", `"stream":true,"sessionId":"s"`)
	ours := s.ok(s.post(acme, "/chat/completions", body))
	r := s.request("POST", "", acme, strings.NewReader(body))
	r.URL.Path = "/plain/chat/completions"
	plain := s.ok(s.do(r))
	if plain.body != sent.String() {
		t.Fatal("plain Caddy didn't pass the stream as it was")
	}

	at := strings.Index(ours.body, `"_metadata":`)
	if at < 0 {
		t.Fatal("no _metadata")
	}
	field := `"_metadata":` + gjson.Get(ours.body[strings.LastIndexByte(ours.body[:at], '{'):], "_metadata").Raw + ","
	if got := ours.body[:at] + strings.TrimPrefix(ours.body[at:], field); got != plain.body {
		i := 0
		for i < min(len(got), len(plain.body)) && got[i] == plain.body[i] {
			i++
		}
		t.Fatalf("they differ at byte %d: %.80q, plain %.80q", i, got[i:], plain.body[i:])
	}
	if events := strings.Count(plain.body, "\n\n"); events < n {
		t.Errorf("only %d events", events)
	}
	t.Logf("%d events in %d bytes, the same but for %d bytes: %s", strings.Count(plain.body, "\n\n"), len(plain.body), len(field), field)
}
