package caddymodule_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"
)

func gzipped(s string) string {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = io.WriteString(z, s)
	_ = z.Close()
	return b.String()
}

// What is left of a body that we refused must not be taken for a request.
func TestARefusedBodyIsNoRequest(t *testing.T) {
	s := start(t, options{upstream: hasty(t), app: "max_body 1KB"})
	const hidden = "GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
	const chat = "/chat/completions"
	key := "serviceKey: " + acme + "\r\n"
	for name, c := range map[string]struct{ path, header, body string }{
		"too large":             {chat, key, strings.Repeat("x", 1<<20) + hidden},
		"too large by far":      {chat, key, strings.Repeat(hidden, 1<<16)},
		"without a key":         {chat, "", strings.Repeat(hidden, 1<<16)},
		"packed":                {chat, key + "Content-Encoding: gzip\r\n", gzipped(strings.Repeat(" ", 1<<20)) + strings.Repeat(hidden, 1<<16)},
		"not packed as it says": {chat, key + "Content-Encoding: gzip\r\n", strings.Repeat(hidden, 1<<16)},
		"refused by the router": {"/audio/transcriptions", key, strings.Repeat(hidden, 1<<18)},
	} {
		conn, err := net.Dial("tcp", strings.TrimPrefix(s.root, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			_, _ = fmt.Fprintf(conn, "POST /api/v1%s HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer k\r\n%sContent-Length: %d\r\n\r\n%s", c.path, c.header, len(c.body), c.body)
		}()
		// The server closes the connection, or resets it, once it has answered.
		_ = conn.SetDeadline(time.Now().Add(5 * time.Second))
		got, err := io.ReadAll(conn)
		_ = conn.Close()
		if errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%s: the connection stayed open", name)
		}
		if n := strings.Count(string(got), "HTTP/1.1 "); n != 1 || !strings.Contains(string(got), `"type":"`) {
			t.Errorf("%s: %d replies: %.500q", name, n, got)
		}
	}
}

// hasty is a router that answers before it has read the body.
func hasty(t *testing.T) (url string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = http.ReadRequest(bufio.NewReader(c))
			const no = `{"error":{"message":"no","type":"invalid_request_error"}}`
			_, _ = fmt.Fprintf(c, "HTTP/1.1 400 Bad Request\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s", len(no), no)
			_ = c.Close()
		}
	}()
	return "http://" + l.Addr().String()
}
