package caddymodule

import (
	"errors"
	"net/http"

	"github.com/backstory-proxy/backstory/openai"
	"github.com/backstory-proxy/backstory/store"
)

// adminSessions lists a tenant's sessions; describes or deletes the one that is
// named. The objects are those of the clients' API.
func (a *App) adminSessions(w http.ResponseWriter, r *http.Request) error {
	tenant, session, err := whose(r)
	if err != nil {
		return err
	}
	switch {
	case r.Method == http.MethodGet && session == "":
		return adminOpenAI(a.listSessions(w, r, caller{tenant: tenant}))
	case r.Method == http.MethodGet:
		d, err := a.shared.Session(r.Context(), tenant, session)
		if err != nil {
			return noAdminSession(err)
		}
		return writeJSON(w, sessionObject(d))
	case r.Method == http.MethodDelete && session != "":
		if err := a.shared.DeleteSession(r.Context(), tenant, session); err != nil {
			return noAdminSession(err)
		}
		return writeJSON(w, openai.Deleted{ID: session, Object: "session", Deleted: true})
	case session == "":
		return adminNotAllowed(w, r, "GET")
	}
	return adminNotAllowed(w, r, "GET, DELETE")
}

// adminMessages lists the messages of a session, or exports them.
func (a *App) adminMessages(w http.ResponseWriter, r *http.Request) error {
	tenant, session, err := whose(r)
	switch {
	case err != nil:
		return err
	case r.Method != http.MethodGet:
		return adminNotAllowed(w, r, "GET")
	case wantsLines(r):
		return adminOpenAI(a.exportMessages(w, r, tenant, session))
	}
	return adminOpenAI(a.listMessages(w, r, caller{tenant: tenant}, session))
}

// whose reads the tenant and the session of a request.
func whose(r *http.Request) (tenant, session string, err error) {
	query := r.URL.Query()
	tenant, session = query.Get("tenant"), query.Get("session")
	if !tenantName.MatchString(tenant) {
		return "", "", adminError(http.StatusBadRequest, "name the tenant with ?tenant=: 1 to 64 of a-z, 0-9, '.', '_' and '-'")
	}
	return tenant, session, nil
}

func noAdminSession(err error) error {
	if errors.Is(err, store.ErrNotFound) {
		return adminError(http.StatusNotFound, "the tenant has no such session")
	}
	return err
}

// adminOpenAI makes an error of the clients' API one of the admin API.
func adminOpenAI(err error) error {
	var told *openai.Error
	if errors.As(err, &told) {
		return adminError(told.Status, "%s", told.Message)
	}
	return err
}
