package gateway

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/backstory-proxy/backstory/gateway/internal/body"
	"github.com/backstory-proxy/backstory/gateway/internal/stats"
	"github.com/backstory-proxy/backstory/gateway/internal/upstream"
	"github.com/backstory-proxy/backstory/openai"
	"github.com/backstory-proxy/backstory/store"
)

// Serve answers a request, errors included. router leads to the model router.
func (g *Gateway) Serve(w http.ResponseWriter, r *http.Request, router http.Handler) {
	rw := g.newReplyWriter(w, r)
	rw.cors = g.cors
	defer body.Guard(r).Release(w) // last: it may end the request's context
	defer g.observe(rw, r)         // panics pass through here
	err := g.serve(rw, r, router)
	if err != nil {
		g.fail(rw, r, err)
	}
	if rw.replaced {
		g.logger.Error("the model router refused the router_key of the configuration", zap.String("request_id", rw.id))
	}
	rw.stats.Ended = true
}

func (g *Gateway) serve(w *replyWriter, r *http.Request, router http.Handler) error {
	route := g.routeOf(w, r)
	st := &w.stats
	st.Endpoint = route.endpoint
	if g.cors != nil && isPreflight(r) {
		preflight(w, r)
		return nil
	}
	if err := g.waitReady(r.Context()); err != nil {
		return err
	}
	g.shared.inUse.Add(1)
	defer g.shared.inUse.Done()

	who, err := g.gate.authenticate(r)
	st.End(stats.Auth)
	if err != nil {
		return err
	}
	w.onOperator = who.onOperator
	st.Tenant, st.Plan = who.scope.Tenant, who.planName
	if rate, refused := g.gate.refusals.of(who, time.Now()); refused {
		return w.setRate(rate)
	}
	if err := g.enter(w, who); err != nil {
		return err
	}
	defer g.shared.load.Leave(who.scope.Tenant)
	extension, err := takeHeaders(r.Header)
	// Whatever goes wrong after the key was checked, the request counts.
	if err != nil || !route.counts || !body.IsSmall(r) {
		if limited := g.gate.count(w, r, who); limited != nil {
			return limited
		}
	}
	if err != nil {
		return err
	}
	c := call{w, r, router, who, extension, g.shared.bodies.Claim(who.scope.Tenant, body.Small)}
	defer c.claim.Release()
	return route.serve(g, c)
}

// takeHeaders takes our headers off a request and reads them.
func takeHeaders(header http.Header) (openai.Extension, error) {
	ext, err := openai.ExtensionFromHeader(func(name string) (string, bool) {
		values := header[upstream.HeaderPrefix+name]
		if len(values) == 0 {
			return "", false
		}
		return values[0], true
	})
	for name := range header {
		if strings.HasPrefix(name, upstream.HeaderPrefix) {
			delete(header, name)
		}
	}
	return ext, err
}

// unavailable is a failure of the store before anything was done.
type unavailable struct{ err error }

func (u *unavailable) Error() string { return "the store can't do its work: " + u.err.Error() }
func (u *unavailable) Unwrap() error { return u.err }

// storeError is what a client is told of a failure of the store. Of a chat it is
// told that it has cost nothing.
func storeError(err error, endpoint stats.Endpoint) *openai.Error {
	code, what := openai.CodeStoreUnavailable, "The memory store can't be reached at the moment."
	if errors.Is(err, store.ErrFull) {
		code, what = openai.CodeStoreFull, "The memory store is full: it can be read and deleted from, but takes nothing new."
	}
	if endpoint == stats.EndpointChat {
		what += " The model was not called."
	}
	e := openai.StatusError(http.StatusServiceUnavailable, "%s Please try again.", what)
	e.Code = code
	return e
}

// fail answers with an error, in the shape of the OpenAI API.
func (g *Gateway) fail(w *replyWriter, r *http.Request, err error) {
	reply := replyTo(r.Context(), err, w.stats.Endpoint)
	if w.stats.Outcome == stats.OutcomeOK {
		w.stats.Outcome = outcomeOf(err, reply)
	}
	if w.stats.Outcome == stats.OutcomeStoreDown {
		stats.RefusedError.Inc()
	}
	level := zap.DebugLevel
	if reply.Status >= 500 && r.Context().Err() == nil && w.stats.Outcome != stats.OutcomeOverloaded {
		level = zap.ErrorLevel
	}
	if c := g.logger.Check(level, "request failed"); c != nil {
		c.Write(zap.String("request_id", w.id), zap.Int("status", reply.Status), cause(err, reply))
	}
	if w.wroteHeader {
		return // too late to say anything
	}
	if r.ProtoMajor == 1 && r.Header.Get("Expect") != "" {
		// The client waits for leave to send its body, and the server, behind
		// Caddy's own reader, for the body to read on. Nobody wants it.
		w.Header().Set("Connection", "close")
	}
	writeError(w, reply)
}

// replyTo is what a client is told of an error.
func replyTo(ctx context.Context, err error, endpoint stats.Endpoint) *openai.Error {
	var (
		ours   *openai.Error
		down   *unavailable
		router *RouterError
	)
	switch {
	case errors.As(err, &ours):
		return ours
	case ctx.Err() != nil:
		return openai.StatusError(stats.StatusClientClosed, "The client closed the request.")
	case errors.As(err, &down):
		return storeError(down, endpoint)
	case errors.Is(err, store.ErrNotFound):
		return openai.StatusError(http.StatusNotFound, "There is no such object.")
	case errors.As(err, &router) && router.Status > 0:
		return openai.StatusError(router.Status, "%s", statusMessage(router.Status))
	}
	return openai.StatusError(http.StatusInternalServerError, "The server had an error while processing your request.")
}

// statusMessage says what a status that the router's handler gave means here.
func statusMessage(status int) string {
	switch status {
	case http.StatusBadGateway:
		return "The model router can't be reached."
	case http.StatusServiceUnavailable:
		return "No model router is available at the moment."
	case http.StatusGatewayTimeout:
		return "The model router did not answer in time."
	case http.StatusRequestEntityTooLarge:
		return "The request body is too large."
	}
	if text := http.StatusText(status); text != "" {
		return text + "."
	}
	return "The request failed."
}
