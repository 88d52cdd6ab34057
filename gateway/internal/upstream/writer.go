package upstream

import (
	"io"
	"net/http"
)

// Writer passes a reply on. What reads or changes replies embeds it: the router's
// handler is called with nothing else.
type Writer struct {
	http.ResponseWriter
	failed error // what the router's handler failed with, in place of a reply
}

// Unwrap returns the writer below, for http.ResponseController.
func (w *Writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// ReadFrom implements io.ReaderFrom, so that the server can hand a file or a
// connection on without copying it.
func (w *Writer) ReadFrom(r io.Reader) (int64, error) { return io.Copy(w.ResponseWriter, r) }

func (w *Writer) fail(err error) { w.failed = err }

func (w *Writer) failure() error { return w.failed }

// Failer is what every writer is that the router's handler is called with.
type Failer interface {
	http.ResponseWriter
	fail(err error)
	failure() error
}

// Error says that the router's handler has no reply.
type Error struct {
	Status int // of HTTP, that the client is to be told; 0: 500
	Err    error
}

func (e *Error) Error() string { return e.Err.Error() }
func (e *Error) Unwrap() error { return e.Err }

// Fail is for handlers which are called as the router: it says that there
// is no reply, because the router can't be reached, say. w is the writer that
// the handler was called with.
func Fail(w http.ResponseWriter, err *Error) {
	if f, ok := w.(Failer); ok {
		f.fail(err)
	}
}

// Call hands a request on, and returns what the router's handler failed
// with.
func Call(router http.Handler, w Failer, r *http.Request) error {
	router.ServeHTTP(w, r)
	return w.failure()
}
