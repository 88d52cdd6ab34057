// Package gateway is Backstory's HTTP API in front of a model router: chat
// completions with memory and files, the Files and Sessions APIs, usage, health.
// It knows no web server: Gateway.Serve is given each request together with the
// http.Handler that leads to the router.
//
// Every path is a line of routes.go. A chat request's way is told in chat.go. What goes into a prompt is decided in
// package prompt; what of a session a request carries, in package memory; what
// files say, in package knowledge.
package gateway

import (
	"context"
	"crypto/rand"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/backstory-proxy/backstory/embed"
	"github.com/backstory-proxy/backstory/gateway/internal/stats"
	"github.com/backstory-proxy/backstory/gateway/internal/upstream"
	"github.com/backstory-proxy/backstory/internal/keyring"
	"github.com/backstory-proxy/backstory/knowledge"
	"github.com/backstory-proxy/backstory/knowledge/sandbox"
	"github.com/backstory-proxy/backstory/tokens"
)

// Options configure a Gateway. Sizes and counts that are 0 have the defaults
// named; the other fields have none that matters.
type Options struct {
	// Keys are service keys, beside those in the store.
	Keys []Key
	// Plans by name, beside free (10), pro (100), premium (500) and enterprise
	// (1000 requests per minute), which they may change.
	Plans map[string]Plan
	// Context says how much goes into a prompt.
	Context ContextConfig
	// MaxBody is the largest chat request, in bytes. Default: 64 MiB.
	MaxBody int64
	// MaxFile is the largest upload, in bytes. Default: 100 MiB.
	MaxFile int64
	// MaxBodies is how many bytes of requests may be in memory at once, of all
	// tenants; one may have half. Default: what four of the largest take, and
	// 256 MiB at least.
	MaxBodies int64
	// MaxUploads is how many bytes of uploads may lie in the folder for temporary
	// files at once, of all tenants; one may have half. Default: what four of the
	// largest take, and 1 GiB at least.
	MaxUploads int64
	// UploadWait is how long the reply to an upload waits for the file to be
	// searchable. Default: 25 s.
	UploadWait time.Duration
	// BareModels says whether models may be named without a provider.
	BareModels bool
	// RouterKey is the operator's key of the model router. With it, clients
	// may send their service key alone, as Authorization: Bearer; this key goes
	// to the router in its place, with requests that ask a model.
	RouterKey string
	// SessionFrom is where a request names its session, if it has no sessionId
	// and no X-Backstory-Session-Id: the first of these that says something.
	// body:<path.to.field> or header:<Name>.
	SessionFrom []string
	// Origins of browser apps that may call, such as https://app.example, or *
	// for all.
	Origins []string
	// Embedder makes the vectors of files and questions.
	Embedder embed.Embedder
	// Sandbox reads the files that are uploaded.
	Sandbox *sandbox.Reader
	Logger  *zap.Logger

	// RequestID is the id of the request that a context belongs to. Default:
	// a random one for each request.
	RequestID func(context.Context) string
	// EscapedPath is the path of a request below the address of the API,
	// percent-encoded as the client sent it, where something in front has
	// rewritten it. Default: EscapedPath of the request's URL.
	EscapedPath func(*http.Request) string
	// Observe is called when the reply to a request has ended.
	Observe func(*http.Request, *Stats)
}

// Key is a service key of the configuration.
type Key = keyring.Key

// RouterError says that the router's handler has no reply.
type RouterError = upstream.Error

// Fail is for handlers that are given to a Gateway as the router: it says that
// there is no reply, because the router can't be reached, say. w is the writer
// that the handler was called with.
func Fail(w http.ResponseWriter, err *RouterError) { upstream.Fail(w, err) }

// IsOwn reports whether a request that the router's handler is given is one of the
// Gateway's own, such as for vectors, on behalf of a client's. It carries the
// headers and the context values of the client's request, which may be under way
// at the same time.
func IsOwn(r *http.Request) bool { return upstream.IsOwn(r) }

// Gateway is the HTTP API in front of a model router: it checks the service key,
// counts the request, answers what is its own (files, sessions), gives chat
// requests their context, and hands everything else to the router.
//
// It takes the paths of the OpenAI API without their base.
type Gateway struct {
	options Options
	cors    *cors // nil: browsers aren't told of origins
	meters  stats.Meters
	logger  *zap.Logger

	// What answers, each with what it uses of the gateway.
	gate     gate
	chats    chatAPI
	files    filesAPI
	sessions SessionsAPI

	// ready is closed when Start was called, with the store or with startErr.
	// Requests may come before.
	ready     chan struct{}
	startErr  error
	readiness readiness
	router    routerState
	shared    *Shared
}

// The defaults of Options.
const (
	defaultMaxBody    = 64 << 20
	defaultMaxFile    = 100 << 20
	leastMaxBodies    = 256 << 20
	leastMaxUploads   = 1 << 30
	defaultUploadWait = 25 * time.Second
)

// countedTexts is how many texts' token counts are remembered: about 1 MB.
const countedTexts = 8192

