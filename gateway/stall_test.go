package gateway

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/backstory-proxy/backstory/gateway/internal/upstream"
)

// stalls serves a reply that is watched, and tells how writing it ended.
func stalls(t *testing.T, pause time.Duration, write func(*replyWriter) error) (address string, ended <-chan error) {
	result := make(chan error, 1)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rw := &replyWriter{Writer: upstream.Writer{ResponseWriter: w}}
		rw.stall.watch(w, pause)
		defer rw.stall.stop()
		result <- write(rw)
	}))
	t.Cleanup(s.Close)
	return s.Listener.Addr().String(), result
}

func within(t *testing.T, ended <-chan error) error {
	t.Helper()
	select {
	case err := <-ended:
		return err
	case <-time.After(20 * time.Second):
		t.Fatal("the reply never ended")
		return nil
	}
}

// large is more than fits between a server and a client that takes nothing.
var large = bytes.Repeat([]byte("0123456789abcdef"), 64<<20/16)

func TestAReplyThatItsClientDoesNotTakeIsEnded(t *testing.T) {
	t.Parallel()
	for name, write := range map[string]func(*replyWriter) error{
		"at once": func(w *replyWriter) error { _, err := w.Write(large); return err },
		"a stream": func(w *replyWriter) error {
			for i := 0; i < len(large); i += 1 << 10 {
				if _, err := w.Write(large[i : i+1<<10]); err != nil {
					return err
				}
				if err := w.FlushError(); err != nil {
					return err
				}
			}
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address, ended := stalls(t, 200*time.Millisecond, write)
			c, err := net.Dial("tcp", address)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			_, _ = io.WriteString(c, "GET / HTTP/1.1\r\nHost: h\r\n\r\n")
			if within(t, ended) == nil {
				t.Error("it was written to a client that reads nothing")
			}
		})
	}
}

func TestAClientThatIsSlowGetsItsReply(t *testing.T) {
	t.Parallel()
	const pause = 500 * time.Millisecond
	address, ended := stalls(t, pause, func(w *replyWriter) error {
		if _, err := w.Write(large[:32<<20]); err != nil {
			return err
		}
		time.Sleep(3 * pause) // as a model does that thinks
		_, err := w.Write([]byte("end"))
		return err
	})
	reply, err := http.Get("http://" + address)
	if err != nil {
		t.Fatal(err)
	}
	defer reply.Body.Close()
	var got int64
	for err == nil { // all of it in several pauses, a piece in less than one
		var n int64
		n, err = io.CopyN(io.Discard, reply.Body, 1<<20)
		got += n
		if got <= 24<<20 {
			time.Sleep(pause / 6)
		}
	}
	if got != 32<<20+3 {
		t.Errorf("got %d bytes, then %v", got, err)
	}
	if err := within(t, ended); err != nil {
		t.Errorf("written with %v", err)
	}
}
