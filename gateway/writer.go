package gateway

import (
	"io"
	"net/http"
)

// responseWriter passes a reply on. What reads or changes replies embeds it.
type responseWriter struct {
	http.ResponseWriter
	failed error // what the router's handler failed with, in place of a reply
}

// Unwrap returns the writer below, for http.ResponseController.
func (w *responseWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// ReadFrom implements io.ReaderFrom, so that the server can hand a file or a
// connection on without copying it.
func (w *responseWriter) ReadFrom(r io.Reader) (int64, error) { return io.Copy(w.ResponseWriter, r) }

func (w *responseWriter) fail(err error) { w.failed = err }

func (w *responseWriter) failure() error { return w.failed }

// failer is what every writer is that the router's handler is called with.
type failer interface {
	http.ResponseWriter
	fail(err error)
	failure() error
}

// RouterError says that the router's handler has no reply.
type RouterError struct {
	Status int // of HTTP, that the client is to be told; 0: 500
	Err    error
}

func (e *RouterError) Error() string { return e.Err.Error() }
func (e *RouterError) Unwrap() error { return e.Err }

// Fail is for handlers which a Gateway calls as the router: it says that there
// is no reply, because the router can't be reached, say. w is the writer that
// the handler was called with.
func Fail(w http.ResponseWriter, err *RouterError) {
	if f, ok := w.(failer); ok {
		f.fail(err)
	}
}

// callRouter hands a request on, and returns what the router's handler failed
// with.
func callRouter(router http.Handler, w failer, r *http.Request) error {
	router.ServeHTTP(w, r)
	return w.failure()
}
