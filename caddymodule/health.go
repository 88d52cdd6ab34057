package caddymodule

import (
	"context"
	"net/http"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/backstory-proxy/backstory/openai"
)

func init() {
	caddy.RegisterModule(new(Health))
	caddy.RegisterModule(new(Errors))
}

// Health answers GET /healthz (the process lives) and GET /readyz (the store
// answers), for load balancers: without a key, at the root of a site.
type Health struct {
	app *App
}

// CaddyModule returns the Caddy module information.
func (*Health) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.handlers.backstory_health", New: func() caddy.Module { return new(Health) }}
}

// Provision finds the App.
func (h *Health) Provision(ctx caddy.Context) error {
	app, err := ctx.App("backstory")
	if err != nil {
		return err
	}
	h.app = app.(*App)
	return nil
}

// readyTimeout is how long the store may take to answer.
const readyTimeout = 2 * time.Second

func (h *Health) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return next.ServeHTTP(w, r)
	}
	switch r.URL.Path {
	case "/healthz":
		writeBody(newReplyWriter(w, r), http.StatusOK, []byte(`{"status":"ok"}`))
		return nil
	case "/readyz":
		h.ready(newReplyWriter(w, r), r)
		return nil
	}
	return next.ServeHTTP(w, r)
}

func (h *Health) ready(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), readyTimeout)
	defer cancel()
	select {
	case <-h.app.ready:
	case <-ctx.Done():
		writeError(w, openai.StatusError(http.StatusServiceUnavailable, "Backstory is starting."))
		return
	}
	if err := h.app.shared.Ping(ctx); err != nil {
		writeError(w, openai.StatusError(http.StatusServiceUnavailable, "The memory store does not answer."))
		return
	}
	writeBody(w, http.StatusOK, []byte(`{"status":"ok"}`))
}

// Errors answers with Caddy's own errors in the shape of the OpenAI API, for
// use in handle_errors.
type Errors struct{}

// CaddyModule returns the Caddy module information.
func (*Errors) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.handlers.backstory_errors", New: func() caddy.Module { return new(Errors) }}
}

func (*Errors) ServeHTTP(w http.ResponseWriter, r *http.Request, _ caddyhttp.Handler) error {
	status := http.StatusInternalServerError
	if err, ok := r.Context().Value(caddyhttp.ErrorCtxKey).(error); ok {
		status = replyTo(r.Context(), err).Status
	}
	writeError(newReplyWriter(w, r), openai.StatusError(status, "%s", statusMessage(status)))
	return nil
}

// Interface guards
var (
	_ caddy.Provisioner           = (*Health)(nil)
	_ caddyhttp.MiddlewareHandler = (*Health)(nil)
	_ caddyhttp.MiddlewareHandler = (*Errors)(nil)
)
