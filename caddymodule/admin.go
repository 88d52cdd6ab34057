package caddymodule

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/backstory-proxy/backstory/gateway"
	"github.com/backstory-proxy/backstory/internal/respond"
	"github.com/backstory-proxy/backstory/store"
)

func init() {
	caddy.RegisterModule(new(Admin))
}

// Admin is Backstory's part of Caddy's admin API: keys, tenants and sessions, of
// the configuration that runs. Caddy keeps that API to loopback unless it is told
// otherwise; see docs/admin-api.md.
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

// The paths of the admin API.
const (
	adminKeys    = "/backstory/keys"
	adminTenants = "/backstory/tenants"
	// These take the tenant and the session, which may hold anything, as
	// query parameters.
	adminSessions = "/backstory/sessions"
	adminMessages = "/backstory/sessions/messages"
)

// Routes returns the routes of the admin API.
func (a *Admin) Routes() []caddy.AdminRoute {
	var routes []caddy.AdminRoute
	for pattern, serve := range map[string]func(*adminAPI, http.ResponseWriter, *http.Request) error{
		adminKeys:          (*adminAPI).adminKeys,
		adminKeys + "/":    (*adminAPI).adminKey,
		adminTenants:       (*adminAPI).adminTenants,
		adminTenants + "/": (*adminAPI).adminTenant,
		adminSessions:      (*adminAPI).adminSessions,
		adminMessages:      (*adminAPI).adminMessages,
	} {
		routes = append(routes, caddy.AdminRoute{Pattern: pattern, Handler: caddy.AdminHandlerFunc(
			func(w http.ResponseWriter, r *http.Request) error { return adminServe(w, r, serve) })})
	}
	return routes
}

// adminServe has the app that runs serve a request.
func adminServe(w http.ResponseWriter, r *http.Request, serve func(*adminAPI, http.ResponseWriter, *http.Request) error) error {
	running, err := caddy.ActiveContext().AppIfConfigured("backstory")
	if err != nil {
		return adminError(http.StatusNotFound, "the running configuration has no backstory")
	}
	gateway := running.(*App).gateway
	shared := gateway.Shared(r.Context())
	if shared == nil {
		return adminError(http.StatusServiceUnavailable, "the store could not be opened")
	}
	defer shared.Use()()
	return adminFailure(serve(&adminAPI{gateway, shared, caddy.ParseDuration}, w, r))
}

// adminAPI answers requests of operators.
type adminAPI struct {
	gateway *gateway.Gateway
	shared  *gateway.Shared
	// duration reads a duration such as 90d.
	duration func(string) (time.Duration, error)
}

// adminFailure gives an error the status that goes with it.
func adminFailure(err error) error {
	var told caddy.APIError
	switch {
	case err == nil || errors.As(err, &told):
		return err
	case errors.Is(err, store.ErrNotFound):
		return adminError(http.StatusNotFound, "there is no such thing")
	case errors.Is(err, context.Canceled):
		return err
	}
	return caddy.APIError{HTTPStatus: http.StatusServiceUnavailable, Err: err, Message: "the store can't be reached: " + err.Error()}
}

func adminError(status int, format string, args ...any) error {
	err := fmt.Errorf(format, args...)
	return caddy.APIError{HTTPStatus: status, Err: err, Message: err.Error()}
}

func adminNotAllowed(w http.ResponseWriter, r *http.Request, allowed string) error {
	w.Header().Set("Allow", allowed)
	return adminError(http.StatusMethodNotAllowed, "not allowed to %s here; allowed: %s", r.Method, allowed)
}

// readAdmin reads a body of JSON; none is like {}.
func readAdmin(r *http.Request, to any) error {
	const most = 64 << 10
	body, err := io.ReadAll(io.LimitReader(r.Body, most))
	if err != nil {
		return adminError(http.StatusBadRequest, "the body can't be read to its end")
	}
	if len(body) == 0 {
		return nil
	}
	d := json.NewDecoder(strings.NewReader(string(body)))
	d.DisallowUnknownFields()
	if err := d.Decode(to); err != nil {
		return adminError(http.StatusBadRequest, "the body must be a JSON object: %w", err)
	}
	return nil
}

// adminList is a list as the admin API answers it.
type adminList[T any] struct {
	Object string `json:"object"` // list
	Data   []T    `json:"data"`
}

func writeAdminList[T any](w http.ResponseWriter, data []T) error {
	if data == nil {
		data = []T{}
	}
	return respond.JSON(w, adminList[T]{"list", data})
}

// Interface guards
var (
	_ caddy.AdminRouter = (*Admin)(nil)
	_ caddy.Provisioner = (*Admin)(nil)
)
