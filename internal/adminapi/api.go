// Package adminapi is the operator's API: service keys, tenants and sessions of
// the gateway that runs. Caddy's admin API serves it, on loopback unless it is
// told otherwise; see docs/admin-api.md.
package adminapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/backstory-proxy/backstory/gateway"
	"github.com/backstory-proxy/backstory/internal/respond"
	"github.com/backstory-proxy/backstory/store"
)

// The paths. Those of sessions take the tenant and the session, which may hold
// anything, as query parameters.
const (
	KeysPath     = "/backstory/keys"
	TenantsPath  = "/backstory/tenants"
	SessionsPath = "/backstory/sessions"
	MessagesPath = "/backstory/sessions/messages"
)

// API answers requests of operators.
type API struct {
	gateway *gateway.Gateway
	shared  *gateway.Shared
	// duration reads a duration such as 90d.
	duration func(string) (time.Duration, error)
}

// routes are the handlers by pattern: one that ends in a slash is for all that
// begins so.
var routes = map[string]func(*API, http.ResponseWriter, *http.Request) error{
	KeysPath:          (*API).serveKeys,
	KeysPath + "/":    (*API).serveKey,
	TenantsPath:       (*API).serveTenants,
	TenantsPath + "/": (*API).serveTenant,
	SessionsPath:      (*API).serveSessions,
	MessagesPath:      (*API).serveMessages,
}

// Patterns are those of the requests that Serve answers: a path, or with a slash
// at its end all that begins so.
func Patterns() []string { return slices.Sorted(maps.Keys(routes)) }

// Serve answers a request of one of the patterns about a gateway; nil: none runs.
// duration reads a duration such as 90d. The error is an *Error, or that of a
// client who has left.
func Serve(pattern string, w http.ResponseWriter, r *http.Request, g *gateway.Gateway, duration func(string) (time.Duration, error)) error {
	if g == nil {
		return errorf(http.StatusNotFound, "the running configuration has no backstory")
	}
	shared := g.Shared(r.Context())
	if shared == nil {
		return errorf(http.StatusServiceUnavailable, "the store could not be opened")
	}
	defer shared.Use()()
	return withStatus(routes[pattern](&API{g, shared, duration}, w, r))
}

// Error is a request that was refused, or failed.
type Error struct {
	Status int // of HTTP
	Err    error
}

func (e *Error) Error() string { return e.Err.Error() }
func (e *Error) Unwrap() error { return e.Err }

// withStatus gives an error the status that goes with it.
func withStatus(err error) error {
	var told *Error
	switch {
	case err == nil || errors.As(err, &told):
		return err
	case errors.Is(err, store.ErrNotFound):
		return errorf(http.StatusNotFound, "there is no such thing")
	case errors.Is(err, context.Canceled):
		return err
	}
	return &Error{http.StatusServiceUnavailable, fmt.Errorf("the store can't do its work: %w", err)}
}

func errorf(status int, format string, args ...any) error {
	return &Error{status, fmt.Errorf(format, args...)}
}

func notAllowed(w http.ResponseWriter, r *http.Request, allowed string) error {
	w.Header().Set("Allow", allowed)
	return errorf(http.StatusMethodNotAllowed, "not allowed to %s here; allowed: %s", r.Method, allowed)
}

// read reads a body of JSON; none is like {}.
func read(r *http.Request, to any) error {
	const most = 64 << 10
	body, err := io.ReadAll(io.LimitReader(r.Body, most))
	if err != nil {
		return errorf(http.StatusBadRequest, "the body can't be read to its end")
	}
	if len(body) == 0 {
		return nil
	}
	d := json.NewDecoder(strings.NewReader(string(body)))
	d.DisallowUnknownFields()
	if err := d.Decode(to); err != nil {
		return errorf(http.StatusBadRequest, "the body must be a JSON object: %w", err)
	}
	return nil
}

// List is a list as the admin API answers it.
type List[T any] struct {
	Object string `json:"object"` // list
	Data   []T    `json:"data"`
}

func writeList[T any](w http.ResponseWriter, data []T) error {
	if data == nil {
		data = []T{}
	}
	return respond.JSON(w, List[T]{"list", data})
}
