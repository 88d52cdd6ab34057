// Package body reads the bodies of clients' requests, and keeps others from doing
// so longer than they may.
package body

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/backstory-proxy/backstory/openai"
)

// Read reads the whole body of a request, unpacked, of at most so many bytes. Its
// error is one for the client.
func Read(w http.ResponseWriter, r *http.Request, most int64) ([]byte, error) {
	packed := r.Header.Get("Content-Encoding") != ""
	if err := Open(w, r, most); err != nil {
		return nil, err
	}
	var body []byte
	var err error
	if n := r.ContentLength; n > 0 && n <= most && !packed {
		body = make([]byte, n)
		_, err = io.ReadFull(r.Body, body)
	} else {
		body, err = io.ReadAll(r.Body)
	}
	return body, Error(err)
}

// acceptedEncodings are the content codings that a body may come in. A client
// that sent another one is told (RFC 7694).
const acceptedEncodings = "gzip, zstd"

// maxWindow bounds what a zstd decoder keeps: more than what HTTP allows
// (RFC 9659) is refused.
const maxWindow = 8 << 20

// Open prepares the body of a request to be read: unpacked where it is
// compressed, and bounded both packed and unpacked.
func Open(w http.ResponseWriter, r *http.Request, most int64) error {
	r.Body = http.MaxBytesReader(w, r.Body, most)
	var plain io.Reader
	switch encoding := strings.ToLower(strings.Join(r.Header.Values("Content-Encoding"), ",")); encoding {
	case "", "identity":
		return nil
	case "gzip", "x-gzip":
		z, err := gzip.NewReader(r.Body)
		if err != nil {
			return Error(err)
		}
		plain = z
	case "zstd":
		z, err := zstd.NewReader(r.Body, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow))
		if err != nil {
			return Error(err)
		}
		plain = z // with a concurrency of 1 there is nothing to close
	default:
		w.Header().Set("Accept-Encoding", acceptedEncodings)
		return openai.StatusError(http.StatusUnsupportedMediaType,
			"A request body with Content-Encoding %q can't be read; send it as it is, or as one of %s.", encoding, acceptedEncodings)
	}
	r.Header.Del("Content-Encoding")
	r.Body = http.MaxBytesReader(w, io.NopCloser(plain), most)
	return nil
}

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
	reading sync.Mutex // held by the Read in flight
	ended   atomic.Bool
}

// Guard puts a Client in the place of a request's body, where it has one; else it
// returns nil, of which Release does nothing.
func Guard(r *http.Request) *Client {
	if r.Body == nil || r.Body == http.NoBody {
		return nil
	}
	b := &Client{body: r.Body}
	r.Body = b
	return b
}

func (b *Client) Read(p []byte) (int, error) {
	b.reading.Lock()
	defer b.reading.Unlock()
	if b.ended.Load() {
		return 0, http.ErrBodyReadAfterClose
	}
	return b.body.Read(p)
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
		b.reading.Unlock()
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

// Error says what an error of reading the body means.
func Error(err error) error {
	var tooLarge *http.MaxBytesError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &tooLarge):
		return openai.StatusError(http.StatusRequestEntityTooLarge, "The request body is larger than %d bytes.", tooLarge.Limit)
	}
	return openai.Invalid("", "The request body could not be read to its end.")
}