// New makes a Gateway of options that it checks. Requests wait until Start is
// called, once.
func New(o Options) (*Gateway, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	if o.MaxBody == 0 {
		o.MaxBody = defaultMaxBody
	}
	if o.MaxFile == 0 {
		o.MaxFile = defaultMaxFile
	}
	if o.MaxBodies == 0 {
		o.MaxBodies = max(leastMaxBodies, 4*o.MaxBody)
	}
	if o.MaxBodies < o.MaxBody {
		return nil, fmt.Errorf("max_bodies must be at least max_body")
	}
	if o.MaxUploads == 0 {
		o.MaxUploads = max(leastMaxUploads, 4*o.MaxFile)
	}
	if o.UploadWait == 0 {
		o.UploadWait = defaultUploadWait
	}
	if o.Logger == nil {
		o.Logger = zap.NewNop()
	}
	o.Context.setDefaults()
	plans := defaultPlans()
	for name, p := range o.Plans {
		plans[name] = p
	}
	if o.EscapedPath == nil {
		o.EscapedPath = func(r *http.Request) string { return EscapedPath(r.URL) }
	}
	if o.RequestID == nil {
		o.RequestID = requestIDOf
	}
	g := &Gateway{
		options: o,
		cors:    newCORS(o.Origins),
		meters:  stats.NewMeters(slices.Collect(maps.Keys(plans))),
		logger:  o.Logger,
		gate:    gate{plans: plans, routerKey: o.RouterKey},
		ready:   make(chan struct{}),
	}
	g.chats = chatAPI{
		options: &g.options, gate: &g.gate, logger: o.Logger,
		models: upstream.NewLengths(o.Context.lengthOf, o.Context.DefaultLength),
		counts: tokens.NewCache(countedTexts),
	}
	g.files = filesAPI{options: &g.options, logger: o.Logger}
	g.sessions = SessionsAPI{options: &g.options, gate: &g.gate, logger: o.Logger}
	var err error
	if g.gate.keys, err = keyring.New(o.Keys, g.HasPlan); err != nil {
		return nil, err
	}
	for i, k := range o.Keys {
		if k.Weak() {
			o.Logger.Warn("a service key of the configuration is shorter than 16 bytes and may be guessed; make one with the command keys create",
				zap.Int("key", i+1), zap.String("tenant", k.Tenant))
		}
	}
	if err := checkRouterKey(o.RouterKey, g.gate.keys); err != nil {
		return nil, err
	}
	if g.chats.sources, err = parseSessionSources(o.SessionFrom); err != nil {
		return nil, err
	}
	return g, nil
}

// validate checks the options.
func (o *Options) validate() error {
	for name, p := range o.Plans {
		if name == "" {
			return fmt.Errorf("a plan has an empty name")
		}
		if err := p.validate(); err != nil {
			return fmt.Errorf("plan %s: %w", name, err)
		}
	}
	if o.MaxBody < 0 || o.MaxFile < 0 {
		return fmt.Errorf("max_body and max_file must be positive")
	}
	for _, origin := range o.Origins {
		if err := CheckOrigin(origin); err != nil {
			return err
		}
	}
	return o.Context.validate()
}

// Start lets the requests in, to the store. With an error in place of it they are
// refused.
func (g *Gateway) Start(shared *Shared, err error) {
	if err == nil {
		k := knowledge.New(shared, shared, g.options.Embedder, knowledge.Options{Count: tokens.O200K().Count, Sandbox: g.options.Sandbox})
		g.shared, g.gate.shared, g.sessions.shared = shared, shared, shared
		g.chats.shared, g.chats.knowledge = shared, k
		g.files.shared, g.files.knowledge = shared, k
		shared.bodies.Resize(g.options.MaxBodies)
		shared.uploads.Resize(g.options.MaxUploads)
	}
	g.startErr = err
	close(g.ready)
}

// waitReady waits until the store is open.
func (g *Gateway) waitReady(ctx context.Context) error {
	select {
	case <-g.ready:
	case <-ctx.Done():
		return ctx.Err()
	}
	if g.startErr != nil {
		return &unavailable{g.startErr}
	}
	return nil
}

// Shared is the store, once it is open: nil where it couldn't be opened, or ctx
// ended before it was.
func (g *Gateway) Shared(ctx context.Context) *Shared {
	if g.waitReady(ctx) != nil {
		return nil
	}
	return g.shared
}

// Keys are the service keys.
func (g *Gateway) Keys() *keyring.Keyring { return g.gate.keys }

// Sessions are the sessions of all tenants, once the store is open: see Shared.
func (g *Gateway) Sessions() *SessionsAPI { return &g.sessions }

// HasPlan reports whether there is a plan of this name.
func (g *Gateway) HasPlan(name string) bool {
	_, ok := g.gate.plans[name]
	return ok
}

// requestIDKey is the key under which a context has the id of its request, where
// nobody else gives one.
type requestIDKey struct{}

func requestIDOf(ctx context.Context) string {
	id, _ := ctx.Value(requestIDKey{}).(string)
	return id
}

// Handler is the API in front of the router that is given.
func (g *Gateway) Handler(router http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g.Serve(w, r.WithContext(context.WithValue(r.Context(), requestIDKey{}, rand.Text())), router)
	})
}
