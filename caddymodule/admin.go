package caddymodule

import (
	"errors"
	"net/http"

	"github.com/caddyserver/caddy/v2"

	"github.com/backstory-proxy/backstory/gateway"
	"github.com/backstory-proxy/backstory/internal/adminapi"
)

func init() {
	caddy.RegisterModule(new(Admin))
}

// Admin is Backstory's part of Caddy's admin API, for the configuration that
// runs: see package adminapi.
type Admin struct{}

// CaddyModule returns the Caddy module information.
func (*Admin) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "admin.api.backstory", New: func() caddy.Module { return new(Admin) }}
}

// Provision shows the metrics at the admin API's /metrics, whatever becomes of the
// configuration: after one that couldn't be loaded Caddy leaves that one's admin
// API in place.
func (a *Admin) Provision(ctx caddy.Context) error {
	return gateway.RegisterMetrics(ctx.GetMetricsRegistry())
}

// Routes returns the routes of the admin API.
func (a *Admin) Routes() []caddy.AdminRoute {
	var routes []caddy.AdminRoute
	for _, pattern := range adminapi.Patterns() {
		routes = append(routes, caddy.AdminRoute{Pattern: pattern, Handler: caddy.AdminHandlerFunc(
			func(w http.ResponseWriter, r *http.Request) error {
				err := adminapi.Serve(pattern, w, r, running(), caddy.ParseDuration)
				var refused *adminapi.Error
				if errors.As(err, &refused) {
					return caddy.APIError{HTTPStatus: refused.Status, Err: refused, Message: refused.Error()}
				}
				return err
			})})
	}
	return routes
}

// running is the gateway of the configuration that runs; nil where it has none.
func running() *gateway.Gateway {
	app, err := caddy.ActiveContext().AppIfConfigured("backstory")
	if err != nil {
		return nil
	}
	return app.(*App).gateway
}

// Interface guards
var (
	_ caddy.AdminRouter = (*Admin)(nil)
	_ caddy.Provisioner = (*Admin)(nil)
)
