package gateway

import (
	"net/http"
	"net/url"
	"path"
	"strings"

	"github.com/backstory-proxy/backstory/gateway/internal/admission"
	"github.com/backstory-proxy/backstory/gateway/internal/stats"
	"github.com/backstory-proxy/backstory/openai"
)

// route says what the gateway does with one kind of request. Each carries both
// keys, or the one that stands for both.
type route struct {
	// pattern is one of http.ServeMux. GET includes HEAD.
	pattern  string
	endpoint stats.Endpoint // in metrics and logs
	serve    func(*Gateway, call) error
	// counts says that the handler counts the request against the rate, in the
	// same trip to the store in which it learns what it needs. Other requests
	// are counted ahead of their handler, and so are those with a body that is
	// large, or may be.
	counts bool
	// shared says that the path is the router's with any other method.
	shared bool
}

// table holds every path of ours.
var table = []route{
	{pattern: "POST /chat/completions", endpoint: stats.EndpointChat, serve: chats((*chatAPI).chat), counts: true, shared: true},
	{pattern: "POST " + previewPath, endpoint: stats.EndpointPreview, serve: chats((*chatAPI).chat), counts: true, shared: true},

	{pattern: "GET /files", endpoint: stats.EndpointFiles, serve: files((*filesAPI).list)},
	{pattern: "POST /files", endpoint: stats.EndpointFiles, serve: files((*filesAPI).upload)},
	{pattern: "POST /files/search", endpoint: stats.EndpointFiles, serve: files((*filesAPI).search)},
	{pattern: "GET /files/{id}", endpoint: stats.EndpointFiles, serve: files((*filesAPI).describe)},
	{pattern: "DELETE /files/{id}", endpoint: stats.EndpointFiles, serve: files((*filesAPI).delete)},
	{pattern: "GET /files/{id}/content", endpoint: stats.EndpointFiles, serve: files((*filesAPI).content)},
	{pattern: "POST /files/{id}/reindex", endpoint: stats.EndpointFiles, serve: files((*filesAPI).reindex)},

	{pattern: "GET /sessions", endpoint: stats.EndpointSessions, serve: sessions((*SessionsAPI).list)},
	{pattern: "GET /sessions/{id}", endpoint: stats.EndpointSessions, serve: sessions((*SessionsAPI).describe)},
	{pattern: "DELETE /sessions/{id}", endpoint: stats.EndpointSessions, serve: sessions((*SessionsAPI).delete)},
	{pattern: "GET /sessions/{id}/messages", endpoint: stats.EndpointSessions, serve: sessions((*SessionsAPI).messages)},
	{pattern: "POST /sessions/{id}/messages", endpoint: stats.EndpointSessions, serve: sessions((*SessionsAPI).importMessages), counts: true},

	{pattern: "GET " + usagePath, endpoint: stats.EndpointOther, serve: (*Gateway).usage},
}

// operators has the router's paths that may be asked for with the operator's key:
// what asks a model, and what tells of models. What else a router has at its
// address may show or change the operator's account: its keys, its credit, what
// other tenants left there.
var operators = newMux(
	"POST /completions", "POST /embeddings", "POST /responses", "POST /moderations", "POST /rerank",
	"POST /audio/speech", "POST /audio/transcriptions", "POST /audio/translations",
	"POST /images/generations", "POST /images/edits", "POST /images/variations",
	"GET /models", "GET /models/{model...}",
)

// newMux is a mux that is only asked whether it has a path.
func newMux(patterns ...string) *http.ServeMux {
	mux := http.NewServeMux()
	for _, p := range patterns {
		mux.Handle(p, http.NotFoundHandler())
	}
	return mux
}

// handler answers a call.
type handler func(*Gateway, call) error

// call is a request whose keys are good.
type call struct {
	w         *replyWriter
	r         *http.Request
	router    http.Handler
	who       caller
	extension openai.Extension // of its headers
	claim     *admission.Claim // on memory, for its body
}

func (c *call) id() string { return c.r.PathValue("id") }

// passedOn is the route of what isn't ours.
var passedOn = &route{endpoint: stats.EndpointOther, serve: chats((*chatAPI).passOn)}

// The parts of the gateway that have handlers.
func chats(f func(*chatAPI, call) error) handler {
	return func(g *Gateway, c call) error { return f(&g.chats, c) }
}

func files(f func(*filesAPI, call) error) handler {
	return func(g *Gateway, c call) error { return f(&g.files, c) }
}

func sessions(f func(*SessionsAPI, call) error) handler {
	return func(g *Gateway, c call) error { return f(&g.sessions, c) }
}

// routes is the table, ready for use.
var routes = newRouteTable(table)

// routeTable finds routes. No path gets to its mux that isn't ours: a mux redirects
// what looks untidy to it.
type routeTable struct {
	mux   *http.ServeMux
	paths map[string]*route // by path, where nothing in it varies
	trees map[string]*route // by first step: everything below is ours
}

func newRouteTable(table []route) *routeTable {
	t := &routeTable{http.NewServeMux(), map[string]*route{}, map[string]*route{}}
	for i := range table {
		r := &table[i]
		t.mux.Handle(r.pattern, r)
		_, p, _ := strings.Cut(r.pattern, " ")
		if fixed, _, varies := strings.Cut(p, "{"); varies {
			t.trees[firstStep(fixed)] = r
		} else {
			t.paths[p] = r
		}
	}
	return t
}

