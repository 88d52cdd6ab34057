package caddymodule

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/backstory-proxy/backstory/embed"
)

// upstream reaches the model router for our own needs, through the handlers
// behind us, with the credentials of a request. Each call is a request of its
// own, with the headers and the path from before anything was rewritten.
type upstream struct {
	request *http.Request // as it came; only read
	next    caddyhttp.Handler
}

// newUpstream copies what it needs of r, which goes its own way afterwards.
// Calls may outlive r.
func newUpstream(r *http.Request, next caddyhttp.Handler) *upstream {
	c := r.Clone(context.WithoutCancel(r.Context()))
	for name := range c.Header {
		if bodyHeader[name] || strings.HasPrefix(name, headerPrefix) {
			delete(c.Header, name)
		}
	}
	return &upstream{request: c, next: next}
}

// bodyHeader are headers that belong to the body, or to the connection.
var bodyHeader = map[string]bool{
	"Accept": true, "Accept-Encoding": true, "Connection": true, "Content-Encoding": true,
	"Content-Length": true, "Content-Type": true, "Expect": true, "Te": true, "Trailer": true,
	"Transfer-Encoding": true, "Upgrade": true, "X-Stainless-Retry-Count": true,
	headerServiceKey: true,
}

// maxUpstreamReply bounds a reply that is read whole: 2,048 vectors of 3,072
// numbers take 34 MB in base64, OpenRouter's model list 1 MB.
const maxUpstreamReply = 64 << 20

// Call sends a request and reads the whole reply. It implements embed.Caller.
func (u *upstream) Call(ctx context.Context, method, path string, body []byte) (reply embed.Reply, err error) {
	r := u.request.Clone(withValuesOf(ctx, u.request.Context()))
	r.Method, r.RequestURI = method, path
	r.URL.Path, r.URL.RawPath, r.URL.RawQuery = path, "", ""
	r.Header.Set("Accept", "application/json")
	r.Body, r.ContentLength, r.TransferEncoding = http.NoBody, 0, nil
	if len(body) > 0 {
		r.Header.Set("Content-Type", "application/json")
		setBody(r, body)
	}
	server, _ := r.Context().Value(caddyhttp.ServerCtxKey).(*caddyhttp.Server)
	w := &recorder{header: http.Header{}}
	r = caddyhttp.PrepareRequest(r, caddy.NewReplacer(), w, server)

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
	if err := u.next.ServeHTTP(w, r); err != nil {
		var e caddyhttp.HandlerError
		if errors.As(err, &e) {
			return reply, fmt.Errorf("the model router can't be reached (status %d): %w", e.StatusCode, e.Err)
		}
		return reply, err
	}
	if w.tooLarge {
		return reply, fmt.Errorf("the model router's reply exceeds %d bytes", maxUpstreamReply)
	}
	return embed.Reply{Status: w.status, Header: w.header, Body: w.body.Bytes()}, nil
}

// valuesOf is a context with the deadline of one and the values of another.
type valuesOf struct {
	context.Context
	values context.Context
}

func withValuesOf(ctx, values context.Context) context.Context { return valuesOf{ctx, values} }

func (c valuesOf) Value(key any) any {
	if v := c.Context.Value(key); v != nil {
		return v
	}
	return c.values.Value(key)
}

// setBody gives a request a new body.
func setBody(r *http.Request, body []byte) {
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
	status   int
	body     bytes.Buffer
	tooLarge bool
}

func (w *recorder) Header() http.Header { return w.header }

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
	_ embed.Caller = (*upstream)(nil)
	_ http.Flusher = (*recorder)(nil)
)
