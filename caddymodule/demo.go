package caddymodule

import (
	"net/http"
	"os"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/backstory-proxy/backstory/demo"
	"github.com/backstory-proxy/backstory/tokens"
)

func init() {
	caddy.RegisterModule(new(DemoRouter))
}

// DemoRouter is a model router that needs no account and no network. It runs
// no model: it quotes from what it was given.
type DemoRouter struct {
	router *demo.Router
}

// CaddyModule returns the Caddy module information.
func (*DemoRouter) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.handlers.backstory_demo_router", New: func() caddy.Module { return new(DemoRouter) }}
}

// Provision makes the router, and says so where nothing names another.
func (d *DemoRouter) Provision(ctx caddy.Context) error {
	if os.Getenv("ROUTER_URL") == "" {
		ctx.Logger().Warn("the demo router stands in for a model: set ROUTER_URL to use a model router")
	}
	d.router = demo.New(demo.Options{Count: tokens.O200K().Count})
	return nil
}

func (d *DemoRouter) ServeHTTP(w http.ResponseWriter, r *http.Request, _ caddyhttp.Handler) error {
	d.router.ServeHTTP(w, r)
	return nil
}

// Interface guards
var (
	_ caddy.Provisioner           = (*DemoRouter)(nil)
	_ caddyhttp.MiddlewareHandler = (*DemoRouter)(nil)
)
