package body

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// watchedBody says when a Read begins, and counts those that have ended.
type watchedBody struct {
	io.Reader
	begun chan struct{}
	ended atomic.Int64
}

func (b *watchedBody) Read(p []byte) (int, error) {
	b.begun <- struct{}{}
	defer b.ended.Add(1)
	return b.Reader.Read(p)
}

// hastily answers when the first byte of a body has come, while somebody waits
// for the second.
func hastily(t *testing.T, duplex bool) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/hidden") {
			t.Error("what was left of a body was taken for a request")
			return
		}
		if duplex {
			_ = http.NewResponseController(w).EnableFullDuplex()
		}
		watched := &watchedBody{Reader: r.Body, begun: make(chan struct{}, 10)}
		body := &Client{body: watched}
		read := make(chan error, 1)
		go func() {
			_, err := io.Copy(io.Discard, body)
			read <- err
		}()
		for range 2 {
			<-watched.begun
		}
		_, _ = io.WriteString(w, "no")
		if duplex {
			_ = http.NewResponseController(w).Flush()
		}
		_ = body.Close()
		body.Release(w)
		if n := watched.ended.Load(); n != 2 {
			t.Errorf("%d reads have ended; want 2", n)
		}
		if err := <-read; err == nil {
			t.Error("the reader was told that it has the whole body")
		}
		if _, err := body.Read(make([]byte, 1)); !errors.Is(err, http.ErrBodyReadAfterClose) || watched.ended.Load() != 2 {
			t.Errorf("the client's body can still be read: %v", err)
		}
	}
}

// Who stops sending gets a reply that doesn't wait for the body, and what is sent
// then isn't taken for a request.
func TestASilentClientGetsTheReply(t *testing.T) {
	const hidden = "GET /hidden HTTP/1.1\r\nHost: h\r\n\r\n"
	length := fmt.Sprint("Content-Length: ", 1+len(hidden))
	const chunked = "Transfer-Encoding: chunked"
	for name, c := range map[string]struct {
		duplex        bool
		header, begin string
	}{
		"HTTP/1":                         {false, length, "x"},
		"HTTP/1, in chunks":              {false, chunked, "1\r\nx\r\n"},
		"HTTP/1, full duplex":            {true, length, "x"},
		"HTTP/1, full duplex, in chunks": {true, chunked, "1\r\nx\r\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := httptest.NewServer(hastily(t, c.duplex))
			defer s.Close()
			conn, err := net.Dial("tcp", s.Listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
			_, _ = fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: h\r\n%s\r\n\r\n%s", c.header, c.begin)
			r := bufio.NewReader(conn)
			res, err := http.ReadResponse(r, nil)
			if err != nil {
				t.Fatal(err)
			}
			if body, err := io.ReadAll(res.Body); err != nil || string(body) != "no" {
				t.Errorf("got %q, %v", body, err)
			}
			_, _ = io.WriteString(conn, hidden)
			if rest, err := io.ReadAll(r); len(rest) > 0 || errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("then came %q, %v", rest, err)
			}
		})
	}
	t.Run("HTTP/2", func(t *testing.T) {
		t.Parallel()
		s := httptest.NewUnstartedServer(hastily(t, false))
		s.EnableHTTP2 = true
		s.StartTLS()
		defer s.Close()
		silent, end := io.Pipe()
		c := s.Client()
		c.Timeout = 20 * time.Second
		res, err := c.Post(s.URL, "", io.MultiReader(strings.NewReader("x"), silent))
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		if body, err := io.ReadAll(res.Body); err != nil || string(body) != "no" || res.ProtoMajor != 2 {
			t.Errorf("got %q, %v by %s", body, err, res.Proto)
		}
		_ = end.Close() // the client's transport waits for it
	})
}

// A client that is sending keeps its connection.
func TestABodyInFlightIsReadToTheEndOfThatRead(t *testing.T) {
	r, w := io.Pipe()
	watched := &watchedBody{Reader: r, begun: make(chan struct{}, 10)}
	body := &Client{body: watched}
	got := make(chan string, 1)
	go func() {
		all, _ := io.ReadAll(body)
		got <- string(all)
	}()
	<-watched.begun
	go func() { _, _ = io.WriteString(w, "on its way") }()
	reply := httptest.NewRecorder()
	body.Release(reply)
	if s := <-got; s != "on its way" || watched.ended.Load() != 1 {
		t.Errorf("read %q in %d reads", s, watched.ended.Load())
	}
}

// Who sends more than anybody reads still gets the reply.
func TestAClientThatIsStillSendingGetsTheReply(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer Guard(r).Release(w)
		w.WriteHeader(http.StatusTooManyRequests)
	}))
	t.Cleanup(s.Close)
	conn, err := net.Dial("tcp", s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	_, _ = fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n", 64<<20)
	_, _ = conn.Write(make([]byte, 1<<20)) // as one that writes first and reads then
	reply, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil || reply.StatusCode != http.StatusTooManyRequests {
		t.Errorf("got %v, %v", reply, err)
	}
}
