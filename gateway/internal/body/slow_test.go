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
	"testing"
	"time"
)

const shortPause = 200 * time.Millisecond

// patient serves requests whose bodies may pause for so long, and says how reading
// them ended; and then whether the client was taken to be gone while a model thinks.
func patient(t *testing.T, http2 bool) (s *httptest.Server, ended <-chan error) {
	result := make(chan error, 1)
	s = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b := Guard(w, r)
		defer b.Release(w)
		b.pause = shortPause
		_, err := io.Copy(io.Discard, r.Body)
		if err == nil {
			select {
			case <-r.Context().Done():
				err = r.Context().Err()
			case <-time.After(3 * shortPause):
			}
		}
		result <- err
	}))
	s.EnableHTTP2 = http2
	s.StartTLS()
	t.Cleanup(s.Close)
	return s, result
}

func TestABodyThatStopsArrivingIsGivenUp(t *testing.T) {
	t.Parallel()
	for _, http2 := range []bool{false, true} {
		s, ended := patient(t, http2)
		silent, end := io.Pipe()
		defer end.Close()
		go func() {
			if reply, err := s.Client().Post(s.URL, "", silent); err == nil {
				reply.Body.Close()
			}
		}()
		_, _ = io.WriteString(end, "x")
		select {
		case err := <-ended:
			if !errors.Is(err, os.ErrDeadlineExceeded) || Error(err).Error() != "The request body did not arrive in time." {
				t.Errorf("HTTP/2 %t: it ended with %v", http2, err)
			}
		case <-time.After(20 * time.Second):
			t.Fatalf("HTTP/2 %t: it was waited for", http2)
		}
	}
}

func TestABodyThatArrivesSlowlyIsRead(t *testing.T) {
	t.Parallel()
	for _, http2 := range []bool{false, true} {
		s, ended := patient(t, http2)
		slow, end := io.Pipe()
		go func() {
			for range 10 {
				time.Sleep(shortPause / 4)
				_, _ = io.WriteString(end, "x")
			}
			_ = end.Close()
		}()
		reply, err := s.Client().Post(s.URL, "", slow)
		if err != nil {
			t.Fatalf("HTTP/2 %t: %v", http2, err)
		}
		reply.Body.Close()
		if err := <-ended; err != nil {
			t.Errorf("HTTP/2 %t: it ended with %v", http2, err)
		}
	}
}

// A byte now and then isn't enough for good.
func TestABodyHasToArriveAtSomeRate(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for _, c := range []struct {
		began   time.Duration // ago
		arrived int64
		left    time.Duration
	}{
		{0, 0, longestPause},
		{50 * time.Second, 50, 10 * time.Second},
		{10 * time.Minute, 500, grace - 10*time.Minute},
		{10 * time.Minute, 10 << 20, longestPause},
	} {
		b := &Client{pause: longestPause, began: now.Add(-c.began), arrived: c.arrived}
		if left := b.deadline(now).Sub(now); left != c.left {
			t.Errorf("%d bytes in %v: %v left, want %v", c.arrived, c.began, left, c.left)
		}
	}
}

// Who sends more than anybody reads still gets the reply.
func TestAClientThatIsStillSendingGetsTheReply(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer Guard(w, r).Release(w)
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
