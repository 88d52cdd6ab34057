package caddymodule

import (
	"errors"
	"net/http"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/backstory-proxy/backstory/openai"
)

func init() {
	caddy.RegisterModule(new(Health))
	caddy.RegisterModule(new(Errors))
}

// Health answers GET /healthz (the process lives) and GET /readyz (the store
// answers; how its index and the router are doing), for load balancers: without
// a key, at the root of a site.
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

func (h *Health) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return next.ServeHTTP(w, r)
	}
	switch r.URL.Path {
	case "/healthz":
		writeBody(newReplyWriter(w, r), http.StatusOK, []byte(`{"status":"ok"}`))
		return nil
	case "/readyz":
		h.app.isReady(newReplyWriter(w, r), r)
		return nil
	}
	return next.ServeHTTP(w, r)
}

// Errors answers with Caddy's own errors in the shape of the OpenAI API, for
// use in handle_errors.
type Errors struct {
	cors *cors
}

// CaddyModule returns the Caddy module information.
func (*Errors) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.handlers.backstory_errors", New: func() caddy.Module { return new(Errors) }}
}

// Provision finds out which origins may read the errors.
func (e *Errors) Provision(ctx caddy.Context) error {
	app, err := ctx.AppIfConfigured("backstory")
	if errors.Is(err, caddy.ErrNotConfigured) {
		return nil
	}
	if err != nil {
		return err
	}
	e.cors = app.(*App).cors
	return nil
}

func (e *Errors) ServeHTTP(w http.ResponseWriter, r *http.Request, _ caddyhttp.Handler) error {
	status := http.StatusInternalServerError
	if err, ok := r.Context().Value(caddyhttp.ErrorCtxKey).(error); ok {
		status = replyTo(r.Context(), err).Status
	}
	rw := newReplyWriter(w, r)
	rw.cors = e.cors
	writeError(rw, openai.StatusError(status, "%s", statusMessage(status)))
	return nil
}

// Interface guards
var (
	_ caddy.Provisioner           = (*Health)(nil)
	_ caddy.Provisioner           = (*Errors)(nil)
	_ caddyhttp.MiddlewareHandler = (*Health)(nil)
	_ caddyhttp.MiddlewareHandler = (*Errors)(nil)
)
