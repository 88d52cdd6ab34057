package adminapi

import (
	"errors"
	"net/http"

	"github.com/backstory-proxy/backstory/internal/keyring"
	"github.com/backstory-proxy/backstory/openai"
	"github.com/backstory-proxy/backstory/store"
)

// serveSessions lists a tenant's sessions; describes or deletes the one that is
// named. The objects are those of the clients' API.
func (a *API) serveSessions(w http.ResponseWriter, r *http.Request) error {
	scope, session, err := whose(r)
	if err != nil {
		return err
	}
	switch {
	case r.Method == http.MethodGet && session == "":
		return fromOpenAI(a.gateway.Sessions().List(w, r, scope))
	case r.Method == http.MethodGet:
		return fromOpenAI(a.gateway.Sessions().Describe(w, r, scope, session))
	case r.Method == http.MethodDelete && session != "":
		return fromOpenAI(a.gateway.Sessions().Delete(w, r, scope, session))
	case session == "":
		return notAllowed(w, r, "GET")
	}
	return notAllowed(w, r, "GET, DELETE")
}

// serveMessages lists the messages of a session, or exports them.
func (a *API) serveMessages(w http.ResponseWriter, r *http.Request) error {
	scope, session, err := whose(r)
	switch {
	case err != nil:
		return err
	case r.Method != http.MethodGet:
		return notAllowed(w, r, "GET")
	}
	return fromOpenAI(a.gateway.Sessions().Messages(w, r, scope, session))
}

// whose reads the tenant and the session of a request.
func whose(r *http.Request) (scope store.Scope, session string, err error) {
	query := r.URL.Query()
	scope.Tenant, session = query.Get("tenant"), query.Get("session")
	if !keyring.ValidTenant(scope.Tenant) {
		return scope, "", errorf(http.StatusBadRequest, "name the tenant with ?tenant=: 1 to 64 of a-z, 0-9, '.', '_' and '-'")
	}
	return scope, session, nil
}

// fromOpenAI makes an error of the clients' API one of the admin API.
func fromOpenAI(err error) error {
	var told *openai.Error
	switch {
	case errors.As(err, &told) && told.Status == http.StatusNotFound:
		return errorf(told.Status, "the tenant has no such session")
	case told != nil:
		return errorf(told.Status, "%s", told.Message)
	}
	return err
}
