// Package upstream is the way to the model router: the http.Handler that leads
// there, what it is given to write to, and requests of the gateway's own.
package upstream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/backstory-proxy/backstory/embed"
)

// Header names of ours, canonical. None of them ever goes upstream.
const (
	HeaderServiceKey = "Servicekey"
	HeaderPrefix     = "X-Backstory-"
)

// Caller reaches the model router for our own needs, through the handlers
// behind us, with the credentials of a request. Each call is a request of its
// own, with the headers and the path from before anything was rewritten.
type Caller struct {
	request *http.Request // as it came; only read
	router  http.Handler
}

// New copies what it needs of r, which goes its own way afterwards.
// Calls may outlive r.
func New(r *http.Request, router http.Handler) *Caller {
	c := r.Clone(context.WithoutCancel(r.Context()))
	for name := range c.Header {
		if bodyHeader[name] || strings.HasPrefix(name, HeaderPrefix) {
			delete(c.Header, name)
		}
	}
	return &Caller{request: c, router: router}
}

// bodyHeader are headers that belong to the body, or to the connection.
var bodyHeader = map[string]bool{
	"Accept": true, "Accept-Encoding": true, "Connection": true, "Content-Encoding": true,
	"Content-Length": true, "Content-Type": true, "Expect": true, "Te": true, "Trailer": true,
	"Transfer-Encoding": true, "Upgrade": true, "X-Stainless-Retry-Count": true,
	HeaderServiceKey: true,
}

// maxUpstreamReply bounds a reply that is read whole: 2,048 vectors of 3,072
// numbers take 34 MB in base64, OpenRouter's model list 1 MB.
const maxUpstreamReply = 64 << 20

// Call sends a request and reads the whole reply. It implements embed.Caller.
func (u *Caller) Call(ctx context.Context, method, path string, body []byte) (reply embed.Reply, err error) {
	r := u.request.Clone(withValuesOf(ctx, u.request.Context()))
	r.Method, r.RequestURI = method, path
	r.URL.Path, r.URL.RawPath, r.URL.RawQuery = path, "", ""
	r.Header.Set("Accept", "application/json")
	r.Body, r.ContentLength, r.TransferEncoding = http.NoBody, 0, nil
	if len(body) > 0 {
		r.Header.Set("Content-Type", "application/json")
		SetBody(r, body)
	}
	w := &recorder{header: http.Header{}}

	defer func() {
		// The proxy panics when the connection breaks in the middle of a
		// reply; there is no server above us to recover it.
		if p := recover(); p != nil {
			err = errors.New("the model router's reply broke off")
			if p != http.ErrAbortHandler { //nolint:errorlint // compared as net/http does
				err = fmt.Errorf("a handler behind backstory panicked: %v", p)
			}
		}
	}()
	if err := Call(u.router, w, r); err != nil {
		var e *Error
		if errors.As(err, &e) && e.Status > 0 {
			return reply, fmt.Errorf("the model router can't be reached (status %d): %w", e.Status, e.Err)
		}
		return reply, err
	}
	if w.tooLarge {
		return reply, fmt.Errorf("the model router's reply exceeds %d bytes", maxUpstreamReply)
	}
	return embed.Reply{Status: w.status, Header: w.header, Body: w.body.Bytes()}, nil
}

// valuesOf is the context of a request of our own: with the deadline of one and
// the values of another.
type valuesOf struct {
	context.Context
	values context.Context
}

// ownRequest is the key under which the context of a request of our own has true.
type ownRequest struct{}

// IsOwn reports whether a request that the router's handler is given is one of
// the gateway's own, such as for vectors, on behalf of a client's: it carries
// the client's headers, and the context values of the client's request, which
// may be under way at the same time.
func IsOwn(r *http.Request) bool { own, _ := r.Context().Value(ownRequest{}).(bool); return own }

func withValuesOf(ctx, values context.Context) context.Context { return valuesOf{ctx, values} }

func (c valuesOf) Value(key any) any {
	if key == (ownRequest{}) {
		return true
	}
	if v := c.Context.Value(key); v != nil {
		return v
	}
	return c.values.Value(key)
}

// SetBody gives a request a new body.
func SetBody(r *http.Request, body []byte) {
	r.Body = io.NopCloser(bytes.NewReader(body))
	r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	r.ContentLength = int64(len(body))
	r.Header.Set("Content-Length", strconv.Itoa(len(body)))
	// A trailer would force the request into chunks; the body is whole, and
	// nobody waits for leave to send it.
	r.TransferEncoding, r.Trailer = nil, nil
	r.Header.Del("Expect")
}

// recorder keeps a reply.
type recorder struct {
	header   http.Header
	failed   error
	status   int
	body     bytes.Buffer
	tooLarge bool
}

func (w *recorder) Header() http.Header { return w.header }
func (w *recorder) fail(err error)      { w.failed = err }
func (w *recorder) failure() error      { return w.failed }

func (w *recorder) WriteHeader(status int) {
	if w.status == 0 && status >= 200 {
		w.status = status
	}
}

func (w *recorder) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	if w.body.Len()+len(p) > maxUpstreamReply {
		w.tooLarge = true
		return len(p), nil
	}
	return w.body.Write(p)
}

// Flush implements http.Flusher: there is nobody to be shown the reply early.
func (w *recorder) Flush() {}

// Interface guards
var (
	_ embed.Caller = (*Caller)(nil)
	_ http.Flusher = (*recorder)(nil)
)
