package caddymodule_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"github.com/tidwall/gjson"
)

// shortPause is how long a client may pause that is served by a test.
const shortPause = 300 * time.Millisecond

// slowSite is a site with the timeouts of the shipped Caddyfile, but short ones.
func slowSite(t *testing.T, upstream string) *site {
	return start(t, options{upstream: upstream, pauses: fmt.Sprintf("read_body_idle %v\nwrite_idle %[1]v", shortPause)})
}

// dial sends the beginning of a chat request.
func (s *site) dial(path string, length int, begin string) net.Conn {
	s.t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(s.root, "http://"))
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { c.Close() })
	_ = c.SetDeadline(time.Now().Add(30 * time.Second))
	_, _ = fmt.Fprintf(c, "POST /api/v1%s HTTP/1.1\r\nHost: 127.0.0.1\r\nserviceKey: %s\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
		path, acme, router, length, begin)
	return c
}

func TestABodyThatStopsArrivingIsGivenUp(t *testing.T) {
	s := slowSite(t, newFake(t).URL)
	for _, length := range []int{1000, 1 << 20} {
		reply, err := http.ReadResponse(bufio.NewReader(s.dial("/chat/completions", length, `{"model":`)), nil)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(reply.Body)
		if reply.StatusCode != http.StatusRequestTimeout || gjson.GetBytes(body, "error.type").Str != "invalid_request_error" {
			t.Errorf("of %d bytes: status %d: %s", length, reply.StatusCode, body)
		}
	}
}

func TestSlowUploadsAndSlowModelsAreWaitedFor(t *testing.T) {
	upstream := newFake(t)
	upstream.replyWith(func(w http.ResponseWriter, _ *http.Request, _ string) {
		time.Sleep(3 * shortPause)
		writeEvents(w, delta("hello"))
		time.Sleep(3 * shortPause)
		writeEvents(w, delta("world"), finished, done)
	})
	s := slowSite(t, upstream.URL)
	body := chatBody(strings.Repeat("x", 100_000), `"stream":true,"sessionId":"s"`)
	c := s.dial("/chat/completions", len(body), "")
	for rest := []byte(body); len(rest) > 0; { // in ten parts, which take several pauses
		n := min(len(rest), len(body)/10)
		if _, err := c.Write(rest[:n]); err != nil {
			t.Fatal(err)
		}
		rest = rest[n:]
		time.Sleep(shortPause / 3)
	}
	reply, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(reply.Body)
	if err != nil || reply.StatusCode != http.StatusOK || !bytes.Contains(text, []byte("world")) || !bytes.Contains(text, []byte("[DONE]")) {
		t.Errorf("status %d, %v: %s", reply.StatusCode, err, text)
	}
}

func TestAReplyThatItsClientDoesNotTakeIsEnded(t *testing.T) {
	upstream := newFake(t)
	ended := make(chan struct{})
	upstream.other = func(w http.ResponseWriter, _ *http.Request) {
		defer close(ended)
		piece := make([]byte, 1<<20)
		for range 256 { // more than fits in between
			if _, err := w.Write(piece); err != nil {
				return
			}
		}
		t.Error("all of it was taken from the router")
	}
	s := slowSite(t, upstream.URL)
	s.dial("/audio/speech", 2, "{}")
	select {
	case <-ended:
	case <-time.After(30 * time.Second):
		t.Error("it is still kept for the client")
	}
}

func TestTheShippedTimeoutsFollowWhatIsMade(t *testing.T) {
	text, err := os.ReadFile("../Caddyfile")
	if err != nil {
		t.Fatal(err)
	}
	adapted, _, err := caddyfile.Adapter{ServerType: httpcaddyfile.ServerType{}}.Adapt(text, nil)
	if err != nil {
		t.Fatal(err)
	}
	server := gjson.GetBytes(adapted, "apps.http.servers.srv0")
	for name, want := range map[string]time.Duration{
		"read_header_timeout": 10 * time.Second, "read_idle_timeout": 30 * time.Second, "write_idle_timeout": time.Minute,
		// These would cut what is slow for good reasons.
		"read_timeout": 0, "write_timeout": 0, "read_min_rate": 0, "write_min_rate": 0,
	} {
		if got := time.Duration(server.Get(name).Int()); got != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
}
