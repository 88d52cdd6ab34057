package gateway

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/backstory-proxy/backstory/gateway/internal/stats"
	"github.com/backstory-proxy/backstory/internal/respond"
	"github.com/backstory-proxy/backstory/openai"
	"github.com/backstory-proxy/backstory/store"
)

const (
	// readyTimeout is how long the store may take to answer.
	readyTimeout = 2 * time.Second
	// readyFresh is how long an answer is good: anyone may ask.
	readyFresh = time.Second
)

// readiness answers GET /readyz. Only a store that doesn't answer makes a proxy
// unfit: without its index it still has memory, and what the router lacks no
// other proxy has.
type readiness struct {
	mu    sync.Mutex
	until time.Time
	store error
	index string
}

// What is told of a part.
const (
	partOK          = "ok"
	partFailing     = "failing"
	partUnreachable = "unreachable"
	partUnknown     = "unknown"
	partBusy        = "busy"
)

// routerState is how the last request to the router ended. It isn't asked for
// its own sake: it has no address that needs no key, and how its upstreams are
// doing is reverse_proxy's to know.
type routerState struct{ v atomic.Int32 }

const (
	routerUnknown int32 = iota
	routerOK
	routerUnreachable
)

// saw takes in how a request ended that went to the router.
func (s *routerState) saw(r *Stats) {
	if r.Took(stats.Router) == 0 || r.Outcome == stats.OutcomeClientClosed {
		return
	}
	now := routerOK
	if r.Outcome == stats.OutcomeUnreachable {
		now = routerUnreachable
	}
	if s.v.Load() != now {
		s.v.Store(now)
	}
}

func (s *routerState) String() string {
	return [...]string{partUnknown, partOK, partUnreachable}[s.v.Load()]
}

// check asks the store and its index, unless that was done just now. Who asks
// meanwhile waits for the answer.
func (r *readiness) check(ctx context.Context, s abilities) (index string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if time.Now().Before(r.until) {
		return r.index, r.store
	}
	// Whoever asked may go away; the answer is for others, too.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readyTimeout)
	defer cancel()
	r.store, r.index = s.Ping(ctx), partOK
	// Nobody is called that: it finds nothing, in the way of a search that would.
	if _, err := s.SearchText(ctx, store.Scope{Tenant: "-"}, []string{"ready"}, 1); err != nil && !errors.Is(err, store.ErrFilesOff) {
		r.index = partFailing
	}
	r.until = time.Now().Add(readyFresh)
	return r.index, r.store
}

// Live answers that the process lives.
func (g *Gateway) Live(w http.ResponseWriter, r *http.Request) {
	respond.Body(g.newReplyWriter(w, r), http.StatusOK, []byte(`{"status":"ok"}`))
}

// Error answers a request that something in front of the gateway has failed for,
// in the shape of the OpenAI API.
func (g *Gateway) Error(w http.ResponseWriter, r *http.Request, status int) {
	if r.Context().Err() != nil {
		status = stats.StatusClientClosed
	}
	rw := g.newReplyWriter(w, r)
	rw.cors = g.cors
	writeError(rw, openai.StatusError(status, "%s", statusMessage(status)))
}

// notReady says why the store makes a proxy unfit. What it says in detail names
// hosts, and is for the log: anyone may ask.
func notReady(err error) *openai.Error {
	if errors.Is(err, store.ErrFull) {
		return storeError(err, stats.EndpointOther)
	}
	what := "The memory store does not answer."
	if errors.Is(err, store.ErrNotReady) {
		what = "The memory store has not been there since this proxy was started."
	}
	e := openai.StatusError(http.StatusServiceUnavailable, "%s The proxy's log says why.", what)
	e.Code = openai.CodeStoreUnavailable
	return e
}

// Ready answers whether this proxy can serve: 503 where its store doesn't
// answer, or has no room to write.
func (g *Gateway) Ready(rw http.ResponseWriter, r *http.Request) {
	w := g.newReplyWriter(rw, r)
	ctx, cancel := context.WithTimeout(r.Context(), readyTimeout)
	defer cancel()
	if err := g.waitReady(ctx); err != nil {
		writeError(w, openai.StatusError(http.StatusServiceUnavailable, "Backstory is starting."))
		return
	}
	index, err := g.readiness.check(r.Context(), g.shared.abilities)
	if err == nil {
		err = g.shared.keeps(r.Context())
	}
	if err != nil {
		writeError(w, notReady(err))
		return
	}
	_ = respond.JSON(w, struct {
		Status string `json:"status"`
		Store  string `json:"store"`
		Index  string `json:"index"`
		Router string `json:"router"`
		Load   string `json:"load"`
	}{partOK, partOK, index, g.router.String(), g.shared.loadState()})
}
