package caddymodule

import (
	"errors"
	"net/http"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/backstory-proxy/backstory/gateway"
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
		logRequestID(r)
		h.app.gateway.Live(w, r)
		return nil
	case "/readyz":
		logRequestID(r)
		h.app.gateway.Ready(w, r)
		return nil
	}
	return next.ServeHTTP(w, r)
}

// Errors answers with Caddy's own errors in the shape of the OpenAI API, for
// use in handle_errors.
type Errors struct {
	gateway *gateway.Gateway
}

// CaddyModule returns the Caddy module information.
func (*Errors) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.handlers.backstory_errors", New: func() caddy.Module { return new(Errors) }}
}

// Provision finds the gateway, which knows what origins may read the errors.
func (e *Errors) Provision(ctx caddy.Context) error {
	app, err := ctx.AppIfConfigured("backstory")
	if errors.Is(err, caddy.ErrNotConfigured) {
		e.gateway, err = gateway.New(gateway.Options{RequestID: requestID})
		return err
	}
	if err != nil {
		return err
	}
	e.gateway = app.(*App).gateway
	return nil
}

func (e *Errors) ServeHTTP(w http.ResponseWriter, r *http.Request, _ caddyhttp.Handler) error {
	status := http.StatusInternalServerError
	var handler caddyhttp.HandlerError
	if err, ok := r.Context().Value(caddyhttp.ErrorCtxKey).(error); ok && errors.As(err, &handler) {
		status = handler.StatusCode
	}
	logRequestID(r)
	e.gateway.Error(w, r, status)
	return nil
}

// Interface guards
var (
	_ caddy.Provisioner           = (*Health)(nil)
	_ caddy.Provisioner           = (*Errors)(nil)
	_ caddyhttp.MiddlewareHandler = (*Health)(nil)
	_ caddyhttp.MiddlewareHandler = (*Errors)(nil)
)
