package body

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Client is the body of a client's request as the handlers behind us get it.
// The router's transport reads it in a goroutine of its own, which goes on when
// the router has answered early.
//
// Close ends reading, but it doesn't close the client's body: nobody does but
// the server. Behind Caddy's own reader, net/http takes a body that was closed
// for one that was read, and what is left of it for the next request: whoever can
// write a body could then write requests in the name of others, where connections
// are shared. The proxy closes the body when the router answers before it has all
// of it.
type Client struct {
	body    io.Reader
	length  int64      // as promised; -1: nothing is
	reading sync.Mutex // held by the Read in flight
	ended   atomic.Bool
	arrived int64 // under reading
	whole   bool  // under reading
}

// Guard puts a Client in the place of a request's body, where it has one; else it
// returns nil, of which Release does nothing.
func Guard(r *http.Request) *Client {
	if r.Body == nil || r.Body == http.NoBody {
		return nil
	}
	b := &Client{body: r.Body, length: r.ContentLength}
	r.Body = b
	return b
}

func (b *Client) Read(p []byte) (int, error) {
	b.reading.Lock()
	defer b.reading.Unlock()
	if b.ended.Load() {
		return 0, http.ErrBodyReadAfterClose
	}
	n, err := b.body.Read(p)
	b.arrived += int64(n)
	b.whole = errors.Is(err, io.EOF) || b.arrived == b.length
	return n, err
}

// Close doesn't wait for a Read in flight: a client that is silent would keep the
// transport from reporting that the router is gone.
func (b *Client) Close() error {
	b.ended.Store(true)
	return nil
}

// lastRead is how long a Read in flight may still take when nobody wants the
// body any more. A client that is sending ends it by itself within that time, and
// keeps its connection.
const lastRead = 500 * time.Millisecond

// Release ends reading and returns when no Read is in flight. It is for the end
// of the handler, after which a request's body may not be touched: Caddy then
// reads from its own reader how much it was, for the access log.
//
// A Read that waits for a silent client is ended by a deadline. HTTP/2 and HTTP/3
// keep that to the request. On HTTP/1 it is the connection's, which is closed after
// the reply. Without the deadline, net/http would wait for the Read itself.
func (b *Client) Release(w http.ResponseWriter) {
	if b == nil {
		return
	}
	b.ended.Store(true)
	if b.reading.TryLock() {
		defer b.reading.Unlock()
		if left := b.length - b.arrived; !b.whole && (b.length < 0 || left > discarded) {
			closeAfterReply(w)
		}
		return
	}
	done := make(chan struct{})
	go func() {
		b.reading.Lock()
		defer b.reading.Unlock()
		close(done)
	}()
	select {
	case <-done:
		return
	case <-time.After(lastRead):
	}
	closeAfterReply(w)
	_ = http.NewResponseController(w).SetReadDeadline(time.Now()) // without one, Caddy's own idle timeout ends it
	<-done
}

// discarded is how much of a body net/http reads itself, for the sake of the
// connection, when nobody wants it. With more than that it closes the connection,
// and a client that is still sending then may never see the reply, unless it is
// given the time that net/http gives one whose body is beyond its limit.
const discarded = 256 << 10

// closeAfterReply makes net/http close a connection of HTTP/1 after the reply,
// whether or not the reply's header was sent: in full duplex it would otherwise
// take the rest of a body whose reading a deadline ended for the next request. A
// body beyond its limit is net/http's own reason to do so.
func closeAfterReply(w http.ResponseWriter) {
	for {
		u, ok := w.(interface{ Unwrap() http.ResponseWriter })
		if !ok {
			break
		}
		w = u.Unwrap()
	}
	_, _ = http.MaxBytesReader(w, io.NopCloser(strings.NewReader("x")), 0).Read(make([]byte, 1))
}