// firstStep is the first step of a path, with the slash ahead of it.
func firstStep(p string) string {
	if p == "" {
		return ""
	}
	if i := strings.IndexByte(p[1:], '/'); i >= 0 {
		return p[:1+i]
	}
	return p
}

// owner is any route of ours at a path, or above it; nil if the path is the
// router's.
func (t *routeTable) owner(p string) *route {
	if r := t.paths[p]; r != nil {
		return r
	}
	return t.trees[firstStep(p)]
}

// routeOf finds the route of a request. Where that is one of ours, r has its path
// values, and its URL is as the client sent it, but for one slash at its end.
func (g *Gateway) routeOf(w *replyWriter, r *http.Request) *route {
	escaped, decoded := g.options.EscapedPath(r), r.URL.Path
	asIs := escaped == r.URL.EscapedPath()
	if !asIs {
		var err error
		if decoded, err = url.PathUnescape(escaped); err != nil {
			return unknown(stats.EndpointOther)
		}
	}
	was := r.URL
	trimmed, cut := strings.CutSuffix(escaped, "/")
	if cut {
		decoded = decoded[:len(decoded)-1]
	}
	owner := routes.owner(decoded)
	if owner == nil {
		if cut {
			decoded += "/"
		}
		if decoded == was.Path && (escaped == "" || escaped[0] == '/') && !hasDots(decoded) {
			return passedOn
		}
		// By its escapes it says one thing to us, and another to the router.
		r.URL = withPath(was, decoded, escaped)
		return unknown(stats.EndpointOther)
	}
	if path.Clean(trimmed) == trimmed {
		if cut || decoded != trimmed {
			r.URL = &url.URL{Path: trimmed} // or the mux would read a slash into an id
		}
		routes.mux.ServeHTTP(&w.match, r)
		if id := r.PathValue("id"); id != "" {
			id, _ = url.PathUnescape(id) // it has been unescaped with the path, above
			r.SetPathValue("id", id)
		}
	}
	r.URL = was
	allowed := w.match.header.Get("Allow")
	if allowed != "" && owner.shared {
		return passedOn
	}
	if cut || !asIs {
		r.URL = withPath(was, decoded, trimmed)
	}
	switch {
	case w.match.route != nil:
		return w.match.route
	case allowed != "":
		return &route{endpoint: owner.endpoint, serve: func(_ *Gateway, c call) error { return notAllowed(c.w, c.r, allowed) }}
	}
	return unknown(owner.endpoint)
}

// unknown is the route of a path that nobody has.
func unknown(endpoint stats.Endpoint) *route {
	return &route{endpoint: endpoint, serve: func(_ *Gateway, c call) error { return noSuchPath(c.r) }}
}

// hasDots reports whether a path has steps that lead nowhere or up.
func hasDots(p string) bool {
	for step := range strings.SplitSeq(p, "/") {
		if step == "." || step == ".." {
			return true
		}
	}
	return false
}

// withPath is a URL with another path.
func withPath(u *url.URL, decoded, escaped string) *url.URL {
	c := *u
	c.Path, c.RawPath = decoded, ""
	if c.EscapedPath() != escaped {
		c.RawPath = escaped
	}
	return &c
}

// EscapedPath is the path of a URL as it was sent, percent-encoded. Unlike the
// URL's own method, it keeps escapes also where another character lacks its own,
// which it escapes.
func EscapedPath(u *url.URL) string {
	escaped := u.EscapedPath()
	if u.RawPath == "" || u.RawPath == escaped {
		return escaped
	}
	if decoded, err := url.PathUnescape(u.RawPath); err != nil || decoded != u.Path {
		return escaped
	}
	var b strings.Builder
	for i := range len(u.RawPath) {
		switch c := u.RawPath[i]; c {
		case '%', '/':
			b.WriteByte(c)
		default:
			b.WriteString(url.PathEscape(u.RawPath[i : i+1]))
		}
	}
	return b.String()
}

// match takes in what the mux finds: a route, or the header of a reply, which may
// name the methods allowed.
type match struct {
	route  *route
	header http.Header
}

// ServeHTTP names the route, as what the mux found.
func (r *route) ServeHTTP(w http.ResponseWriter, _ *http.Request) { w.(*match).route = r }

func (m *match) Header() http.Header {
	if m.header == nil {
		m.header = http.Header{}
	}
	return m.header
}

func (m *match) Write(p []byte) (int, error) { return len(p), nil }
func (m *match) WriteHeader(int)             {}

func notAllowed(w http.ResponseWriter, r *http.Request, allowed string) error {
	w.Header().Set("Allow", allowed)
	return openai.StatusError(http.StatusMethodNotAllowed, "Not allowed to %s on %s.", r.Method, r.URL.Path)
}

func noSuchPath(r *http.Request) error {
	path := r.URL.Path
	if r.URL.RawPath != "" { // decoded, it might look like one that there is
		path = r.URL.RawPath
	}
	return openai.StatusError(http.StatusNotFound, "Unknown request URL: %s %s.", r.Method, path)
}

// Interface guards
var (
	_ http.Handler        = (*route)(nil)
	_ http.ResponseWriter = (*match)(nil)
)
