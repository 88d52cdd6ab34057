package demo

import (
	"net/http"
	"strings"
	"time"
)

// InvalidKey is the one router key that is refused, so that a bad key can be
// shown.
const InvalidKey = "sk-invalid"

// maxBody is the most that a request's body may hold.
const maxBody = 32 << 20

// Options are what a Router is made from. The zero value will do.
type Options struct {
	// Count counts the tokens of a text, for usage and for the limits of
	// context and reply. Default: one per four bytes.
	Count func(string) int
	// Now tells the time for the created fields. Default: time.Now.
	Now func() time.Time
}

// Router is the demo model router: an http.Handler, safe for concurrent use.
//
// It lists demo/small (a context of 4096 tokens), demo/echo (8192), demo/large
// (131072) and demo/embedding (8192); any other name has demo/large's context.
type Router struct {
	count func(string) int
	now   func() time.Time
}

// New returns a Router.
func New(o Options) *Router {
	rt := &Router{count: o.Count, now: o.Now}
	if rt.count == nil {
		rt.count = func(s string) int { return (len(s) + 3) / 4 }
	}
	if rt.now == nil {
		rt.now = time.Now
	}
	return rt
}

// ServeHTTP implements http.Handler.
func (rt *Router) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if err := rt.serve(w, r); err != nil {
		err.write(w)
	}
}

// serve finds the endpoint by the end of the path. An error that it returns has
// not been written yet.
func (rt *Router) serve(w http.ResponseWriter, r *http.Request) *apiError {
	if err := authorize(r); err != nil {
		return err
	}
	method, handle := http.MethodGet, rt.serveModels
	path := strings.TrimSuffix(r.URL.Path, "/")
	switch {
	case strings.HasSuffix(path, "/chat/completions"):
		method, handle = http.MethodPost, rt.serveChat
	case strings.HasSuffix(path, "/embeddings"):
		method, handle = http.MethodPost, rt.serveEmbeddings
	case strings.HasSuffix(path, "/models"):
	case strings.Contains(path, "/models/"):
		handle = rt.serveModel
	default:
		return errUnknownPath(r)
	}
	if r.Method != method {
		w.Header().Set("Allow", method)
		return errMethod(r)
	}
	return handle(w, r)
}

func authorize(r *http.Request) *apiError {
	scheme, key, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	key = strings.TrimSpace(key)
	switch {
	case !strings.EqualFold(scheme, "Bearer") || key == "":
		return errKey("No API key was sent: expected the header Authorization: Bearer <key>.")
	case key == InvalidKey:
		return errKey("Incorrect API key provided: " + InvalidKey + ".")
	}
	return nil
}
