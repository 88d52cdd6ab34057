package caddymodule

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	"github.com/backstory-proxy/backstory/gateway"
)

func init() {
	caddy.RegisterModule(new(Handler))
}

// Handler is Backstory in front of a model router, which the next handlers lead
// to: see gateway.Gateway.
//
// It takes the paths of the OpenAI API without their base: mount it behind
// handle_path.
type Handler struct {
	// The variables of the shipped Caddyfile that weren't set where it was made
	// JSON, so that their defaults stand in it, which are the demo router's. A
	// process that has one of them refuses the configuration. The Caddyfile's
	// adapter fills this in. Default: none.
	Unset []string `json:"unset,omitempty"`

	app *App
}

// CaddyModule returns the Caddy module information.
func (*Handler) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.handlers.backstory", New: func() caddy.Module { return new(Handler) }}
}

// Provision finds the App.
func (h *Handler) Provision(ctx caddy.Context) error {
	for _, name := range h.Unset {
		if os.Getenv(name) != "" {
			return fmt.Errorf("this configuration was made where %s isn't set, and would take the model router's place with the demo router: "+
				"reload with the variables that the server was started with, such as with systemctl reload, or send it SIGUSR1", name)
		}
	}
	app, err := ctx.App("backstory")
	if err != nil {
		return err
	}
	h.app = app.(*App)
	return nil
}

// ServeHTTP answers the request, errors included.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	h.app.gateway.Serve(w, r, router{next})
	return nil
}

// router is the model router as the next handlers lead to it.
type router struct{ next caddyhttp.Handler }

// ServeHTTP calls the next handlers. What the gateway asks for itself gets a
// request state of its own: that of the client's request, which may be under way
// at the same time, isn't synchronised.
func (n router) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if gateway.IsOwn(r) {
		server, _ := r.Context().Value(caddyhttp.ServerCtxKey).(*caddyhttp.Server)
		r = caddyhttp.PrepareRequest(r, caddy.NewReplacer(), w, server)
	}
	err := n.next.ServeHTTP(w, r)
	if err == nil {
		return
	}
	failure := &gateway.RouterError{Err: err}
	var handler caddyhttp.HandlerError
	if errors.As(err, &handler) {
		failure.Status = handler.StatusCode
	}
	gateway.Fail(w, failure)
}

// requestID is Caddy's id of the request that a context belongs to.
func requestID(ctx context.Context) string {
	repl, ok := ctx.Value(caddy.ReplacerCtxKey).(*caddy.Replacer)
	if !ok {
		return ""
	}
	id, _ := repl.GetString("http.request.uuid")
	return id
}

func logRequestID(r *http.Request) {
	logFields(r).Set(zap.String("request_id", requestID(r.Context())))
}

// logStats adds to the access log what the gateway knows of a request.
func logStats(r *http.Request, s *gateway.Stats) {
	fields := logFields(r)
	fields.Set(zap.String("request_id", s.RequestID))
	if s.RouterRequestID != "" {
		fields.Set(zap.String("router_request_id", s.RouterRequestID))
	}
	if server, ok := r.Context().Value(caddyhttp.ServerCtxKey).(*caddyhttp.Server); ok && server.Logs != nil {
		// One field, written only where the request is logged.
		fields.Add(zap.Object("backstory", s))
	}
}

// logFields are those of the access log's entry for a request.
func logFields(r *http.Request) *caddyhttp.ExtraLogFields {
	fields, ok := r.Context().Value(caddyhttp.ExtraLogFieldsCtxKey).(*caddyhttp.ExtraLogFields)
	if !ok {
		return new(caddyhttp.ExtraLogFields)
	}
	return fields
}

// Interface guards
var (
	_ caddy.Provisioner           = (*Handler)(nil)
	_ caddyhttp.MiddlewareHandler = (*Handler)(nil)
)
